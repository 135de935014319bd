"""The command line. Commands import what they need: help and reports never wait for torch."""

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sterad.errors import SteradError
from sterad.extras import require_reproduction
from sterad.threads import set_wait_policy

COMMANDS = ("list", "train", "study", "search", "report", "data", "stream", "bench")
COMMAND_GROUP = "sterad.commands"
"""Entry points of further commands: functions from arguments to an exit code."""
USAGE = """\
sterad: online continual learning with laws on the unit sphere

  sterad list [KIND|NAME]      what there is: methods, datasets, streams, encoders, ...
  sterad train METHOD ...      learn from a stream seen once; a second call continues or prints
  sterad study FILE.toml ...   run the missing runs of a grid and print their table
  sterad search METHOD ...     the values of a method that do best, found on held-out images
  sterad report RUNS           tables and one HTML page from finished runs
  sterad verify RUNS           compare them with the paper (package sterad-reproduction)
  sterad data list|check|get   datasets: what there is, whether it is whole, fetch it
  sterad stream NAME ...       describe, save or draw a stream
  sterad bench                 step time of each method relative to the bare network

`sterad COMMAND --help` says more, `sterad train METHOD --help` everything about a method."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 2 after a sentence about what the user can mend."""
    set_wait_policy(os.environ)
    # Not list(...): once imported, the command of that name stands in this module's namespace.
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE)
        return 0
    try:
        with _terminable():
            return _run(arguments[0], arguments[1:])
    except SteradError as error:
        print(f"sterad: {error}", file=sys.stderr)
        return 2
    except SystemExit as done:  # help was printed
        return int(done.code or 0)
    except BrokenPipeError:
        # The reader, `head` say, has gone: nothing is wrong, and nobody listens to a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # Whatever nobody has foreseen of disks, pipes and processes: what was finished stays.
        print(f"sterad: the system refuses: {error}; what is done is kept", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stopped:
        number = signal.Signals(*stopped.args or (signal.SIGINT,))
        kept = "; what is done is kept, and the same command continues from there"
        resumes = arguments[0] in ("train", "study", "search", "data")
        print(f"sterad: interrupted by {number.name}{kept if resumes else ''}", file=sys.stderr)
        return 128 + number


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind as Ctrl-C does, so that whoever started processes also ends them."""
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # the system tells the main thread alone
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:  # a library, Ray say, may have raised its own in place of ours
        raise KeyboardInterrupt(*received[:1]) from None
    finally:
        signal.signal(signal.SIGTERM, before)


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
        near = importlib.import_module("difflib").get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SteradError(f"unknown command {name!r}: {hint}known are {', '.join(COMMANDS)}")
    command = importlib.import_module(f"sterad.cli.{name}")
    code: int = command.main(arguments)
    return code
