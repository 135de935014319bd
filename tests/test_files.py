import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from sterad.errors import SteradError
from sterad.files import parse_json, reading, remove_leftovers, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code in a subprocess; `write_atomically` and `path` are defined."""
    imports = (
        "import os, resource, signal, sys\nfrom pathlib import Path\n"
        "from sterad.files import write_atomically\npath = Path(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", imports + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_content_is_text_bytes_or_a_function(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_atomically(file, "größe\n")
    assert file.read_bytes() == "größe\n".encode()
    write_atomically(file, b"\x00\xff")
    assert file.read_bytes() == b"\x00\xff"

    def write(into: BinaryIO) -> None:
        into.write(b"one ")
        assert file.read_bytes() == b"\x00\xff", (
            "readers see the old file until the new one is complete"
        )
        into.write(b"two")

    write_atomically(file, write)
    assert file.read_bytes() == b"one two"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("error", [KeyError("mine"), KeyboardInterrupt()])
def test_an_error_of_the_writer_is_raised_and_keeps_the_old_file(
    tmp_path: Path, error: BaseException
) -> None:
    file = tmp_path / "a.json"
    write_atomically(file, "old")

    def fail(into: BinaryIO) -> None:
        into.write(b"half of the n")
        raise error

    with pytest.raises(type(error)) as caught:
        write_atomically(file, fail)
    assert caught.value is error
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


def test_a_kill_during_a_write_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_atomically(file, "old")
    result = run_python(
        "def die(into):\n"
        "    into.write(b'half'); into.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(path, die)",
        file,
    )
    assert result.returncode == -signal.SIGKILL
    assert file.read_text() == "old"
    (leftover,) = (name for name in names(tmp_path) if name != "a.json")
    assert (tmp_path / leftover).read_text() == "half"
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["a.json"]


def test_only_temporary_files_are_removed(tmp_path: Path) -> None:
    other = [".hidden", "events.jsonl", "notes.tmp", "record.json"]
    for name in (*other, ".record.json.17.tmp", ".checkpoint.pt.4.tmp"):
        (tmp_path / name).write_text("x")
    remove_leftovers(tmp_path)
    assert names(tmp_path) == other


def check_message(error: SteradError, file: Path, reason: str) -> None:
    message = str(error)
    assert message.startswith(f"cannot write {str(file)!r}: {reason}.")
    assert "The previous file is unchanged" in message
    assert "free some space or choose another location" in message


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_full_device_keeps_the_old_file(tmp_path: Path, size: int) -> None:
    file = tmp_path / "a.json"
    write_atomically(file, "old")

    def write(into: BinaryIO) -> None:
        into.write(b"half of the n")
        with open("/dev/full", "wb") as full:
            full.write(b"x" * size)

    with pytest.raises(SteradError) as caught:
        write_atomically(file, write)
    check_message(caught.value, file, "No space left on device")
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


def test_a_file_size_limit_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    write_atomically(file, "old")
    result = run_python(
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_atomically(path, b'x' * 5000)\n"
        "except ValueError as error:\n"
        "    print(type(error).__name__, error)",
        file,
    )
    kind, _, message = result.stdout.partition(" ")
    assert kind == "SteradError", result.stderr
    check_message(SteradError(message), file, "File too large")
    assert file.read_text() == "old"
    assert names(tmp_path) == ["a.json"]


def test_an_impossible_path_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "no" / "a.json"
    with pytest.raises(SteradError) as caught:
        write_atomically(file, "new")
    check_message(caught.value, file, "No such file or directory")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SteradError, match="folder': Is a directory"):
        write_atomically(tmp_path / "folder", "new")
    assert names(tmp_path) == ["folder"]


def test_threads_may_write_to_one_path(tmp_path: Path) -> None:
    file, contents = tmp_path / "a.bin", [bytes([number]) * 100_000 for number in range(6)]
    write_atomically(file, contents[0])
    damaged: list[bytes] = []

    def write(content: bytes) -> None:
        for _ in range(10):
            write_atomically(file, content)
            if (found := file.read_bytes()) not in contents:
                damaged.append(found)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not damaged
    assert names(tmp_path) == ["a.bin"]


def test_the_previous_file_gets_its_own_name(tmp_path: Path) -> None:
    file, previous = tmp_path / "a.json", tmp_path / "a.previous.json"
    write_atomically(file, "1", previous)
    assert names(tmp_path) == ["a.json"]
    write_atomically(file, "2", previous)
    write_atomically(file, "3", previous)
    assert (file.read_text(), previous.read_text()) == ("3", "2")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_during_a_write_is_handled_after_it(tmp_path: Path, name: str) -> None:
    result = run_python(
        "import torch\n"
        "class Signalling(dict):\n"
        "    def __reduce__(self):\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "        return dict, ()\n"
        "def stop(number, frame):\n"
        "    print(path.exists(), flush=True)\n"
        "    sys.exit(128 + number)\n"
        f"signal.signal(signal.{name}, stop)\n"
        "write_atomically(path, lambda file: torch.save(Signalling(), file))",
        tmp_path / "a.pt",
    )
    number = signal.Signals[name]
    assert (result.returncode, result.stdout) == (128 + number, "True\n"), result.stderr
    assert names(tmp_path) == ["a.pt"]


@pytest.mark.parametrize(
    "error", [KeyError(), RecursionError("deep"), MemoryError(), OSError(5, "x")]
)
def test_whatever_a_parser_raises_becomes_a_sentence(error: Exception) -> None:
    message = r"^'a.json' (is damaged|cannot be read).+: delete it$"
    with pytest.raises(SteradError, match=message), reading("a.json", "delete it"):
        raise error


def test_an_error_that_does_not_name_the_file_gets_its_name() -> None:
    with (
        pytest.raises(SteradError, match=r"^'a.json' cannot be used, lr 3 is out"),
        reading("a.json", ""),
    ):
        raise SteradError("lr 3 is out of range")
    with pytest.raises(SteradError, match=r"^the file 'a.json' is old$"), reading("a.json", ""):
        raise SteradError("the file 'a.json' is old")


@pytest.mark.parametrize(
    "text",
    [
        *("NaN", "[1, Infinity]", '{"a": -Infinity}', "1e999", "[0.5, -1e999]", "1" + "0" * 400),
        *("1" * 5000, "[" * 100_000, "[" * 33 + "]" * 33, '{"a":' * 40 + "1" + "}" * 40, "\ufeff1"),
    ],
)
def test_json_that_overflows_later_is_refused(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_json(text)


def test_json_is_parsed() -> None:
    content = {"a": [1, -2.5, 1e300, 2**63, None], "b": {"c": [[True, "NaN"], []]}}
    assert parse_json(json.dumps(content)) == content
    assert parse_json(json.dumps(content).encode()) == content
