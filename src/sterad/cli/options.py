"""Options of what is named on the command line: the fields of a method, dataset or stream."""

import dataclasses
from dataclasses import field
from typing import Annotated, Any

import tyro

from sterad.data import DATASETS
from sterad.experiments.config import ALIASES, deal
from sterad.experiments.fields import build
from sterad.experiments.toml_file import read_toml
from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS
from sterad.registry import Registry, load_plugin
from sterad.streams import STREAMS

NAMES: dict[str, Registry[Any]] = {"method": METHODS, "dataset": DATASETS, "stream": STREAMS}
USUAL = {"method": "agd-fd", "dataset": "digits", "stream": "clear"}


def parse(
    argv: list[str], positional: str, named: tuple[str, ...], extra: dict[str, Any], prog: str
) -> Any:
    """Return parsed options of one positional name, of `named` ones, and of `extra` dataclasses.

    What is parsed has the names as `method`, `dataset`, `stream`, their fields as `of_method` and
    so on, and the extra dataclasses under their own keys.
    """
    argv = [_unaliased(word) for word in argv]
    chosen, given = _peek(argv, positional, named)
    return tyro.cli(
        _options(chosen, given, positional, extra),
        args=argv,
        prog=prog,
        config=(tyro.conf.OmitArgPrefixes,),
        description=_description(positional, chosen[positional]),
    )


def flat(parsed: Any, parts: tuple[str, ...]) -> dict[str, Any]:
    """Return names and fields of some parts of what was parsed, as `RunConfig.of` takes them."""
    values: dict[str, Any] = {}
    for part in parts:
        value = getattr(parsed, part)
        if isinstance(value, str):
            values[part] = value
            value = getattr(parsed, f"of_{part}")
        values |= {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    return values


def _unaliased(word: str) -> str:
    name, equals, value = word.partition("=")
    key = name.removeprefix("--").replace("-", "_")
    if name.startswith("--") and key in ALIASES:
        return f"--{ALIASES[key]}{equals}{value}"
    return word


def _peek(
    argv: list[str], positional: str, named: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what was chosen, and the values of a file, before anything is parsed."""
    for file in values_of(argv, "plugin"):
        load_plugin(file)
    files = values_of(argv, "config")
    given = read_toml(files[-1], "the config") if files else {}
    chosen = {name: given.pop(name, USUAL[name]) for name in (positional, *named)}
    if argv and not argv[0].startswith("-"):
        chosen[positional] = argv[0]
    for name in named:
        if values := values_of(argv, name):
            chosen[name] = values[-1]
    chosen = {name: NAMES[name].resolve(value) for name, value in chosen.items()}
    if tuned := values_of(argv, "tuned"):
        given = tuned_values(tuned[-1], chosen["method"]) | given
    return chosen, given


def values_of(argv: list[str], option: str) -> list[str]:
    """Return what is given for an option, before anything is parsed."""
    values: list[str] = []
    for at, word in enumerate(argv):
        if word.startswith(f"--{option}="):
            values.append(word.partition("=")[2])
        elif word == f"--{option}":
            rest = argv[at + 1 :]
            end = next((i for i, w in enumerate(rest) if w.startswith("--")), len(rest))
            values += rest[: end if option == "plugin" else 1]
    return values


def _options(
    chosen: dict[str, str], given: dict[str, Any], positional: str, extra: dict[str, Any]
) -> type[Any]:
    """Return a dataclass whose flattened fields are all options of what was chosen."""
    taken = {one.name for value in extra.values() for one in dataclasses.fields(value)}
    owners: dict[str, type[Any]] = {
        f"of_{name}": _without(getattr(NAMES[name][value], "Config", NAMES[name][value]), taken)
        for name, value in chosen.items()
    }
    parts = deal(given, owners | {k: type(v) for k, v in extra.items()}, "the config file")
    help_text = tyro.conf.arg(help="see `sterad list`")
    words: list[Any] = [
        (
            name,
            Annotated[str, tyro.conf.Positional, help_text]
            if name == positional
            else Annotated[str, help_text],
            field(default=value),
        )
        for name, value in chosen.items()
    ]
    nested = [(k, owner, field(default=build(owner, parts[k]))) for k, owner in owners.items()]
    others = [
        (k, type(v), field(default=dataclasses.replace(v, **parts[k]))) for k, v in extra.items()
    ]
    return dataclasses.make_dataclass("Options", [*words, *others, *nested], frozen=True)


def _without(owner: type[Any], taken: set[str]) -> type[Any]:
    """Return a description whose fields that the command calls its own are no options.

    `--objective` of a search is the search's, though AGD-FD has a field of that name.
    """
    hidden: list[Any] = [
        (one.name, Annotated[Any, tyro.conf.Fixed, tyro.conf.Suppress], field(default=one.default))
        for one in dataclasses.fields(owner)
        if one.name in taken
    ]
    if not hidden:
        return owner
    return dataclasses.make_dataclass(owner.__name__, hidden, bases=(owner,), frozen=True)


def _description(kind: str, name: str) -> str:
    return f"{name}: {(NAMES[kind][name].__doc__ or '').partition(chr(10))[0]}"
