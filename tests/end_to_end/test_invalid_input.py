"""Invalid input, generated from the declared options and signatures, is refused with a message.

On the command line: exit code 2 and one line of text. In Python: a SteradError.
"""

import math
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import numpy as np
import pytest

from sterad import Dataset, OnlineClassifier, RunConfig, Study, run
from sterad.cli import main
from sterad.cli.bench import BenchOptions
from sterad.cli.components import REGISTRIES
from sterad.cli.search import SearchOptions
from sterad.cli.stream import StreamOptions
from sterad.cli.train import OutputOptions
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunSettings
from sterad.experiments.launchers import LAUNCHERS
from sterad.sphere import LAWS
from sterad.threads import cores
from sterad.validation import (
    BatchSize,
    Count,
    MemorySize,
    Positive,
    Range,
    Seed,
    Width,
    field_names,
    field_types,
)

TINY = [
    *("--dataset", "synthetic", "--classes", "2", "--per-class", "4", "--test-per-class", "2"),
    *("--tasks", "2", "--memory", "4", "--width", "2", "--threads", "1"),
]
NAMES = ("augmentation", "head", "classifier", "encoder", "device", "logger", "tuned", "base")
"""Text options that accept only registered names."""
INPUTS = ("config", "plugin", "space", "npz_file", "folder", "file")
"""Options that take the path of an existing file or folder."""


def split_hint(hint: Any) -> tuple[Any, Range | None]:
    """Return a type without `None` and annotations, and its range."""
    limits = None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(t for t in typing.get_args(hint) if t is not type(None))
    if typing.get_origin(hint) is Annotated:
        hint, *metadata = typing.get_args(hint)
        limits = next((item for item in metadata if isinstance(item, Range)), None)
    return hint, limits


def invalid_arguments(name: str, hint: Any) -> list[str]:
    """Return invalid arguments for an option."""
    plain, limits = split_hint(hint)
    if plain is bool:
        return ["=maybe", "=2", "="]
    if typing.get_origin(plain) is tuple:
        return invalid_arguments(name, typing.get_args(plain)[0])
    numbers = {int: ["1.5", "1e3", "0x10"], float: ["1,5", "inf", "-inf"]}
    if plain in numbers:
        outside = [] if limits is None else [_below(limits, plain), _above(limits, plain)]
        return ["many", "", "nan", "9" * 40, *numbers[plain], *outside]
    if typing.get_origin(plain) is Literal or name in NAMES:
        return ["nonsense", "", "Nonsense-9"]
    if name in INPUTS:
        return ["missing-file", "", "."] if name not in ("folder",) else ["missing-file", ""]
    return [""]


def _below(limits: Range, kind: type[Any]) -> str:
    return str(kind(limits.low) if limits.open_low else kind(limits.low) - 1)


def _above(limits: Range, kind: type[Any]) -> str:
    return str(kind(limits.high) if limits.open_high else kind(limits.high) + 1)


def command_lines(
    prefix: list[str], *classes: type[Any], without: tuple[str, ...] = ()
) -> Iterator[Any]:
    """Yield a command line for every invalid value of every option."""
    for cls in classes:
        hints = field_types(cls)
        for name in field_names(cls):
            if name in without or "positional" in cls.__dataclass_fields__[name].metadata:
                continue
            option = f"--{name.replace('_', '-')}"
            for word in invalid_arguments(name, hints[name]):
                joined = [f"{option}{word}"] if word.startswith("=") else [option, word]
                yield [*prefix, *joined]
            if split_hint(hints[name])[0] is not bool:
                yield [*prefix, option]


def config_class(kind: str, name: str) -> type[Any]:
    component = REGISTRIES[kind][name]
    config: type[Any] = getattr(component, "Config", component)
    return config


def built_in(kind: str) -> list[str]:
    """Return the components of the package, without those that other tests register."""
    registry = REGISTRIES[kind]
    return [name for name in registry if registry.qualified_name(name).startswith("sterad.")]


def train_command_lines() -> Iterator[list[str]]:
    yield from command_lines(["train", "er", *TINY], RunSettings, OutputOptions, Execution)
    seen: set[str] = set()
    for method in built_in("method"):  # each field once: methods share most of them
        config = config_class("method", method)
        yield from command_lines(["train", method, *TINY], config, without=tuple(seen))
        seen |= set(field_names(config))
    for kind in ("dataset", "stream"):
        for name in built_in(kind):
            plain = ["train", "er", "--memory", "4", "--width", "2", "--threads", "1"]
            yield from command_lines(
                [*plain, f"--{kind}", name], config_class(kind, name), without=("root",)
            )
    for kind in ("method", "dataset", "stream"):
        place = [] if kind == "method" else [f"--{kind}"]
        yield from (["train", *place, word] for word in ("", "nonsense", "42"))


def other_command_lines() -> Iterator[list[str]]:
    yield from command_lines(["search", "er", *TINY], SearchOptions)
    yield from command_lines(["stream", "clear", "--dataset", "synthetic"], StreamOptions)
    yield from command_lines(["bench", "er", "--image-size", "8"], BenchOptions)
    for launcher in built_in("launcher"):
        words = ["study", "small.toml", "--launcher", launcher]
        yield from command_lines(words, LAUNCHERS[launcher])
    for word in ("nonsense", "", "9"):
        yield from (["list", word], ["bench", word], ["data", word], ["search", word], [word])
        yield from (["data", "get", word], ["data", "check", word], ["stream", word])
    for word in ("missing.toml", ".", "empty.toml", "broken.toml", "binary.toml", ""):
        yield ["study", word]
    for command in ("report", "verify"):
        yield from ([command, word] for word in ("missing", "small.toml", "", "a", "b"))
    for command in ("list", "train", "study", "search", "report", "verify", "stream", "bench"):
        yield [command, "--nonsense"]
        yield [command, "-x"]
    yield from (["train", "er", "er"], ["report", "a", "b"], ["study"], ["search"], ["data", "get"])
    for word in ("epochs", "learning-rate", "gpu", "temperature", "candidates", "no-views"):
        yield ["train", "er", *TINY, f"--{word}", "1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STERAD_DATA", raising=False)
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "broken.toml").write_text("[fixed\n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "small.toml").write_text('[fixed]\ndataset = "synthetic"\nmethod = "finetune"\n')
    return tmp_path


def find_problem(words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return what is wrong, or None if the command line is refused with a message and code 2."""
    try:
        code = main(words)
    except BaseException as error:
        return f"{words}: {type(error).__name__}: {str(error)[:200]}"
    errors = capsys.readouterr().err.strip()
    if code != 2:
        return f"{words}: exit code {code}, {errors[-200:]!r}"
    if not re.search(r"^sterad: .{15,}", errors, re.MULTILINE) or "Traceback" in errors:
        return f"{words}: no message, {errors[-200:]!r}"
    return None


@pytest.mark.parametrize("make", [train_command_lines, other_command_lines])
def test_the_command_line_refuses_invalid_input(
    make: Callable[[], Iterator[list[str]]], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    cases = list(make())
    assert len(cases) >= 100
    before = sorted(folder.rglob("*"))
    problems = [p for words in cases if (p := find_problem(words, capsys)) is not None]
    assert not problems, f"{len(problems)} of {len(cases)}:\n" + "\n".join(problems)
    assert list(folder.rglob("record.json*")) == []
    assert set(before) <= set(folder.rglob("*"))


def invalid_values(hint: Any) -> list[Any]:
    """Return values of other types than a parameter takes, and numbers outside its range."""
    plain, limits = split_hint(hint)
    values: list[Any] = [object(), {"a": 1}, b"x", 1 + 2j, np.zeros(3)]
    values.append(["x", None] if get_origin(plain) is tuple else [1, 2])
    if plain in (int, float):
        values += ["many", "", math.nan, math.inf, 10**30, True]
        values += [] if limits is None else [limits.low - 1, limits.high + 1, -math.inf]
    elif plain is bool:
        values += ["yes", 1, 0, 2.5]
    else:
        values += ["nonsense", "", 3, 2.5, True]
    return values


Calls = Iterator[tuple[str, Callable[[], object]]]


ARGUMENTS: dict[str, Any] = {
    **{name: str for name in ("method", "encoder", "optimizer", "augment", "classifier", "device")},
    **{name: bool for name in ("flip", "frozen", "compile")},
    "memory": MemorySize,
    "width": Width,
    "batch_size": BatchSize,
    "seed": Seed,
    "precision": str,
    "threads": Count,
    "on_divergence": str,
    "lr": Positive,
}


def estimator_calls() -> Calls:
    x, y = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1])

    def fit(name: str, value: Any) -> None:
        OnlineClassifier(**{"width": 2, "memory": 5, name: value}).fit(x, y)

    for name, hint in ARGUMENTS.items():
        for value in invalid_values(hint):
            yield f"OnlineClassifier({name}={value!r})", partial(fit, name, value)
    for fields in (3, "x", [1]):
        yield f"OnlineClassifier(fields={fields!r})", partial(fit, "fields", fields)


def config_calls() -> Calls:
    shared: dict[str, Any] = {"dataset": "synthetic", "per_class": 4}
    hints = field_types(RunSettings) | field_types(config_class("method", "agd-fd"))
    for name, hint in hints.items():
        if split_hint(hint)[0] is str and name not in ("encoder", "method"):
            continue  # names of components are checked when a learner is built
        for value in invalid_values(hint):
            yield (
                f"RunConfig.of({name}={value!r})",
                partial(RunConfig.of, **(shared | {name: value})),
            )


def law_calls() -> Calls:
    means = ["north", object(), None, [], [1.0], [0.5, 0.5], [math.nan, 1.0], [math.inf, 0.0], 3]
    concentrations = ["high", object(), None, -1.0, math.nan, math.inf, [1.0, -2.0]]
    for name in LAWS:
        cls: Any = LAWS[name]
        law = partial(cls, **({"df": 3.0} if "student" in name else {}))
        yield from ((f"{name}({mean!r})", partial(law, mean, 1.0)) for mean in means)
        for kappa in concentrations:
            yield f"{name}(κ={kappa!r})", partial(law, [0.0, 1.0], kappa)


def data_calls() -> Calls:
    x, y = np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1])
    inputs: list[Any] = [None, "x", 3, [], [[]], {"a": 1}, np.zeros((0, 8, 8)), np.zeros((2,) * 5)]
    inputs += [np.full((4, 8, 8), 7.0), np.full((4, 3), np.nan), np.zeros((4, 8, 8), complex)]
    labels: list[Any] = [None, "x", 3, [], [0.5] * 4, [[0], [1]] * 2, [None] * 4, [0, 1], object()]
    for bad in inputs:
        yield f"partial_fit({bad!r:.20})", partial(OnlineClassifier().partial_fit, bad, y)
        yield f"from_arrays({bad!r:.20})", partial(Dataset.from_arrays, bad, y, x, y)
    for bad in labels:
        yield f"partial_fit(y={bad!r})", partial(OnlineClassifier().partial_fit, x, bad)
        yield f"from_arrays(y={bad!r})", partial(Dataset.from_arrays, x, bad, x, y)
    configs: list[Any] = [None, 3, "digits", Dataset.from_arrays(x, y, x, y), {}]
    yield from ((f"run({bad!r:.20})", partial(run, bad)) for bad in configs)
    for file in ["missing.toml", ".", "", "empty.toml", "broken.toml", "binary.toml"]:
        yield f"Study.from_toml({file!r})", partial(Study.from_toml, file)
        yield f"load({file!r})", partial(OnlineClassifier.load, file)
    for threads in [cores() + 1, 1000, 10**9]:  # refused before a thread is started
        yield f"threads={threads}", partial(Execution.from_options, threads=threads)


@pytest.mark.parametrize("make", [estimator_calls, config_calls, law_calls, data_calls])
def test_python_calls_refuse_invalid_input(make: Callable[[], Calls]) -> None:
    cases, problems = list(make()), []
    assert len(cases) >= 25
    for name, call in cases:
        try:
            call()
            problems.append(f"{name} was accepted")
        except SteradError as error:
            if len(str(error)) < 15:
                problems.append(f"{name}: no message, {error}")
        except Exception as error:
            problems.append(f"{name}: {type(error).__name__}: {str(error)[:150]}")
    assert not problems, f"{len(problems)} of {len(cases)}:\n" + "\n".join(problems)
