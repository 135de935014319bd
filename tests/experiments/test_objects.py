"""Runs of objects: a method, dataset, stream and parts that are given without a name."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sterad import Dataset, RunConfig, run
from sterad.cli import main
from sterad.data import Defaults, Digits, Synthetic
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.launchers.job import Job
from sterad.loggers import Logger
from sterad.memory import GreedyBalanced, Reservoir
from sterad.methods import Learner
from sterad.methods.er import ER
from sterad.streams import Blurry, Stream
from sterad.streams.arrangement import Arrangement
from sterad.streams.tasks import split_order
from sterad.views.augmentations import Full

ONE_THREAD = Execution(threads=1)
SMALL: dict[str, Any] = {"memory": 6, "memory_batch": 3, "width": 2, "anytime": 2}


class Halves(ER):
    """A method that is not registered."""

    def loss(self, retrieved: Any, batch: Any) -> Any:
        return super().loss(retrieved, batch) / 2


@dataclass(frozen=True)
class Sorted(Arrangement):
    """A stream that is not registered: class by class."""

    tasks: int | None = None
    reverse: bool = False

    def arrange(self, dataset: Dataset, seed: int) -> Stream:
        order = np.argsort(dataset.train_labels, kind="stable")
        tasks = split_order(range(dataset.classes), self.tasks or 1)
        return Stream(
            dataset, "sorted", order[::-1] if self.reverse else order, self.batch_size, tasks
        )


def arrays(seed: int = 0, **options: Any) -> Dataset:
    images = np.random.default_rng(seed).integers(0, 256, (24, 8, 8), dtype=np.uint8)
    labels = np.arange(24) % 4
    return Dataset.from_arrays(images, labels, images[:8], labels[:8], **options)


def test_registered_objects_are_the_same_as_their_names() -> None:
    config = RunConfig.of(
        method=ER,
        dataset=Digits(per_class=50),
        stream=Blurry(batch_size=5),
        memory_policy=GreedyBalanced,
        augmentation=Full,
    )
    named = RunConfig.of(
        method="er",
        dataset="digits",
        per_class=50,
        stream="blurry",
        batch_size=5,
        memory_policy="greedy-balanced",
    )
    assert config == named
    assert (config.id, config.digests) == (named.id, ())
    assert config.stream.fields.scale is not None, "the dataset sets it"
    assert RunConfig.from_dict(config.to_dict()) == config


def test_a_run_of_objects_is_recorded_reused_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def values() -> dict[str, Any]:
        memory = Reservoir(6, torch.Generator())
        return SMALL | {
            "method": Halves,
            "dataset": arrays(name="my data"),
            "stream": Sorted(tasks=2),
            "memory": memory,
        }

    record = run(out=tmp_path, execution=ONE_THREAD, **values())
    assert record.id.startswith("Halves-my-data-Sorted-s0-")
    config = json.loads((tmp_path / record.id / "config.json").read_text())["config"]
    assert config["method"]["memory_policy"] == "Reservoir(capacity=6, seen=0)"
    assert config["memory"] == 6
    assert config["stream"]["object"] == "Sorted(batch_size=10, tasks=2, reverse=False)"
    assert config["dataset"]["object"] == "24 + 8 inputs of shape (1, 8, 8), 4 classes"
    digests = {"dataset object", "stream object", "memory object", "method code"}
    assert set(config["digests"]) == digests
    file = tmp_path / record.id / "record.json"
    written = file.stat().st_mtime_ns
    assert run(out=tmp_path, execution=ONE_THREAD, **values()) == record, "a finished run is read"
    assert file.stat().st_mtime_ns == written
    run(out=tmp_path, execution=ONE_THREAD, **values() | {"method": "er", "seed": 1})
    assert main(["report", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Halves" in printed
    assert "er" in printed


def id_of(**changes: Any) -> str:
    values = {"method": Halves, "dataset": arrays(), "stream": Sorted(tasks=2), **SMALL}
    return RunConfig.of(**(values | changes)).id


def weights(value: float) -> nn.Module:
    module = nn.Linear(64, 3)
    for weight in module.parameters():
        nn.init.constant_(weight, value)
    return module


def test_the_id_depends_on_every_object_and_its_values() -> None:
    ids = [
        id_of(),
        id_of(method=ER),
        id_of(dataset=arrays(1)),
        id_of(dataset=arrays(name="other")),
        id_of(dataset=arrays(flip=True)),
        id_of(stream=Sorted(tasks=2, reverse=True)),
        id_of(encoder=weights(0)),
        id_of(encoder=weights(1)),
        id_of(memory=Reservoir(6, torch.Generator())),
        id_of(optimizer=lambda weights: torch.optim.Adam(weights, lr=1e-3)),
        id_of(optimizer=lambda weights: torch.optim.Adam(weights, lr=1e-2)),
        id_of(augmentation=Full(min_crop=0.5)),
        id_of(augmentation=Full(min_crop=0.6)),
    ]
    assert len(set(ids)) == len(ids)
    assert id_of() == ids[0]
    assert id_of(encoder=weights(1)) == ids[7]
    assert id_of(memory_policy=Reservoir(6, torch.Generator())) == ids[8]


def test_an_unregistered_dataset_config_is_loaded() -> None:
    @dataclass(frozen=True)
    class Own:
        seed: int = 0

        def load(self) -> Dataset:
            return arrays(self.seed)

        def defaults(self) -> Defaults:
            return Defaults(width=5, tasks=2, scale=1.0)

    config = RunConfig.of(dataset=Own())
    assert config.dataset.name == "Own"
    assert (config.settings.width, config.stream.fields.tasks) == (5, 2)
    assert config.id != RunConfig.of(dataset=Own(1)).id
    assert RunConfig.of(dataset=arrays()).stream.fields.tasks == 4


def test_a_run_leaves_the_objects_as_they_were(tmp_path: Path) -> None:
    memory = Reservoir(6, torch.Generator())
    config = RunConfig.of(method="er", dataset=arrays(), **SMALL | {"memory": memory})
    first = run(config, tmp_path / "a", ONE_THREAD)
    assert (memory.seen, len(memory)) == (0, 0)
    second = run(config, tmp_path / "b", ONE_THREAD)
    assert first.accuracy_matrix == second.accuracy_matrix
    memory.seen = 3
    with pytest.raises(SteradError, match="the memory has changed since the config was made: make"):
        run(config, tmp_path / "c", ONE_THREAD)


def test_the_class_of_a_memory_gets_the_capacity(tmp_path: Path) -> None:
    class Own(Reservoir):
        pass

    config = RunConfig.of(method="er", dataset=arrays(), memory_policy=Own, **SMALL)
    record = run(config, tmp_path, ONE_THREAD)
    assert sum(record.moments[-1].memory) == 6
    assert record.config["method"]["memory_policy"].endswith("Own")


class Interrupt(Logger):
    """Stops a run at its third step."""

    def __init__(self) -> None:
        pass

    def emit(self, event: Mapping[str, Any]) -> None:
        if event["step"] == 3:
            raise KeyboardInterrupt


def test_an_interrupted_run_of_another_object_does_not_stand_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(
            method="er",
            dataset=arrays(),
            out=tmp_path,
            execution=ONE_THREAD,
            checkpoint_every=1,
            loggers=[Interrupt()],
            **SMALL,
        )
    assert list(tmp_path.glob("*/checkpoint.pt"))
    record = run(method="er", dataset=arrays(1), out=tmp_path, execution=ONE_THREAD, **SMALL)
    assert record.changes == ()


SCRIPT = """
import sys
from pathlib import Path
import torch
from sterad import Dataset, run
from sterad.data import Synthetic
from sterad.encoders import ResNet18
from sterad.engine.execution import Execution
from sterad.memory import GreedyBalanced
from sterad.methods.er import ER
from sterad.streams.tasks import Clear

class Own(ER):
    pass

class Backwards:
    def open(self, dataset, seed):
        return Clear(tasks=2, label_order=(3, 2, 1, 0)).open(dataset, seed)

class Encoder:
    def __init__(self, bias):
        self.bias = torch.full((4,), bias)
    def __call__(self, *_):
        made = ResNet18((1, 8, 8), 2)
        torch.nn.init.constant_(next(made.parameters()), float(self.bias[0]))
        return made

class Stop:
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def emit(self, event):
        if event["step"] == 5:
            sys.exit(3)

def go(out, bias=0.1, loggers=()):
    return run(
        method=Own, dataset=Synthetic(classes=4, per_class=20).load(), stream=Backwards(),
        encoder=Encoder(bias), memory=GreedyBalanced(9, torch.Generator()), memory_batch=4,
        optimizer=lambda weights, scaled=False: torch.optim.Adam(list(weights), lr=0.01),
        out=out, execution=Execution(threads=1), checkpoint_every=2, loggers=loggers, width=2,
    )

if sys.argv[1] == "stop":
    go("a", loggers=[Stop()])
resumed, whole, other = go("a"), go("b"), go("a", 0.2)
assert resumed.id == whole.id != other.id
assert "resume" in Path("a", resumed.id, "events.jsonl").read_text()
assert resumed.accuracy_matrix == whole.accuracy_matrix
assert resumed.losses == whole.losses
assert resumed.confusion == whole.confusion
states = [torch.load(Path(out, whole.id, "checkpoint.pt"), weights_only=True) for out in "ab"]
def flat(state):
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in items:
        if isinstance(value, dict | list | tuple):
            yield from flat(value)
        elif isinstance(value, torch.Tensor):
            yield value
pairs = list(zip(*map(flat, states), strict=True))
assert len(pairs) > 20 and all(torch.equal(*pair) for pair in pairs)
print("equal")
"""


@pytest.mark.slow
def test_a_run_of_objects_is_resumed_in_another_process_to_the_bit(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    codes = []
    for mode in ("stop", "resume"):
        command = [sys.executable, "script.py", mode]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        codes.append(result.returncode)
    assert codes == [3, 0], result.stderr
    assert result.stdout == "equal\n"


def test_objects_cannot_be_sent_to_another_process(tmp_path: Path) -> None:
    config = RunConfig.of(
        method=Halves, dataset=arrays(), encoder=weights(0), stream=Sorted(tasks=2)
    )
    remedy = "register each in a plugin .* or call run"
    message = f"the method 'Halves' and the dataset and the encoder and the stream .*: {remedy}"
    with pytest.raises(SteradError, match=message):
        RunConfig.from_dict(config.to_dict())
    with pytest.raises(SteradError, match=remedy):
        Job.from_json(Job(config, tmp_path, ONE_THREAD).to_json())


class Boundless:
    """A memory without a capacity."""

    def update(self, batch: Any) -> None: ...


class Uncopied(nn.Identity):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("it holds a socket")


class Incomplete(Learner):
    """A method without its abstract methods."""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": Incomplete}, "the method Incomplete does not define .*: define each"),
        ({"method": nn.Linear}, "the method Linear is no subclass of Learner: extend"),
        ({"dataset": Digits}, r"the dataset is Digits: give a name, a Dataset, or an object with"),
        ({"dataset": nn.Identity()}, "the dataset is Identity of 0 weights: give a name, a Data"),
        ({"stream": Blurry}, "the stream is Blurry: give a name, or an object with open"),
        ({"dataset": Digits(), "classes": 5}, "classes is given beside the dataset, which is an"),
        ({"dataset": Synthetic().load(), "flip": True}, "flip is given beside the dataset, which"),
        ({"dataset": Synthetic().load(), "image_size": 9}, "unknown field 'image_size' in a run"),
        ({"stream": Blurry(), "tasks": 5}, "tasks is given beside the stream, which is an object"),
        (
            {"memory_policy": Reservoir(5, torch.Generator()), "memory": 6},
            r"the memory Reservoir\(capacity=5, seen=0\) has the capacity 5 and memory is 6: give",
        ),
        ({"memory": object()}, "memory <object .* is of type object: give an integer from 0"),
        ({"encoder": np.zeros(3)}, "encoder array.* is of type ndarray: give text"),
        ({"encoder": ""}, "unknown encoder ''"),
        ({"optimizer": object()}, "optimizer <object .* is unknown: choose"),
        ({"memory": Boundless()}, r"the memory Boundless\(\) has the capacity None and memory is"),
        (
            {
                "memory": Reservoir(5, torch.Generator()),
                "memory_policy": Reservoir(5, torch.Generator()),
            },
            "memory and memory_policy are both objects: give one of them",
        ),
    ],
)
def test_wrong_objects_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=message):
        RunConfig.of(**values)


def test_objects_that_fail_in_use_are_refused_before_training(tmp_path: Path) -> None:
    class Odd:
        def open(self, dataset: Dataset, seed: int) -> Any:
            return []

        def load(self) -> Any:
            return 3

    with pytest.raises(SteradError, match=r"open\(\) of Odd\(\) returns a list: return a sterad"):
        run(stream=Odd(), out=tmp_path, execution=ONE_THREAD)
    with pytest.raises(SteradError, match=r"load\(\) of Odd\(\) returns a int: return a Dataset"):
        run(dataset=Odd(), out=tmp_path, execution=ONE_THREAD)
    with pytest.raises(SteradError, match=r"cannot be copied .it holds a socket.: give a function"):
        run(encoder=Uncopied(), out=tmp_path, execution=ONE_THREAD)
    with pytest.raises(SteradError, match="a RunConfig and method, seed: give these to RunConfig"):
        run(RunConfig.of(), tmp_path, method="er", seed=3)
    with pytest.raises(SteradError, match="run was given a NoneType and takes a RunConfig, or its"):
        run(out=tmp_path)
    with pytest.raises(SteradError, match="run was given a dict and takes a RunConfig, or its val"):
        run({}, tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
