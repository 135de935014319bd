import io
import os
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sterad.data.restricted_pickle import ALLOWED, read_pickle
from sterad.errors import SteradError


def written(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "batch"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["u1", "<i4", ">f8", "?", "S3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_every_protocol(tmp_path: Path, protocol: int, dtype: str, order: Any) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype).copy(order=order)
    found = read_pickle(written(tmp_path, pickle.dumps({"data": array}, protocol=protocol)))
    assert isinstance(found[b"data"], np.ndarray)
    np.testing.assert_array_equal(found[b"data"], array)
    assert found[b"data"].dtype.newbyteorder("=") == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_builtin_types_and_containers(tmp_path: Path, protocol: int) -> None:
    plain: dict[str, Any] = {
        "text": "größe",
        "bytes": b"\x00\xff",
        "numbers": [1, -(2**70), 1.5, True, None],
        "nested": {"a": (1, [2, {"b": ()}])},
        "scalars": [np.int64(7), np.float32(0.5)],
    }
    found = read_pickle(written(tmp_path, pickle.dumps(plain, protocol=protocol)))
    assert {key.decode(): value for key, value in found.items()} == plain


class Reduced:
    """An object whose unpickling calls a function."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.parts = (call, arguments)

    def __reduce__(self) -> Any:
        return self.parts


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    ("call", "arguments", "named"),
    [
        (os.system, ("touch {marker}",), "(posix|nt).system"),
        (eval, ("open('{marker}', 'w')",), r"(__builtin__|builtins)\.eval"),
        (getattr, ("", "join"), r"(__builtin__|builtins)\.getattr"),
        (np.load, ("{marker}",), "numpy.load"),
        (Path, ("x",), r"pathlib\.P"),
        (bytearray, (10,), r"(__builtin__|builtins)\.bytearray"),
    ],
)
def test_other_functions_raise_and_are_never_called(
    tmp_path: Path, protocol: int, call: Any, arguments: Any, named: str
) -> None:
    marker = tmp_path / "marker"
    filled = tuple(a.format(marker=marker) if isinstance(a, str) else a for a in arguments)
    evil = pickle.dumps({"data": Reduced(call, *filled)}, protocol=protocol)
    with pytest.raises(SteradError, match=f"contains {named}"):
        read_pickle(written(tmp_path, evil))
    assert not marker.exists()


def test_object_arrays_raise(tmp_path: Path) -> None:
    array = np.array([{}, []], dtype=object)
    with pytest.raises(SteradError, match="contains an array of object"):
        read_pickle(written(tmp_path, pickle.dumps({"data": array}, protocol=2)))


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
UINT8 = (
    b"cnumpy\ndtype\n(X\x02\x00\x00\x00u1K\x00K\x01tR(K\x03X\x01\x00\x00\x00|NNNK\x00K\x00K\x00tb"
)
HANDMADE = {
    "a dotted name": (b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.", "numpy.dtype.__init__"),
    "code by its module": (b"\x80\x02ccodecs\nencode\n.", "codecs.encode"),
    "another encoding": (
        b"\x80\x02c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00hextR.",
        "an encoding other than latin1",
    ),
    "a call of ndarray": (b"\x80\x02cnumpy\nndarray\n(K\x05tR.", "a call of numpy.ndarray"),
    "a changed callable": (b"\x80\x02cnumpy\ndtype\n}b.", "a change of an object"),
    "slots of a callable": (
        b"\x80\x02cnumpy\ndtype\nN}X\x05\x00\x00\x00_callK\x01s\x86b.",
        "a change",
    ),
    "a wrong length": (
        b"\x80\x02" + ARRAY + b"(K\x01K\x09\x85" + UINT8 + b"\x89C\x02abtb.",
        "2 bytes",
    ),
    "a negative shape": (
        b"\x80\x02" + ARRAY + b"(K\x01J\xff\xff\xff\xff\x85" + UINT8 + b"\x89C\x02abtb.",
        "shape",
    ),
    "a list for bytes": (
        b"\x80\x02" + ARRAY + b"(K\x01K\x02\x85" + UINT8 + b"\x89]tb.",
        "made of list",
    ),
    "a byte order": (
        b"\x80\x02cnumpy\ndtype\n(X\x02\x00\x00\x00u1tR(K\x03X\x01\x00\x00\x00!tb.",
        "a byte order '!'",
    ),
    "a structured type": (b"\x80\x02cnumpy\ndtype\n(X\x04\x00\x00\x00V100tR.", "an array of"),
}


@pytest.mark.parametrize("name", HANDMADE)
def test_malicious_pickles_raise(tmp_path: Path, name: str) -> None:
    content, message = HANDMADE[name]
    pickletools.dis(content, io.StringIO())  # raises if it is not a pickle
    calls = dict(ALLOWED)
    with pytest.raises(SteradError, match="only numpy arrays") as caught:
        read_pickle(written(tmp_path, content))
    assert message in str(caught.value)
    assert calls == ALLOWED


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02",
        b"not a pickle",
        pickle.dumps({"data": np.zeros(100)})[:-30],
        b"\x80\x02cnumpy\ndtype\n\x85\x81.",  # a call without arguments
        b"\x80\x02K\x01Q.",  # a persistent id
        b"\x80\x02X\xff\xff\xff\x7fa.",  # a string longer than the file
    ],
)
def test_damaged_pickles_raise(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SteradError, match=r"batch' (is damaged|contains)"):
        read_pickle(written(tmp_path, content))


def test_other_types_than_a_dictionary_raise(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match="contains a list instead of a dictionary"):
        read_pickle(written(tmp_path, pickle.dumps([1])))
    with pytest.raises(SteradError, match="No such file"):
        read_pickle(tmp_path / "nowhere")


BOMBS = {
    "bytes": b"\x80\x03B\xff\xff\xff\xff.",
    "long bytes": b"\x80\x04\x8e" + (1 << 36).to_bytes(8, "little") + b".",
    "a byte array": b"\x80\x05\x96" + (1 << 36).to_bytes(8, "little") + b".",
    "text": b"\x80\x04\x8d" + (1 << 36).to_bytes(8, "little") + b".",
    "an integer": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "a place in the memo": b"\x80\x02Nr\xff\xff\xff\x07.",
    "many empty lists": b"\x80\x02" + b"]" * 20_000_000 + b".",
    "one text often": b"\x80\x02X\x00\x00\x10\x00"
    + b"a" * (1 << 20)
    + b"q\x01X\x06\x00\x00\x00latin1q\x02(l"
    + b"c_codecs\nencode\nh\x01h\x02\x86Ra" * 3000
    + b".",
    "a key of nested tuples": b"\x80\x02}K\x01"
    + b"".join(b"q%ch%c\x86" % (i, i) for i in range(1, 60))
    + b"K\x01s.",
    "a shape of nested tuples": b"\x80\x02"
    + ARRAY
    + b"(K\x01K\x01"
    + b"".join(b"q%ch%c\x86" % (i, i) for i in range(11, 80))
    + UINT8
    + b"\x89C\x02abtb.",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_raise_before_memory_is_allocated(
    tmp_path: Path, name: str, error_within_limits: Callable[..., str]
) -> None:
    file = written(tmp_path, BOMBS[name])
    message = error_within_limits(lambda: read_pickle(file))
    assert "batch' " in message
