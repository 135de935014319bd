"""Commands that choose components (method, dataset, ...) whose fields are options as well."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from sterad.cli.help import option_name, positional_fields, print_help
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
        return build(cls, self._select(field_names(cls)))

    def component(self, kind: str) -> Any:
        """Return the chosen component of a kind, for example the launcher."""
        return self.take(_config_class(kind, self.chosen[kind]))

    def execution(self) -> Execution:
        """Return the execution options, checked against this machine."""
        return Execution.from_options(**self._select(field_names(Execution)))

    def config(self) -> RunConfig:
        """Return the config of the run."""
        chosen = {kind: name for kind, name in self.chosen.items() if kind != "launcher"}
        fields = _types_of(_config_class(kind, name) for kind, name in chosen.items())
        names = (set(fields) - self.command_fields) | set(field_names(RunSettings))
        return RunConfig.of(**self._select(names), **chosen)

    def _select(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: value for name, value in self.values.items() if name in names}


@dataclass(frozen=True)
class RequestParser:
    """The parser of a command whose options include the fields of the chosen components."""

    prog: str
    about: str
    positional: str | None
    """The kind of component that the first argument chooses."""
    named: tuple[str, ...]
    """The kinds of components that options choose."""
    sections: Mapping[str, Sequence[type[Any]]]
    """Titles with the dataclasses of the command's own options."""
    hidden: frozenset[str] = frozenset()
    """Fields of these dataclasses that are not options."""
    needs_positional: bool = False
    """Whether the component of the first argument has no default."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of components that the command line chooses."""
        return (self.positional, *self.named) if self.positional else self.named

    def parse(self, argv: Sequence[str]) -> Request:
        """Parse a command line; print the help and exit for --help."""
        for file in _plugin_files(argv):
            load_plugin(file)
        if self.positional and argv and not argv[0].startswith("-"):
            REGISTRIES[self.positional].resolve(argv[0])  # before its options are found unknown
        own_classes = list(itertools.chain(*self.sections.values()))
        own = {n: hint for n, hint in _types_of(own_classes).items() if n not in self.hidden}
        # Which options a component has is known only after splitting: accept those of all first.
        every = [_config_class(kind, name) for kind in self.kinds for name in REGISTRIES[kind]]
        known = _types_of(every) | own | dict.fromkeys(self.named, str)
        wants_help = bool(set(argv) & set(HELP_FLAGS))
        arguments = [argument for argument in argv if argument not in HELP_FLAGS]
        options, positionals = split_arguments(arguments, known, self.prog)
        if self.positional and positionals:
            options[self.positional] = [positionals.pop(0)]
        config_file = options.get("config", [""])[-1]
        file_table = read_toml(config_file, "the config") if "config" in options else {}
        file_values = {resolve_field_name(name): value for name, value in file_table.items()}
        chosen = self._choose_components(options, file_values, wants_help)
        tuned = options.get("tuned", [file_values.get("tuned")])[-1]
        if tuned and "method" in chosen:
            tuned = check_value("tuned", tuned, str)
            file_values = tuned_values(tuned, chosen["method"]) | file_values
        if wants_help:
            self._print_help(chosen, file_values, "--help-all" in argv)
            raise SystemExit(0)
        hints = _types_of(_config_class(kind, name) for kind, name in chosen.items()) | own
        for name in options:
            if name not in hints:
                raise unknown_option(option_name(name)[2:], hints, self.prog, self._owners(name))
        for name in file_values:
            if name not in hints:
                raise unknown_field(name, [*hints, *self.kinds], f"the config {config_file!r}")
        options |= assign_positionals(positionals, positional_fields(own_classes), hints, self.prog)
        values = file_values | parse_values(options, hints)
        return Request(chosen, values, options, frozenset(own) - set(field_names(RunSettings)))

    def _choose_components(
        self, options: dict[str, list[str]], file_values: dict[str, Any], wants_help: bool
    ) -> dict[str, str]:
        """Remove and return the name of each kind: of the options, else of the file or default."""
        chosen = {}
        for kind in self.kinds:
            has_default = wants_help or not (kind == self.positional and self.needs_positional)
            if not has_default and kind not in {*options, *file_values}:
                known = ", ".join(REGISTRIES[kind])
                raise SteradError(f"{self.prog} needs a {kind.upper()}: one of {known}")
            name = file_values.pop(kind, DEFAULTS[kind])
            name = options.pop(kind, [name])[-1]
            chosen[kind] = REGISTRIES[kind].resolve(check_value(kind, name, str))
        return chosen

    def _owners(self, field: str) -> list[str]:
        """Return which components have a field of this name."""
        owners = {
            kind: [n for n in REGISTRIES[kind] if field in field_names(_config_class(kind, n))]
            for kind in self.kinds
        }
        return [f"the {kind} {', '.join(names)}" for kind, names in owners.items() if names]

    def _print_help(
        self, chosen: Mapping[str, str], values: Mapping[str, Any], show_advanced: bool
    ) -> None:
        sections = dict(self.sections)
        execution = sections.pop("Execution", ())
        for kind, name in chosen.items():
            sections[f"{kind.capitalize()}: {name}"] = (_config_class(kind, name),)
        sections["Execution"] = execution  # at the end
        usage, choices = self.prog, {}
        for kind in self.kinds:
            text = f"Name of the {kind}; `sterad list {kind}s` lists all."
            default = f" (default: {DEFAULTS[kind]})"
            if kind != self.positional:
                choices[f"--{kind} NAME"] = text + default
            elif self.needs_positional:
                usage, choices[kind.upper()] = f"{usage} {kind.upper()}", text
            else:
                usage, choices[kind.upper()] = f"{usage} [{kind.upper()}]", text + default
        print_help(usage, self.about, sections, choices, values, self.hidden, show_advanced)


def _types_of(classes: Iterable[type[Any]]) -> dict[str, Any]:
    return {name: hint for cls in classes for name, hint in field_types(cls).items()}


def _config_class(kind: str, name: str) -> type[Any]:
    """Return the dataclass whose fields are the options of a component."""
    component = REGISTRIES[kind][name]
    config: type[Any] = getattr(component, "Config", component)
    if not (isinstance(config, type) and is_dataclass(config)):
        raise SteradError(
            f"the {kind} {name!r} has no dataclass of fields: give its class a frozen dataclass "
            "`Config`, or make it one"
        )
    return config


def _plugin_files(argv: Sequence[str]) -> list[str]:
    """Return the values of --plugin, before the other options are known."""
    pairs = itertools.pairwise([*argv, ""])
    files = [after for argument, after in pairs if argument == "--plugin"]
    return files + [a.removeprefix("--plugin=") for a in argv if a.startswith("--plugin=")]
