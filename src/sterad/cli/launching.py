"""Options of a command that launches runs: its own, and those of the launcher that is named."""

import dataclasses
import inspect
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

import tyro

from sterad.cli.options import values_of
from sterad.experiments.launchers import LAUNCHERS, Launcher
from sterad.registry import load_plugin


def launcher_named(argv: list[str]) -> str:
    """Return the launcher that a command names, before anything is parsed."""
    for file in values_of(argv, "plugin"):
        load_plugin(Path(file))
    return LAUNCHERS.resolve((values_of(argv, "launcher") or ["local"])[-1])


def parse_with_launcher(options: type[Any], argv: list[str], prog: str) -> tuple[Any, Launcher]:
    """Return the options of a command and the launcher that `--launcher` names, with its fields.

    options: a frozen dataclass; its docstrings are the help.
    """
    name = launcher_named(argv)
    help_text = tyro.conf.arg(help=f"who runs the runs: {', '.join(LAUNCHERS)}")
    fields: list[Any] = [
        ("own", options),
        ("of_launcher", LAUNCHERS[name]),
        ("launcher", Annotated[str, help_text], field(default=name)),
    ]
    made = dataclasses.make_dataclass("Options", fields, frozen=True)
    about = (inspect.getdoc(options) or "").replace("\n", " ")
    parsed: Any = tyro.cli(
        made, args=argv, prog=prog, description=about, config=(tyro.conf.OmitArgPrefixes,)
    )
    return parsed.own, parsed.of_launcher
