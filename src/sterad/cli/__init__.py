"""The command line. Each command imports what it needs: help and reports never import torch."""

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sterad.errors import SteradError, suggest_name
from sterad.optional_imports import require_reproduction
from sterad.threads import set_wait_policy

COMMANDS = (
    *("list", "train", "study", "search", "report"),
    *("runs", "show", "data", "stream", "export", "bench"),
)
COMMAND_GROUP = "sterad.commands"
"""Entry points of further commands: functions from arguments to an exit code."""
USAGE = """\
sterad: online continual learning with laws on the unit sphere

  sterad list [KIND|NAME]      list methods, datasets, streams, encoders, ...
  sterad train METHOD ...      train on a stream once; run again to continue or print the result
  sterad study NAME|FILE ...   run the missing runs of a grid and print their table
  sterad search METHOD ...     search for the best values of a method on held-out images
  sterad report RUNS           tables and one HTML page from finished runs
  sterad runs [FOLDER]         list, filter, compare and delete runs
  sterad show RUN              one run: settings, accuracy along the stream, cost, command
  sterad verify RUNS           compare runs with the paper (package sterad-reproduction)
  sterad data list|check|get   list, check and download datasets
  sterad stream NAME ...       describe, save or draw a stream
  sterad export FILE MODEL     write a saved classifier as ONNX, torch.export or safetensors
  sterad bench                 step time of each method relative to the bare network

`sterad COMMAND --help` shows the options, `sterad train METHOD --help` those of a method."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 2 for an error that the user can fix."""
    set_wait_policy(os.environ)
    # Not list(...): after its import, the module sterad.cli.list shadows the built-in here.
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0
    try:
        with _sigterm_as_interrupt():
            code = _run(arguments[0], arguments[1:])
            sys.stdout.flush()  # raises here if the reader has closed the pipe
            return code
    except SteradError as error:
        print(f"sterad: {error}", file=sys.stderr)
        return 2
    except SystemExit as error:  # help was printed
        return int(error.code or 0)
    except BrokenPipeError:
        # The reader, for example `head`, has closed the pipe: this is not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"sterad: system error: {error}; finished work is kept", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        number = signal.Signals(*interrupt.args or (signal.SIGINT,))
        hint = "; finished work is kept, and the same command continues from there"
        can_resume = arguments[0] in ("train", "study", "search", "data")
        print(f"sterad: interrupted by {number.name}{hint if can_resume else ''}", file=sys.stderr)
        # CPython ends by SIGINT, whatever the exit code, if the last exec() of a string was
        # interrupted, for example that of a dataclass during an import. This one is not.
        exec("")
        return 128 + number


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, so that commands also end the processes they started."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can receive signals
        return
    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:  # a library, for example Ray, may have raised its own
        raise KeyboardInterrupt(*received[:1]) from None
    finally:
        signal.signal(signal.SIGTERM, previous)


def _run(name: str, arguments: list[str]) -> int:
    if name in ("--version", "version"):
        print(importlib.import_module("importlib.metadata").version("sterad"))
        return 0
    if name not in COMMANDS:
        metadata = importlib.import_module("importlib.metadata")
        for entry_point in metadata.entry_points(group=COMMAND_GROUP, name=name):
            return int(entry_point.load()(arguments))
        if name == "verify":
            return int(require_reproduction("verify").main(arguments))
        near = suggest_name(name, COMMANDS)
        raise SteradError(f"unknown command {name!r}: {near}known are {', '.join(COMMANDS)}")
    return int(importlib.import_module(f"sterad.cli.{name}").main(arguments))
