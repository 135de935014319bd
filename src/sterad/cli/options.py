"""Options of a command: the fields of dataclasses, parsed and checked like all other values."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sterad.cli.help import print_help
from sterad.errors import SteradError
from sterad.validation import (
    build,
    describe,
    field_names,
    field_types,
    parse_value,
    resolve_field_name,
)

HELP = ("-h", "--help", "--help-all")
HINTS = {
    "arch": "use --encoder",
    "augmentation": "use --augmentation",
    "augment": "use --augmentation",
    "backbone": "use --encoder",
    "batch": "use --batch-size",
    "buffer": "use --memory",
    "bs": "use --batch-size",
    "cpu": "use --device cpu",
    "cuda": "use --device cuda",
    "data": "use --dataset NAME, and --root FOLDER where its files lie",
    "data_dir": "use --root",
    "dtype": "use --precision",
    "epochs": "a stream is seen once; --memory-iterations takes several steps on each batch",
    "fp16": "use --precision float16",
    "gpu": "use --device cuda",
    "iterations": "use --memory-iterations for several steps on each batch",
    "learning_rate": "use --lr",
    "log": "use --logger",
    "logger": "use --logger",
    "method": "name the method as a word of its own, without dashes",
    "model": "use --encoder for the network; the method is the first word",
    "n_epochs": "a stream is seen once; --memory-iterations takes several steps on each batch",
    "network": "use --encoder",
    "num_epochs": "a stream is seen once; --memory-iterations takes several steps on each batch",
    "num_threads": "use --threads",
    "num_workers": "use --threads for one run; studies and searches have --workers",
    "output": "use --out",
    "output_dir": "use --out",
    "resume": "the same command continues a run that was interrupted",
    "save_dir": "use --out",
    "seed": "a search has several, use --seeds",
    "wd": "use --weight-decay",
}
"""Words of other tools, and what to write here."""


@dataclass(frozen=True)
class Words:
    """A command line sorted: the words of each option by its field, and those of none."""

    given: dict[str, list[str]]
    positionals: list[str]


def positional(name: str, default: Any = dataclasses.MISSING) -> Any:
    """Return a dataclass field that is given by its place, shown as `name` in the help."""
    return field(default=default, metadata={"positional": name})


def read(cls: type[Any], argv: Sequence[str], prog: str) -> Any:
    """Return an instance of a dataclass from a command line; print its help where asked to."""
    places = [one for one in dataclasses.fields(cls) if "positional" in one.metadata]
    if set(argv) & set(HELP):
        print_help(prog, cls.__doc__ or "", {"Options": (cls,)}, folded="--help-all" not in argv)
        raise SystemExit(0)
    hints = field_types(cls)
    options = {name: hints[name] for name in set(field_names(cls)) - {one.name for one in places}}
    words = sort_words(argv, options, lambda name: unknown_option(name, options, prog))
    given = placed_words(words.positionals, places, hints, prog)
    return build(cls, typed_values(words.given | given, hints))


def placed_words(
    words: Sequence[str], places: Sequence[Any], hints: Mapping[str, Any], prog: str
) -> dict[str, list[str]]:
    """Return the words of the fields that are given by their place; a list takes all the rest."""
    given: dict[str, list[str]] = {}
    rest = list(words)
    for one in places:
        taken, rest = (rest, []) if is_list(hints[one.name]) else (rest[:1], rest[1:])
        if taken:
            given[one.name] = taken
        elif one.default is dataclasses.MISSING:
            raise SteradError(f"{prog} needs a {one.metadata['positional']}: see `{prog} --help`")
    if rest:
        raise SteradError(f"{rest[0]!r} is one word too many: see `{prog} --help`")
    return given


def sort_words(
    argv: Sequence[str], hints: Mapping[str, Any], refusal: Callable[[str], SteradError]
) -> Words:
    """Sort the words of a command line by the options that they belong to.

    An option takes the next word or what follows `=`, a switch takes none, a list of numbers all
    words up to the next option. `refusal` makes the error for an option that no field has.

    >>> sort_words(["er", "--seed=1", "--no-prune"], {"seed": int, "prune": bool}, SteradError)
    Words(given={'seed': ['1'], 'prune': ['false']}, positionals=['er'])
    """
    given: dict[str, list[str]] = {}
    positionals: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            positionals.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        fieldname = resolve_field_name(name)
        negated = fieldname.removeprefix("no_")
        if fieldname not in hints and is_switch(hints.get(negated)) and not equals:
            given[negated] = ["false"]
            continue
        if fieldname not in hints or not word.startswith("--"):
            raise refusal(name)
        hint = hints[fieldname]
        taken = [value] if equals else _taken(name, hint, words)
        given[fieldname] = [*given.get(fieldname, []), *taken] if is_list(hint) else taken
    return Words(given, positionals)


def _taken(name: str, hint: Any, words: list[str]) -> list[str]:
    """Return the words of an option, taken from the front of the rest."""
    if is_switch(hint):
        return ["true"]
    if not words or words[0].startswith("--"):
        raise SteradError(f"--{name} has no value: give {describe(hint)}")
    taken = [words.pop(0)]
    while is_list(hint) and _is_number(words[:1]) and _is_number(taken[-1:]):
        taken.append(words.pop(0))
    return taken


def _is_number(words: Sequence[str]) -> bool:
    return bool(words) and words[0].lstrip("-").replace(".", "", 1).isdecimal()


def typed_values(given: Mapping[str, Sequence[str]], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that words mean, checked against the types and ranges of their fields."""
    return {name: parse_value(_spelt(name), words, hints[name]) for name, words in given.items()}


def unknown_option(
    name: str, known: Iterable[str], prog: str, owners: Mapping[str, Sequence[str]] | None = None
) -> SteradError:
    """Return the error for an option that a command does not have.

    owners: the components that have a field of some name, where these are not chosen.
    """
    plain = resolve_field_name(name)
    belongs = [f"it belongs to {', '.join(owners[plain])}"] if owners and plain in owners else []
    if name.startswith("-") and plain.lstrip("_") in known:
        hint = f"options begin with two dashes, {_spelt(plain.lstrip('_'))}"
    elif prog == "sterad study" and not belongs and plain not in HINTS:
        hint = "the values of its runs stand in FILE; see `sterad study --help`"
    elif belongs or plain in HINTS:
        hint = "; ".join([HINTS[plain], *belongs] if plain in HINTS else belongs)
    else:
        near = difflib.get_close_matches(plain, list(known), n=1)
        hint = f"did you mean {_spelt(near[0])}?" if near else f"see `{prog} --help`"
    dashes = "-" if name.startswith("-") else "--"
    return SteradError(f"unknown option {dashes}{name.lstrip('-')}: {hint}")


def is_switch(hint: Any) -> bool:
    """Return whether an option takes no word: --name and --no-name."""
    return hint is bool or (_is_union(hint) and bool in typing.get_args(hint))


def is_list(hint: Any) -> bool:
    """Return whether an option may be given several times."""
    return typing.get_origin(hint) is tuple or (
        _is_union(hint) and any(map(is_list, typing.get_args(hint)))
    )


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _spelt(name: str) -> str:
    return f"--{name.replace('_', '-')}"
