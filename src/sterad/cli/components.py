"""Commands that name a method, dataset, stream or launcher, whose fields then are options too."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sterad.cli.help import print_help
from sterad.cli.options import HELP, placed_words, sort_words, typed_values, unknown_option
from sterad.data import DATASETS
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig, RunSettings
from sterad.experiments.launchers import LAUNCHERS
from sterad.experiments.toml_file import read_toml
from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS
from sterad.plugins import load_plugin
from sterad.registry import Registry
from sterad.streams import STREAMS
from sterad.validation import (
    build,
    check_value,
    field_names,
    field_types,
    resolve_field_name,
    unknown_field,
)

REGISTRIES: dict[str, Registry[Any]] = {
    "method": METHODS,
    "dataset": DATASETS,
    "stream": STREAMS,
    "launcher": LAUNCHERS,
}
USUAL = {"method": "agd-fd", "dataset": "digits", "stream": "clear", "launcher": "local"}


@dataclass(frozen=True)
class Request:
    """What a command line and its files ask for: names of components, and values by field."""

    chosen: Mapping[str, str]
    values: Mapping[str, Any]
    """Of tuned values, the config file and the command line, each above those before it."""
    typed: Mapping[str, Sequence[str]]
    """The words of the command line by field."""
    own: frozenset[str]
    """Fields of the command itself, which hide those of components."""

    def take(self, cls: type[Any]) -> Any:
        """Return an instance of a dataclass from the values that are meant for it."""
        return build(cls, {k: v for k, v in self.values.items() if k in field_names(cls)})

    def component(self, kind: str) -> Any:
        """Return the chosen component of a kind, a launcher say."""
        return self.take(_described(kind, self.chosen[kind]))

    def execution(self) -> Execution:
        """Return how runs are computed, checked against this machine."""
        given = {k: v for k, v in self.values.items() if k in field_names(Execution)}
        return Execution.chosen(**given)

    def config(self) -> RunConfig:
        """Return the run that is asked for."""
        kinds = [kind for kind in ("method", "dataset", "stream") if kind in self.chosen]
        fields = {n for kind in kinds for n in field_names(_described(kind, self.chosen[kind]))}
        fields = (fields - self.own) | set(field_names(RunSettings))
        values = {name: value for name, value in self.values.items() if name in fields}
        return RunConfig.of(**values, **{kind: self.chosen[kind] for kind in kinds})


def request(
    argv: Sequence[str],
    prog: str,
    about: str,
    positional: str | None,
    named: Sequence[str],
    own: Mapping[str, Sequence[type[Any]]],
    hidden: frozenset[str] = frozenset(),
    optional: bool = True,
) -> Request:
    """Read a command line; print help and leave where asked to.

    positional: the kind of component that the first word names, and `named` those of options;
    own: titles with the dataclasses of the command's own options, "Execution" say; hidden: fields
    of these that are no options; optional: whether the first word may be left out.
    """
    for file in _words_of(argv, "plugin"):
        load_plugin(file)
    kinds = [*([positional] if positional else []), *named]
    classes = [cls for group in own.values() for cls in group]
    mine = {name: hint for cls in classes for name, hint in field_types(cls).items()}
    mine = {name: hint for name, hint in mine.items() if name not in hidden}
    places = [one for cls in classes for one in dataclasses.fields(cls) if _is_place(one)]
    everything = _every_field(kinds) | mine | dict.fromkeys(named, str)
    help_wanted = bool(set(argv) & set(HELP))
    words = sort_words(
        [word for word in argv if word not in HELP],
        everything,
        lambda name: unknown_option(name, everything, prog),
    )
    named_first = 1 if positional else 0
    first, rest = words.positionals[:named_first], words.positionals[named_first:]
    files = words.given.get("config", [])
    from_file = _from_file(files[-1]) if files else {}
    if positional and not (first or optional or help_wanted or positional in from_file):
        known = ", ".join(REGISTRIES[positional])
        raise SteradError(f"{prog} needs a {positional.upper()}: one of {known}")
    chosen = _chosen(kinds, positional, first, words.given, from_file)
    described = {kind: _described(kind, chosen[kind]) for kind in kinds}
    titles = {f"{kind.capitalize()}: {chosen[kind]}": (cls,) for kind, cls in described.items()}
    hints = {n: hint for cls in described.values() for n, hint in field_types(cls).items()} | mine
    tuned = words.given.get("tuned", [from_file.get("tuned")])[-1]
    if tuned and "method" in chosen:
        from_file = tuned_values(check_value("tuned", tuned, str), chosen["method"]) | from_file
    if help_wanted:
        sections = {**own, **titles}
        print_help(
            _usage(prog, positional, optional),
            about,
            {title: sections[title] for title in sorted(sections, key="Execution".__eq__)},
            _choices(positional, named, optional),
            from_file,
            hidden,
            "--help-all" not in argv,
        )
        raise SystemExit(0)
    for name in words.given:
        if name not in hints and name not in named:
            owners = _owners(name, kinds)
            dashed = name.replace("_", "-")
            raise unknown_option(dashed, hints, prog, {name: owners} if owners else None)
    for name in from_file:
        if name not in hints:
            raise unknown_field(name, [*hints, *kinds], f"the config {files[-1]!r}")
    typed = {name: given for name, given in words.given.items() if name not in named}
    typed |= placed_words(rest, places, hints, prog)
    values = from_file | typed_values(typed, hints)
    return Request(chosen, values, typed, frozenset(mine) - set(field_names(RunSettings)))


def _usage(prog: str, positional: str | None, optional: bool) -> str:
    if positional is None:
        return prog
    return f"{prog} [{positional.upper()}]" if optional else f"{prog} {positional.upper()}"


def _is_place(field: Any) -> bool:
    return "positional" in field.metadata


def _from_file(file: str) -> dict[str, Any]:
    return {
        resolve_field_name(name): value for name, value in read_toml(file, "the config").items()
    }


def _chosen(
    kinds: Sequence[str],
    positional: str | None,
    words: Sequence[str],
    given: Mapping[str, Sequence[str]],
    from_file: dict[str, Any],
) -> dict[str, str]:
    """Return the name of a component of each kind: of the command line, a file, or the usual."""
    asked = {kind: from_file.pop(kind, USUAL[kind]) for kind in kinds}
    asked |= {kind: given[kind][-1] for kind in kinds if kind in given}
    asked |= {positional: words[0]} if positional and words else {}
    return {kind: REGISTRIES[kind].resolve(check_value(kind, asked[kind], str)) for kind in kinds}


def _described(kind: str, name: str) -> type[Any]:
    """Return the dataclass whose fields are the options of a component."""
    thing = REGISTRIES[kind][name]
    described: type[Any] = getattr(thing, "Config", thing)
    if not (isinstance(described, type) and dataclasses.is_dataclass(described)):
        raise SteradError(
            f"the {kind} {name!r} has no dataclass of fields: give its class a frozen dataclass "
            "`Config`, or make it one"
        )
    return described


def _every_field(kinds: Sequence[str]) -> dict[str, Any]:
    """Return the fields of all components of some kinds, so that words can be sorted."""
    described = [_described(kind, name) for kind in kinds for name in REGISTRIES[kind]]
    return {name: hint for cls in described for name, hint in field_types(cls).items()}


def _owners(name: str, kinds: Sequence[str]) -> list[str]:
    found = {
        kind: [one for one in REGISTRIES[kind] if name in field_names(_described(kind, one))]
        for kind in kinds
    }
    return [f"the {kind} {', '.join(names)}" for kind, names in found.items() if names]


def _choices(positional: str | None, named: Sequence[str], optional: bool) -> dict[str, str]:
    """Return the names of components that are options, with their help texts."""
    rows = {f"--{kind} NAME": kind for kind in named}
    rows = ({positional.upper(): positional} if positional else {}) | rows
    texts = {name: f"Which {kind}: see `sterad list {kind}s`." for name, kind in rows.items()}
    required = positional.upper() if positional and not optional else None
    return {
        name: text if name == required else f"{text} (default: {USUAL[rows[name]]})"
        for name, text in texts.items()
    }


def _words_of(argv: Sequence[str], option: str) -> list[str]:
    """Return what is given for an option, before the other options are known."""
    pairs = zip(argv, [*argv[1:], ""], strict=True) if argv else ()
    values = [after for word, after in pairs if word == f"--{option}"]
    return values + [w.partition("=")[2] for w in argv if w.startswith(f"--{option}=")]
