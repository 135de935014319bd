"""Commands that choose components (method, dataset, ...) whose fields are options as well."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sterad.cli.help import option_name, print_help
from sterad.cli.options import (
    HELP_FLAGS,
    assign_positionals,
    parse_values,
    split_arguments,
    unknown_option,
)
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
DEFAULTS = {"method": "agd-fd", "dataset": "digits", "stream": "clear", "launcher": "local"}


@dataclass(frozen=True)
class Request:
    """A parsed command line: the chosen components, and values by field name."""

    chosen: Mapping[str, str]
    """The name of the component of each kind."""
    values: Mapping[str, Any]
    """Values of the command line, else of the config file, else of the tuned values."""
    typed: Mapping[str, Sequence[str]]
    """The arguments of the command line by field name."""
    command_fields: frozenset[str]
    """Fields of the command itself; a component's field of the same name is not set."""

    def take(self, cls: type[Any]) -> Any:
        """Return an instance of a dataclass from the values of its fields."""
        return build(cls, {k: v for k, v in self.values.items() if k in field_names(cls)})

    def component(self, kind: str) -> Any:
        """Return the chosen component of a kind, for example the launcher."""
        return self.take(_config_class(kind, self.chosen[kind]))

    def execution(self) -> Execution:
        """Return the execution options, checked against this machine."""
        values = {k: v for k, v in self.values.items() if k in field_names(Execution)}
        return Execution.from_options(**values)

    def config(self) -> RunConfig:
        """Return the config of the run."""
        kinds = [kind for kind in ("method", "dataset", "stream") if kind in self.chosen]
        fields = {n for kind in kinds for n in field_names(_config_class(kind, self.chosen[kind]))}
        fields = (fields - self.command_fields) | set(field_names(RunSettings))
        values = {name: value for name, value in self.values.items() if name in fields}
        return RunConfig.of(**values, **{kind: self.chosen[kind] for kind in kinds})


def parse_request(
    argv: Sequence[str],
    prog: str,
    about: str,
    positional: str | None,
    named: Sequence[str],
    sections: Mapping[str, Sequence[type[Any]]],
    hidden: frozenset[str] = frozenset(),
    optional: bool = True,
) -> Request:
    """Parse a command line; print the help and exit for --help.

    positional: the kind of component that the first argument chooses; named: the kinds that options
    choose; sections: titles with the dataclasses of the command's own options; hidden: fields of
    these that are not options; optional: whether the first argument can be omitted.
    """
    parser = _RequestParser(prog, about, positional, tuple(named), sections, hidden, optional)
    return parser.parse(argv)


@dataclass(frozen=True)
class _RequestParser:
    prog: str
    about: str
    positional: str | None
    named: tuple[str, ...]
    sections: Mapping[str, Sequence[type[Any]]]
    hidden: frozenset[str]
    optional: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.positional, *self.named) if self.positional else self.named

    @property
    def own_classes(self) -> list[type[Any]]:
        return [cls for classes in self.sections.values() for cls in classes]

    def parse(self, argv: Sequence[str]) -> Request:
        for file in _option_values(argv, "plugin"):
            load_plugin(file)
        if self.positional and argv and not argv[0].startswith("-"):
            REGISTRIES[self.positional].resolve(argv[0])  # before its options are found unknown
        own = _types_of(self.own_classes)
        own = {name: hint for name, hint in own.items() if name not in self.hidden}
        # Which options a component has is known only after splitting: accept those of all first.
        every = [_config_class(kind, name) for kind in self.kinds for name in REGISTRIES[kind]]
        known = _types_of(every) | own | dict.fromkeys(self.named, str)
        wants_help = bool(set(argv) & set(HELP_FLAGS))
        arguments = split_arguments(
            [argument for argument in argv if argument not in HELP_FLAGS],
            known,
            lambda option: unknown_option(option, known, self.prog),
        )
        first = arguments.positionals[:1] if self.positional else []
        rest = arguments.positionals[len(first) :]
        config_files = arguments.options.get("config", [])
        file_values = _read_config(config_files[-1]) if config_files else {}
        if not (first or wants_help):
            self._check_positional(file_values)
        chosen = self._choose_components(first, arguments.options, file_values)
        classes = {kind: _config_class(kind, name) for kind, name in chosen.items()}
        hints = _types_of(classes.values()) | own
        tuned = arguments.options.get("tuned", [file_values.get("tuned")])[-1]
        if tuned and "method" in chosen:
            file_values = tuned_values(check_value("tuned", tuned, str), chosen["method"]) | (
                file_values
            )
        if wants_help:
            self._print_help(chosen, classes, file_values, "--help-all" in argv)
            raise SystemExit(0)
        self._check_names(arguments.options, hints)
        for name in file_values:
            if name not in hints:
                raise unknown_field(name, [*hints, *self.kinds], f"the config {config_files[-1]!r}")
        typed = {name: v for name, v in arguments.options.items() if name not in self.named}
        typed |= assign_positionals(rest, self._positional_fields(), hints, self.prog)
        values = file_values | parse_values(typed, hints)
        return Request(chosen, values, typed, frozenset(own) - set(field_names(RunSettings)))

    def _check_positional(self, file_values: Mapping[str, Any]) -> None:
        if self.positional and not self.optional and self.positional not in file_values:
            known = ", ".join(REGISTRIES[self.positional])
            raise SteradError(f"{self.prog} needs a {self.positional.upper()}: one of {known}")

    def _positional_fields(self) -> list[Any]:
        fields = [field for cls in self.own_classes for field in dataclasses.fields(cls)]
        return [field for field in fields if "positional" in field.metadata]

    def _choose_components(
        self,
        first: Sequence[str],
        options: Mapping[str, Sequence[str]],
        file_values: dict[str, Any],
    ) -> dict[str, str]:
        """Return a name for each kind: of the command line, else of the file, else the default."""
        names = {kind: file_values.pop(kind, DEFAULTS[kind]) for kind in self.kinds}
        names |= {kind: options[kind][-1] for kind in self.kinds if kind in options}
        names |= {self.positional: first[0]} if self.positional and first else {}
        return {
            kind: REGISTRIES[kind].resolve(check_value(kind, name, str))
            for kind, name in names.items()
        }

    def _check_names(self, options: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
        for name in options:
            if name not in hints and name not in self.named:
                owners = {name: found} if (found := self._owners(name)) else None
                raise unknown_option(option_name(name)[2:], hints, self.prog, owners)

    def _owners(self, field: str) -> list[str]:
        """Return which components have a field of this name."""
        owners = {
            kind: [n for n in REGISTRIES[kind] if field in field_names(_config_class(kind, n))]
            for kind in self.kinds
        }
        return [f"the {kind} {', '.join(names)}" for kind, names in owners.items() if names]

    def _print_help(
        self,
        chosen: Mapping[str, str],
        classes: Mapping[str, type[Any]],
        values: Mapping[str, Any],
        show_advanced: bool,
    ) -> None:
        sections = dict(self.sections) | {
            f"{kind.capitalize()}: {chosen[kind]}": (cls,) for kind, cls in classes.items()
        }
        ordered = {t: sections[t] for t in sorted(sections, key="Execution".__eq__)}  # it is last
        usage = self.prog
        if self.positional:
            name = self.positional.upper()
            usage += f" [{name}]" if self.optional else f" {name}"
        choices = self._choices()
        print_help(usage, self.about, ordered, choices, values, self.hidden, show_advanced)

    def _choices(self) -> dict[str, str]:
        """Return the arguments that choose a component, with their help texts."""
        choices = {}
        for kind in self.kinds:
            is_first = kind == self.positional
            text = f"Name of the {kind}; `sterad list {kind}s` lists all."
            if self.optional or not is_first:
                text += f" (default: {DEFAULTS[kind]})"
            choices[kind.upper() if is_first else f"--{kind} NAME"] = text
        return choices


def _types_of(classes: Any) -> dict[str, Any]:
    return {name: hint for cls in classes for name, hint in field_types(cls).items()}


def _read_config(file: str) -> dict[str, Any]:
    values = read_toml(file, "the config")
    return {resolve_field_name(name): value for name, value in values.items()}


def _config_class(kind: str, name: str) -> type[Any]:
    """Return the dataclass whose fields are the options of a component."""
    component = REGISTRIES[kind][name]
    config: type[Any] = getattr(component, "Config", component)
    if not (isinstance(config, type) and dataclasses.is_dataclass(config)):
        raise SteradError(
            f"the {kind} {name!r} has no dataclass of fields: give its class a frozen dataclass "
            "`Config`, or make it one"
        )
    return config


def _option_values(argv: Sequence[str], option: str) -> list[str]:
    """Return the values of one option, before the other options are known."""
    pairs = zip(argv, [*argv[1:], ""], strict=True) if argv else ()
    values = [after for argument, after in pairs if argument == f"--{option}"]
    return values + [a.partition("=")[2] for a in argv if a.startswith(f"--{option}=")]
