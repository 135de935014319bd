"""Synthetic records of runs."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sterad.results.record import (
    Moment,
    RunRecord,
    SphereFrame,
    SpherePicture,
    StreamFacts,
    TrainingCost,
)

CLASSES, PER_CLASS, TASKS = 10, 140, 5
SAMPLES = CLASSES * PER_CLASS
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(scope="session")
def build_record() -> Callable[..., RunRecord]:
    """Return the builder, for fixtures with a wider scope."""
    return build


@pytest.fixture
def make_record() -> Callable[..., RunRecord]:
    """Return the builder; by default a run of AGD-FD on a clear stream."""
    return build


def build(
    method: str = "agd-fd",
    stream: str = "clear",
    seed: int = 0,
    memory: int = 200,
    names: tuple[str, ...] = NAMES,
    sphere: bool | None = None,
    **fields: Any,
) -> RunRecord:
    """Make a record; further keywords are fields of the method."""
    rng = np.random.default_rng([seed, memory, len(method), len(stream)])
    facts = _stream(stream, np.random.default_rng([seed, len(stream)]), names)
    has_memory = method != "finetune"
    moments = _moments(facts, rng, has_memory, memory)
    rows = tuple(m.cells for m in moments if m.boundary or not facts.announced)
    final = [cell for cell in rows[-1] if cell is not None]
    has_sphere = has_memory if sphere is None else sphere
    config = {
        "method": {"name": method, "lr": 0.0005 if has_memory else 0.01, **fields},
        "dataset": {"name": "digits"},
        "stream": {"name": stream, "tasks": TASKS, **({} if facts.announced else {"scale": 60})},
        "memory": memory,
        "seed": seed,
        "encoder": "resnet18",
        "width": 20,
    }
    return RunRecord(
        id="-".join(map(str, (method, stream, memory, seed, *fields.values()))),
        config=config,
        stream=facts,
        evaluations=tuple(f"task {task + 1}" for task in range(TASKS)),
        moments=moments,
        accuracy_matrix=rows,
        final_average_accuracy=float(np.mean(final)),
        average_forgetting=0.05 if facts.announced else None,
        average_forgetting_released=0.05 if facts.announced else None,
        backward_transfer=-0.05 if facts.announced else None,
        anytime_accuracy=float(np.mean([m.accuracy for m in moments if m.anytime])),
        test_then_train_accuracy=None,
        seconds=41.25 if has_memory else 9.5,
        images_per_second=15_060.5,
        peak_memory_bytes=330 * 2**20,
        execution={"device": "cpu", "threads": 2, "memory_format": "channels_last"},
        provenance={"sterad": "0.1.0", "torch": "2.13.0", "commit": "0123456"},
        images_per_step=444.0 if has_memory else 10.0,
        confusion=_confusion(facts, rng, has_memory),
        losses=tuple((step, 2.0, 1.0) for step in range(30, 140, 3)) if has_memory else (),
        sphere=_sphere(facts, rng) if has_sphere else None,
        cost=_cost(444 if has_memory else 10, facts.steps),
    )


def _cost(images: int, steps: int) -> TrainingCost:
    """Return the cost of so many images of 8 × 8 pixels per batch."""
    pixels = images * 64 * steps
    return TrainingCost(float(pixels), 0, 5_000.0 * pixels, 2**21 + 10_000 * images)


def _stream(name: str, rng: np.random.Generator, names: tuple[str, ...]) -> StreamFacts:
    order = rng.permutation(CLASSES)
    tasks = tuple(tuple(int(c) for c in order[2 * k : 2 * k + 2]) for k in range(TASKS))
    labels = np.concatenate([rng.permutation(np.repeat(task, PER_CLASS)) for task in tasks])
    if name == "blurry":
        labels = labels[np.argsort(np.arange(SAMPLES) + 60 * np.abs(rng.normal(size=SAMPLES)))]
    parts = np.array_split(labels, 50)
    counts = tuple(tuple(int((part == c).sum()) for c in range(CLASSES)) for part in parts)
    return StreamFacts(name, SAMPLES, SAMPLES // 10, tasks, name == "clear", names, counts)


def _moments(
    facts: StreamFacts, rng: np.random.Generator, has_memory: bool, memory: int
) -> tuple[Moment, ...]:
    tenths = {SAMPLES * k // 10 for k in range(1, 11)}
    ends = {SAMPLES * k // TASKS for k in range(1, TASKS + 1)}
    moments = []
    for samples in sorted(tenths | ends):
        past = np.array(facts.proportions[: math.ceil(50 * samples / SAMPLES)]).sum(axis=0)
        cells = tuple(_cell(facts, task, past, samples, rng, has_memory) for task in range(TASKS))
        known = [cell for cell in cells if cell is not None]
        held = past * memory // max(memory, past.sum())
        moments.append(
            Moment(
                step=samples // 10,
                samples=samples,
                boundary=facts.announced and samples in ends,
                anytime=samples in tenths,
                seen=int((past > 0).sum()),
                accuracy=float(np.mean(known)),
                cells=cells,
                memory=tuple(int(n) for n in held) if has_memory else (),
            )
        )
    return tuple(moments)


def _cell(
    facts: StreamFacts,
    task: int,
    past: np.ndarray,
    samples: int,
    rng: np.random.Generator,
    has_memory: bool,
) -> float | None:
    seen = past[list(facts.tasks[task])].sum()
    if seen == 0:
        return None
    age = max(0.0, samples / SAMPLES - (task + 1) / TASKS)
    top = min(0.97, 0.6 + seen / (2 * PER_CLASS))
    fall = 0.08 * age if has_memory else 3.0 * age
    return float(np.clip(top - fall + 0.015 * rng.normal(), 0.0, 1.0))


def _confusion(
    facts: StreamFacts, rng: np.random.Generator, has_memory: bool
) -> tuple[tuple[int, ...], ...]:
    counts = np.zeros((CLASSES, CLASSES), int)
    for c in range(CLASSES):
        late = rng.choice(facts.tasks[-1], 36)  # errors are classes of the last task
        counts[c] = np.bincount(np.where(rng.uniform(size=36) < 0.9, c, late), minlength=CLASSES)
        if not has_memory:
            counts[c] = np.bincount(late, minlength=CLASSES)
    return tuple(map(tuple, counts.tolist()))


def _sphere(facts: StreamFacts, rng: np.random.Generator) -> SpherePicture:
    classes = (facts.tasks[0][0], facts.tasks[2][0], facts.tasks[4][0])
    frames = []
    for place, task in enumerate((1, 3, 5)):
        labels = np.repeat(classes[: place + 1], 60)
        centers = np.eye(3)[np.repeat(np.arange(place + 1), 60)]
        z = centers + 0.35 * rng.normal(size=centers.shape)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        points = tuple((float(a), float(b), float(c)) for a, b, c in z)
        step = SAMPLES * task // TASKS // 10
        frames.append(SphereFrame(step, tuple(int(c) for c in labels), points))
    return SpherePicture(classes, tuple(frames))


@pytest.fixture
def records() -> list[RunRecord]:
    """Three seeds of AGD-FD on clear, one on blurry, finetune on clear only."""
    accuracies = [("clear", 0, 0.90), ("clear", 1, 0.92), ("clear", 2, 0.97), ("blurry", 0, 0.95)]
    found = [
        dataclasses.replace(build("agd-fd", stream, seed), final_average_accuracy=accuracy)
        for stream, seed, accuracy in accuracies
    ]
    lower = dataclasses.replace(build("finetune"), final_average_accuracy=0.19)
    return [*found, lower]


@pytest.fixture
def records_at() -> Callable[..., list[RunRecord]]:
    """Return a builder of five seeds of each method at its accuracies on clear and blurry."""
    return build_at


def build_at(levels: dict[str, tuple[float, float]]) -> list[RunRecord]:
    return [
        dataclasses.replace(
            build(method, stream, seed), final_average_accuracy=level + 0.001 * (seed % 3)
        )
        for method, pair in levels.items()
        for stream, level in zip(("clear", "blurry"), pair, strict=True)
        for seed in range(5)
    ]
