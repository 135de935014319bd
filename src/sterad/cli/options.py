"""Command-line options: fields of dataclasses, parsed and checked against their types."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sterad.cli.help import option_name, print_help
from sterad.errors import SteradError
from sterad.validation import (
    build,
    describe,
    field_names,
    field_types,
    parse_value,
    resolve_field_name,
)

HELP_FLAGS = ("-h", "--help", "--help-all")
_NO_EPOCHS = "a stream is seen once; --memory-iterations takes several steps on each batch"
OPTIONS_OF_OTHER_TOOLS = {
    "arch": "use --encoder",
    "augment": "use --augmentation",
    "backbone": "use --encoder",
    "batch": "use --batch-size",
    "buffer": "use --memory",
    "bs": "use --batch-size",
    "cpu": "use --device cpu",
    "cuda": "use --device cuda",
    "data": "use --dataset NAME, and --root FOLDER for the folder of its files",
    "data_dir": "use --root",
    "dtype": "use --precision",
    "epochs": _NO_EPOCHS,
    "fp16": "use --precision float16",
    "gpu": "use --device cuda",
    "iterations": "use --memory-iterations for several steps on each batch",
    "learning_rate": "use --lr",
    "log": "use --logger",
    "method": "give the method as the first argument, without dashes",
    "model": "use --encoder for the network; the method is the first argument",
    "n_epochs": _NO_EPOCHS,
    "network": "use --encoder",
    "num_epochs": _NO_EPOCHS,
    "num_threads": "use --threads",
    "num_workers": "use --threads for one run; studies and searches have --workers",
    "output": "use --out",
    "output_dir": "use --out",
    "resume": "the same command continues an interrupted run",
    "save_dir": "use --out",
    "seed": "a search has several, use --seeds",
    "wd": "use --weight-decay",
}
"""What to use here for common options of other tools."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a command line: those of each option by field name, and the others."""

    options: dict[str, list[str]]
    positionals: list[str]


def positional(name: str, default: Any = dataclasses.MISSING) -> Any:
    """Return a dataclass field for a positional argument, shown as `name` in the help."""
    return field(default=default, metadata={"positional": name})


def parse_options(cls: type[Any], argv: Sequence[str], prog: str) -> Any:
    """Return an instance of a dataclass from a command line; print its help for --help."""
    if set(argv) & set(HELP_FLAGS):
        show_advanced = "--help-all" in argv
        print_help(prog, cls.__doc__ or "", {"Options": (cls,)}, show_advanced=show_advanced)
        raise SystemExit(0)
    positionals = [f for f in dataclasses.fields(cls) if "positional" in f.metadata]
    hints = field_types(cls)
    options = {n: hints[n] for n in set(field_names(cls)) - {f.name for f in positionals}}
    arguments = split_arguments(argv, options, lambda name: unknown_option(name, options, prog))
    assigned = assign_positionals(arguments.positionals, positionals, hints, prog)
    return build(cls, parse_values(arguments.options | assigned, hints))


def assign_positionals(
    arguments: Sequence[str], fields: Sequence[Any], hints: Mapping[str, Any], prog: str
) -> dict[str, list[str]]:
    """Return the arguments of each positional field; a list takes all remaining ones."""
    assigned: dict[str, list[str]] = {}
    rest = list(arguments)
    for field_ in fields:
        taken, rest = (rest, []) if is_list(hints[field_.name]) else (rest[:1], rest[1:])
        if taken:
            assigned[field_.name] = taken
        elif field_.default is dataclasses.MISSING:
            needed = field_.metadata["positional"]
            raise SteradError(f"{prog} needs a {needed}: see `{prog} --help`")
    if rest:
        raise SteradError(f"unexpected argument {rest[0]!r}: see `{prog} --help`")
    return assigned


def split_arguments(
    argv: Sequence[str], hints: Mapping[str, Any], make_error: Callable[[str], SteradError]
) -> Arguments:
    """Split a command line into the arguments of each option and the positional ones.

    An option takes the next argument or the text after `=`, a flag takes none, a list of numbers
    takes all numbers that follow. `make_error` returns the error for an unknown option.

    >>> split_arguments(["er", "--seed=1", "--no-prune"], {"seed": int, "prune": bool}, SteradError)
    Arguments(options={'seed': ['1'], 'prune': ['false']}, positionals=['er'])
    """
    options: dict[str, list[str]] = {}
    positionals: list[str] = []
    rest = list(argv)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-"):
            positionals.append(argument)
            continue
        option, equals, value = argument.removeprefix("--").partition("=")
        name = resolve_field_name(option)
        negated = name.removeprefix("no_")
        if name not in hints and is_flag(hints.get(negated)) and not equals:
            options[negated] = ["false"]
            continue
        if name not in hints or not argument.startswith("--"):
            raise make_error(option)
        hint = hints[name]
        values = [value] if equals else _take_values(option, hint, rest)
        options[name] = [*options.get(name, []), *values] if is_list(hint) else values
    return Arguments(options, positionals)


def _take_values(option: str, hint: Any, rest: list[str]) -> list[str]:
    """Remove the values of an option from the front of the remaining arguments."""
    if is_flag(hint):
        return ["true"]
    if not rest or rest[0].startswith("--"):
        raise SteradError(f"--{option} has no value: give {describe(hint)}")
    values = [rest.pop(0)]
    while is_list(hint) and rest and _is_number(rest[0]) and _is_number(values[-1]):
        values.append(rest.pop(0))
    return values


def _is_number(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdecimal()


def parse_values(options: Mapping[str, Sequence[str]], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of options, checked against the types and ranges of their fields."""
    return {name: parse_value(option_name(name), v, hints[name]) for name, v in options.items()}


def unknown_option(
    option: str, known: Iterable[str], prog: str, owners: Mapping[str, Sequence[str]] | None = None
) -> SteradError:
    """Return the error for an unknown option, with a hint.

    owners: the components that have a field of this name, if they are not chosen.
    """
    name = resolve_field_name(option)
    hints = [OPTIONS_OF_OTHER_TOOLS[name]] if name in OPTIONS_OF_OTHER_TOOLS else []
    if owners and name in owners:
        hints.append(f"it belongs to {', '.join(owners[name])}")
    if option.startswith("-") and name.lstrip("_") in known:
        hints = [f"options begin with two dashes, {option_name(name.lstrip('_'))}"]
    elif prog == "sterad study" and not hints:
        hints = ["the values of runs are given in FILE; see `sterad study --help`"]
    elif not hints:
        near = difflib.get_close_matches(name, list(known), n=1)
        hints = [f"did you mean {option_name(near[0])}?" if near else f"see `{prog} --help`"]
    dashes = "-" if option.startswith("-") else "--"
    return SteradError(f"unknown option {dashes}{option.lstrip('-')}: {'; '.join(hints)}")


def is_flag(hint: Any) -> bool:
    """Return whether an option takes no value: --name and --no-name."""
    return hint is bool or (_is_union(hint) and bool in typing.get_args(hint))


def is_list(hint: Any) -> bool:
    """Return whether an option accepts several values."""
    return typing.get_origin(hint) is tuple or (
        _is_union(hint) and any(map(is_list, typing.get_args(hint)))
    )


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)
