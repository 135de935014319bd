"""Command-line options: fields of dataclasses, parsed and checked against their types."""

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sterad.cli.help import option_name, positional_fields, print_help
from sterad.errors import SteradError
from sterad.validation import (
    build,
    describe,
    field_types,
    parse_value,
    resolve_field_name,
    union_members,
)

HELP_FLAGS = ("-h", "--help", "--help-all")
_NO_EPOCHS = "a stream is seen once; --memory-iterations takes several steps on each batch"
OPTIONS_OF_OTHER_TOOLS = {
    "use --augmentation": ("augment",),
    "use --batch-size": ("batch", "bs"),
    "use --dataset NAME, and --root FOLDER for the folder of its files": ("data",),
    "use --device cpu": ("cpu",),
    "use --device cuda": ("cuda", "gpu"),
    "use --encoder": ("arch", "backbone", "network"),
    "use --encoder for the network; the method is the first argument": ("model",),
    "use --logger": ("log",),
    "use --lr": ("learning_rate",),
    "use --memory": ("buffer",),
    "use --memory-iterations for several steps on each batch": ("iterations",),
    "use --out": ("output", "output_dir", "save_dir"),
    "use --precision": ("dtype",),
    "use --precision float16": ("fp16",),
    "use --root": ("data_dir",),
    "use --threads": ("num_threads",),
    "use --threads for one run; studies and searches have --workers": ("num_workers",),
    "use --weight-decay": ("wd",),
    "a search has several, use --seeds": ("seed",),
    _NO_EPOCHS: ("epochs", "n_epochs", "num_epochs"),
    "give the method as the first argument, without dashes": ("method",),
    "the same command continues an interrupted run": ("resume",),
}
"""What to use here, and the common options of other tools in its place."""


def positional(name: str, default: Any = dataclasses.MISSING) -> Any:
    """Return a dataclass field for a positional argument, shown as `name` in the help."""
    return dataclasses.field(default=default, metadata={"positional": name})


def parse_options(cls: type[Any], argv: Sequence[str], prog: str) -> Any:
    """Return an instance of a dataclass from a command line; print its help for --help."""
    if set(argv) & set(HELP_FLAGS):
        show_advanced = "--help-all" in argv
        print_help(prog, cls.__doc__ or "", {"Options": (cls,)}, show_advanced=show_advanced)
        raise SystemExit(0)
    positionals, hints = positional_fields([cls]), field_types(cls)
    names = hints.keys() - {field.name for field in positionals}
    options, rest = split_arguments(argv, {name: hints[name] for name in names}, prog)
    options |= assign_positionals(rest, positionals, hints, prog)
    return build(cls, parse_values(options, hints))


def check_out(out: Path) -> None:
    """Refuse a file as the folder of new runs, before anything is computed."""
    if out.exists() and not out.is_dir():
        raise SteradError(
            f"--out {str(out)!r} is a file: give a folder, which is created if it does not exist"
        )


def assign_positionals(
    arguments: Sequence[str], fields: Sequence[Any], hints: Mapping[str, Any], prog: str
) -> dict[str, list[str]]:
    """Return the arguments of each positional field; a list takes all remaining ones."""
    assigned: dict[str, list[str]] = {}
    rest = list(arguments)
    for field in fields:
        taken, rest = (rest, []) if is_list(hints[field.name]) else (rest[:1], rest[1:])
        if taken:
            assigned[field.name] = taken
        elif field.default is dataclasses.MISSING:
            needed = field.metadata["positional"]
            article = "a " if len(needed) > 1 else ""  # A and B are names
            raise SteradError(f"{prog} needs {article}{needed}: see `{prog} --help`")
    if rest:
        raise SteradError(f"unexpected argument {rest[0]!r}: see `{prog} --help`")
    return assigned


def split_arguments(
    argv: Sequence[str], hints: Mapping[str, Any], prog: str
) -> tuple[dict[str, list[str]], list[str]]:
    """Split a command line into the arguments of each option and the positional ones.

    An option takes the next argument or the text after `=`, a flag takes none, a list of numbers
    takes all numbers that follow.

    >>> split_arguments(["er", "--seed=1", "--no-prune"], {"seed": int, "prune": bool}, "sterad it")
    ({'seed': ['1'], 'prune': ['false']}, ['er'])
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
            raise unknown_option(option, hints, prog)
        hint = hints[name]
        values = [value] if equals else _take_values(option, hint, rest)
        options[name] = [*options.get(name, []), *values] if is_list(hint) else values
    return options, positionals


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
    option: str, known: Iterable[str], prog: str, owners: Sequence[str] = ()
) -> SteradError:
    """Return the error for an unknown option, with a hint.

    owners: the components that have such an option, but are not chosen.
    """
    name = resolve_field_name(option)
    hints = [remedy for remedy, names in OPTIONS_OF_OTHER_TOOLS.items() if name in names]
    if owners:
        hints.append(f"it belongs to {', '.join(owners)}")
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
    return bool in union_members(hint)


def is_list(hint: Any) -> bool:
    """Return whether an option accepts several values."""
    return any(typing.get_origin(member) is tuple for member in union_members(hint))
