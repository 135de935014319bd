"""Wrong input of every kind, made from the options and signatures themselves, meets a sentence.

On the command line: exit code 2 and one line of text. In Python: a SteradError. Never a traceback,
and nothing wrong is accepted in silence.
"""

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

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
from sterad.validation import Range, field_names, field_types

TINY = [
    *("--dataset", "synthetic", "--classes", "2", "--per-class", "4", "--test-per-class", "2"),
    *("--tasks", "2", "--memory", "4", "--width", "2", "--threads", "1"),
]
NAMES = ("augmentation", "head", "classifier", "encoder", "device", "logger", "tuned", "base")
"""Options whose text is a name: any other is wrong."""
INPUTS = ("config", "plugin", "space", "npz_file", "folder", "file")
"""Options that name something to read."""


def split(hint: Any) -> tuple[Any, Range | None]:
    """Return a type without `None` and annotations, and its range."""
    limits = None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is Annotated:
        hint, *extras = typing.get_args(hint)
        limits = next((one for one in extras if isinstance(one, Range)), None)
    return hint, limits


def wrong_words(name: str, hint: Any) -> list[str]:
    """Return what a user might type for an option and should not."""
    plain, limits = split(hint)
    if plain is bool:
        return ["=maybe", "=2", "="]
    if typing.get_origin(plain) is tuple:
        return wrong_words(name, typing.get_args(plain)[0])
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


def cases(prefix: list[str], *described: type[Any], without: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield a command line for every wrong value of every option."""
    for cls in described:
        hints = field_types(cls)
        for name in field_names(cls):
            if name in without or "positional" in cls.__dataclass_fields__[name].metadata:
                continue
            option = f"--{name.replace('_', '-')}"
            for word in wrong_words(name, hints[name]):
                joined = [f"{option}{word}"] if word.startswith("=") else [option, word]
                yield [*prefix, *joined]
            if split(hints[name])[0] is not bool:
                yield [*prefix, option]


def described(kind: str, name: str) -> type[Any]:
    thing = REGISTRIES[kind][name]
    found: type[Any] = getattr(thing, "Config", thing)
    return found


def ours(kind: str) -> list[str]:
    """Return the components of the package, without those of other tests."""
    registry = REGISTRIES[kind]
    return [name for name in registry if registry.qualified_name(name).startswith("sterad.")]


def of_train() -> Iterator[list[str]]:
    yield from cases(["train", "er", *TINY], RunSettings, OutputOptions, Execution)
    seen: set[str] = set()
    for method in ours("method"):  # each field once: most are shared
        config = described("method", method)
        yield from cases(["train", method, *TINY], config, without=tuple(seen))
        seen |= set(field_names(config))
    for kind in ("dataset", "stream"):
        for name in ours(kind):
            plain = ["train", "er", "--memory", "4", "--width", "2", "--threads", "1"]
            yield from cases([*plain, f"--{kind}", name], described(kind, name), without=("root",))
    for kind in ("method", "dataset", "stream"):
        place = [] if kind == "method" else [f"--{kind}"]
        yield from (["train", *place, word] for word in ("", "nonsense", "42"))


def of_others() -> Iterator[list[str]]:
    yield from cases(["search", "er", *TINY], SearchOptions)
    yield from cases(["stream", "clear", "--dataset", "synthetic"], StreamOptions)
    yield from cases(["bench", "er", "--image-size", "8"], BenchOptions)
    for launcher in ours("launcher"):
        words = ["study", "small.toml", "--launcher", launcher]
        yield from cases(words, LAUNCHERS[launcher])
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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("STERAD_DATA", raising=False)
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "broken.toml").write_text("[fixed\n")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "small.toml").write_text('[fixed]\ndataset = "synthetic"\nmethod = "finetune"\n')
    return tmp_path


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return what is wrong with the answer to a wrong command line; None for a sentence and 2."""
    try:
        code = main(words)
    except BaseException as error:
        return f"{words}: {type(error).__name__}: {str(error)[:200]}"
    said = capsys.readouterr().err.strip()
    if code != 2:
        return f"{words}: exit code {code}, {said[-200:]!r}"
    if not re.search(r"^sterad: .{15,}", said, re.MULTILINE) or "Traceback" in said:
        return f"{words}: no sentence, {said[-200:]!r}"
    return None


@pytest.mark.parametrize("make", [of_train, of_others])
def test_the_command_line_refuses(
    make: Callable[[], Iterator[list[str]]], capsys: pytest.CaptureFixture[str], place: Path
) -> None:
    every = list(make())
    assert len(every) >= 100
    before = sorted(place.rglob("*"))
    wrong = [flaw for words in every if (flaw := refused(words, capsys)) is not None]
    assert not wrong, f"{len(wrong)} of {len(every)}:\n" + "\n".join(wrong)
    assert [one for one in sorted(place.rglob("*")) if "record.json" in one.name] == []
    assert set(before) <= set(place.rglob("*"))


def wrong_values(hint: Any) -> list[Any]:
    """Return values of other types than a parameter takes, and numbers outside its range."""
    plain, limits = split(hint)
    values: list[Any] = [object(), [1, 2], {"a": 1}, b"x", 1 + 2j, np.zeros(3)]
    if plain in (int, float):
        values += ["many", "", math.nan, math.inf, 10**30, True]
        values += [] if limits is None else [limits.low - 1, limits.high + 1, -math.inf]
    elif plain is bool:
        values += ["yes", 1, 0, 2.5]
    else:
        values += ["nonsense", "", 3, 2.5, True]
    return values


Calls = Iterator[tuple[str, Callable[[], object]]]


def of_estimator() -> Calls:
    made: Any = OnlineClassifier
    hints = typing.get_type_hints(made.__init__, include_extras=True)
    for name in inspect.signature(made).parameters:
        for value in wrong_values(hints[name]) if name != "fields" else [3, "x", {"a": 1}, [1]]:
            yield f"OnlineClassifier({name}={value!r})", partial(made, **{name: value})


def of_config() -> Calls:
    shared: dict[str, Any] = {"dataset": "synthetic", "per_class": 4}
    hints = field_types(RunSettings) | field_types(described("method", "agd-fd"))
    for name, hint in hints.items():
        if split(hint)[0] is str and name not in ("encoder", "method"):
            continue  # names of parts are checked when a learner is made
        for value in wrong_values(hint):
            yield (
                f"RunConfig.of({name}={value!r})",
                partial(RunConfig.of, **(shared | {name: value})),
            )


def of_laws() -> Calls:
    means = ["north", object(), None, [], [1.0], [0.5, 0.5], [math.nan, 1.0], [math.inf, 0.0], 3]
    concentrations = ["high", object(), None, -1.0, math.nan, math.inf, [1.0, -2.0]]
    for name in LAWS:
        cls: Any = LAWS[name]
        law = partial(cls, **({"df": 3.0} if "student" in name else {}))
        yield from ((f"{name}({mean!r})", partial(law, mean, 1.0)) for mean in means)
        for kappa in concentrations:
            yield f"{name}(κ={kappa!r})", partial(law, [0.0, 1.0], kappa)


def of_calls() -> Calls:
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
        yield f"threads={threads}", partial(Execution.chosen, threads=threads)


@pytest.mark.parametrize("make", [of_estimator, of_config, of_laws, of_calls])
def test_python_refuses(make: Callable[[], Calls]) -> None:
    every, wrong = list(make()), []
    assert len(every) >= 25
    for name, call in every:
        try:
            call()
            wrong.append(f"{name} was accepted")
        except SteradError as error:
            if len(str(error)) < 15:
                wrong.append(f"{name}: no sentence, {error}")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:150]}")
    assert not wrong, f"{len(wrong)} of {len(every)}:\n" + "\n".join(wrong)
