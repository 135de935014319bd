"""Records as a run would leave them, made from a few numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sterad.results.record import Moment, RunRecord, SphereFrame, SpherePicture, StreamFacts

CLASSES, PER_CLASS, TASKS = 10, 140, 5
SAMPLES = CLASSES * PER_CLASS
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@pytest.fixture(scope="session")
def build_record() -> Callable[..., RunRecord]:
    """Return the builder for what is made once and shared."""
    return build


@pytest.fixture
def make_record() -> Callable[..., RunRecord]:
    """Return the builder; without arguments it makes a run of AGD-FD on a clear stream."""
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
    replays = method != "finetune"
    moments = _moments(facts, rng, replays, memory)
    rows = tuple(m.cells for m in moments if m.boundary or not facts.announced)
    final = [cell for cell in rows[-1] if cell is not None]
    shown = replays if sphere is None else sphere
    config = {
        "method": {"name": method, "lr": 0.0005 if replays else 0.01, **fields},
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
        seconds=41.25 if replays else 9.5,
        images_per_second=15_060.5,
        peak_memory_bytes=330 * 2**20,
        execution={"device": "cpu", "threads": 2, "memory_format": "channels_last"},
        provenance={"sterad": "0.1.0", "torch": "2.13.0", "commit": "0123456"},
        images_per_step=444.0 if replays else 10.0,
        confusion=_confusion(facts, rng, replays),
        losses=tuple((step, 2.0, 1.0) for step in range(30, 140, 3)) if replays else (),
        sphere=_sphere(facts, rng) if shown else None,
    )


def _stream(name: str, rng: np.random.Generator, names: tuple[str, ...]) -> StreamFacts:
    order = rng.permutation(CLASSES)
    tasks = tuple(tuple(int(c) for c in order[2 * k : 2 * k + 2]) for k in range(TASKS))
    labels = np.concatenate([rng.permutation(np.repeat(task, PER_CLASS)) for task in tasks])
    if name == "blurry":
        labels = labels[np.argsort(np.arange(SAMPLES) + 60 * np.abs(rng.normal(size=SAMPLES)))]
    stretches = np.array_split(labels, 50)
    counts = tuple(tuple(int((s == c).sum()) for c in range(CLASSES)) for s in stretches)
    return StreamFacts(name, SAMPLES, SAMPLES // 10, tasks, name == "clear", names, counts)


def _moments(
    facts: StreamFacts, rng: np.random.Generator, replays: bool, memory: int
) -> tuple[Moment, ...]:
    tenths = {SAMPLES * k // 10 for k in range(1, 11)}
    ends = {SAMPLES * k // TASKS for k in range(1, TASKS + 1)}
    found = []
    for samples in sorted(tenths | ends):
        past = np.array(facts.proportions[: math.ceil(50 * samples / SAMPLES)]).sum(axis=0)
        cells = tuple(_cell(facts, place, past, samples, rng, replays) for place in range(TASKS))
        known = [cell for cell in cells if cell is not None]
        held = past * memory // max(memory, past.sum())
        found.append(
            Moment(
                step=samples // 10,
                samples=samples,
                boundary=facts.announced and samples in ends,
                anytime=samples in tenths,
                seen=int((past > 0).sum()),
                accuracy=float(np.mean(known)),
                cells=cells,
                memory=tuple(int(n) for n in held) if replays else (),
            )
        )
    return tuple(found)


def _cell(
    facts: StreamFacts,
    place: int,
    past: np.ndarray,
    samples: int,
    rng: np.random.Generator,
    replays: bool,
) -> float | None:
    seen = past[list(facts.tasks[place])].sum()
    if seen == 0:
        return None
    age = max(0.0, samples / SAMPLES - (place + 1) / TASKS)
    top = min(0.97, 0.6 + seen / (2 * PER_CLASS))
    fall = 0.08 * age if replays else 3.0 * age
    return float(np.clip(top - fall + 0.015 * rng.normal(), 0.0, 1.0))


def _confusion(
    facts: StreamFacts, rng: np.random.Generator, replays: bool
) -> tuple[tuple[int, ...], ...]:
    counts = np.zeros((CLASSES, CLASSES), int)
    for c in range(CLASSES):
        late = rng.choice(facts.tasks[-1], 36)  # who forgets answers what came last
        counts[c] = np.bincount(np.where(rng.uniform(size=36) < 0.9, c, late), minlength=CLASSES)
        if not replays:
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
