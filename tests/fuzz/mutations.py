"""Mutations of files: of their bytes, and of their structure so that parsers get further."""

import gzip
import io
import json
import pickle
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Mutation = Callable[[bytes, random.Random], bytes]
MAX_INSERTED_BYTES = 64
ODD_BYTES = (b"\0", b"\xff" * 4, b"\x80", b"\r\n", b"\xc3\x28", b"\xef\xbb\xbf", b"\x7f" * 8)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "1", "\0", "\ud800", "../x", "a" * 500),
    *([], [0], [None], [[]], [[1, 2], [3]], {}, {"": 0}, {"name": None}, {"a": {"b": [{}]}}),
)
ODD_TEXTS = (
    *("9" * 5000, "-" + "1" * 4400, "1e999", "-1e999", "1e-999", "0x1", "1_000", "Infinity"),
    *("[" * 20_000, "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, "[" * 20 + "]" * 20),
)
"""Values that no Python object is written as."""
ODD_TOML = (
    *("9" * 5000, "0x" + "f" * 5000, "-1", "1e400", "nan", "-inf", "1979-05-27T07:32:00Z", "07:32"),
    *('""', '"\\u0000"', '"a.toml"', "''", "true", "[]", "[[]]", "[1, 'a']", "{}", "{a = 1}"),
    *("[" * 2000, "[" * 400 + "]" * 400, "{a=" * 300 + "1" + "}" * 300, '"""', "'\\", "1__0"),
)
ODD_NAMES = (
    *("../x", "/tmp/sterad-fuzz", "a\0b", "", ".", "..", "a/../../x", "C:\\x", "a" * 300, "\ud7ff"),
    *("data/", "data", "data/a.txt", "data//a.txt", "./data/b.txt", "data/a.txt/c", "~/x", "nul"),
)


def mutate_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change, insert, remove, repeat or cut bytes in one to three places."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + rng.choice((1, 1, 2, 4, 16, 200)))
        kind = rng.randrange(7)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at:end] = rng.randbytes(end - at)
        elif kind == 2:
            changed[at:at] = rng.choice((*ODD_BYTES, rng.randbytes(rng.randrange(1, 16))))
        elif kind == 3:
            del changed[at:end]
        elif kind == 4:
            changed[at:at] = changed[at:end]
        elif kind == 5:
            del changed[at:]
        else:
            changed[at:end] = rng.choice((b"\0", b"\xff")) * (end - at)
    return bytes(changed)


def replace_node(value: Any, rng: random.Random, odd: Callable[[], Any]) -> Any:
    """Return a copy of nested dictionaries and lists with one node replaced, removed or doubled."""
    if not isinstance(value, dict | list | tuple) or not value or rng.random() < 0.1:
        return odd()
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, kind = rng.choice(keys), rng.random()
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if kind < 0.1:
        del copy[key]
    elif kind < 0.2 and isinstance(copy, list):
        copy.insert(key, copy[key])
    elif kind < 0.2:
        copy[rng.choice((f"{key}x", "", "name", "format"))] = copy.pop(key)
    else:
        copy[key] = replace_node(copy[key], rng, odd)
    return tuple(copy) if isinstance(value, tuple) else copy


def mutate_json(content: bytes, rng: random.Random) -> bytes:
    """Replace a value of a JSON document."""
    text, placeholder = rng.choice(ODD_TEXTS), "\x01odd\x01"
    odd = (lambda: placeholder) if rng.random() < 0.3 else (lambda: rng.choice(ODD_VALUES))
    changed = json.dumps(replace_node(json.loads(content), rng, odd), indent=rng.choice((None, 1)))
    return changed.replace(json.dumps(placeholder), text).encode()


def mutate_json_line(content: bytes, rng: random.Random) -> bytes:
    """Replace a value in one line of JSON, or swap, repeat or drop lines."""
    lines = content.splitlines()
    number, kind = rng.randrange(len(lines)), rng.random()
    if kind < 0.8:
        lines[number] = mutate_json(lines[number], rng).replace(b"\n", b"")
    elif kind < 0.9:
        lines.insert(rng.randrange(len(lines)), lines.pop(number))
    else:
        lines[number : number + 1] = [lines[number]] * rng.choice((0, 2))
    return b"\n".join(lines) + b"\n"


def mutate_toml(content: bytes, rng: random.Random) -> bytes:
    """Replace the value, the key or the header of a line, or repeat, move or drop a line."""
    lines = content.decode().splitlines()
    number, kind = rng.randrange(len(lines)), rng.random()
    key, is_pair, value = lines[number].partition("=")
    if kind < 0.6 and is_pair:
        lines[number] = f"{key}= {rng.choice(ODD_TOML)}"
    elif kind < 0.8:
        odd_key = rng.choice((f"{key.strip()}x", '""', "method", "grid", "like", "a.b", "source"))
        lines[number] = f"{odd_key} ={value}" if is_pair else f"[{odd_key}]"
    elif kind < 0.9:
        lines.insert(rng.randrange(len(lines)), lines.pop(number))
    else:
        lines[number : number + 1] = [lines[number]] * rng.choice((0, 2))
    return "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"


def mutate_zip(content: bytes, rng: random.Random) -> bytes:
    """Write the archive again with one member renamed, repeated, dropped or with odd content."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    number = rng.randrange(len(members))
    name, data = members[number]
    kind, written, attributes = rng.random(), io.BytesIO(), 0
    if kind < 0.3:
        members[number] = (rng.choice(ODD_NAMES), data)
    elif kind < 0.6:
        members[number] = (name, mutate_bytes(data, rng))
    elif kind < 0.8:
        attributes = rng.choice((0o120777, 0o020666, 0o060666, 0o010666, 0o140777)) << 16
    else:
        members[number : number + 1] = [members[number]] * rng.choice((0, 2))
    with zipfile.ZipFile(
        written, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    ) as out:
        for index, (name, data) in enumerate(members):
            info = zipfile.ZipInfo("x")
            info.filename, info.external_attr = name, attributes if index == number else 0
            out.writestr(info, data, out.compression)
    return written.getvalue()


def mutate_tar(content: bytes, rng: random.Random) -> bytes:
    """Write the archive again with one member renamed or of another type."""
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [(info, archive.extractfile(info)) for info in archive.getmembers()]
        number, written = rng.randrange(len(members)), io.BytesIO()
        info = members[number][0]
        if rng.random() < 0.5:
            info.name = rng.choice(ODD_NAMES)
        else:
            info.type = rng.choice((b"1", b"2", b"3", b"4", b"6", b"7", b"S", b"x", b"L", b"g"))
            info.linkname = rng.choice(("/etc/passwd", "../../x", "a.txt"))
        mode: Any = rng.choice(("w", "w:gz", "w:bz2", "w:xz"))
        with tarfile.open(fileobj=written, mode=mode) as out:
            for one, file in members:
                out.addfile(one, file)
    return written.getvalue()


def mutate_npy(content: bytes, rng: random.Random) -> bytes:
    """Write another header before the data of an array, one that claims more than there is."""
    header = rng.choice(
        (
            "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f8', 'fortran_order': True, 'shape': (-1, 2), }",
            "{'descr': '<U2000000000', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,), }",
            "{'descr': 3, 'fortran_order': None, 'shape': 'x', }",
            "(" * 5000,
            "{'shape': " + "9" * 5000 + "}",
        )
    )
    start = 10 + struct.unpack("<H", content[8:10])[0] if len(content) > 10 else 0
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", min(len(text), 65535)) + text + content[start:]


def mutate_npz(content: bytes, rng: random.Random) -> bytes:
    """Save the arrays again with one changed in type, shape or name, or with an odd header."""
    stored = dict(np.load(io.BytesIO(content)))
    name, kind, written = rng.choice(list(stored)), rng.random(), io.BytesIO()
    array = stored.pop(name)
    if kind < 0.3:
        odd = rng.choice(
            (np.array(1), array[None], np.zeros(0), np.array(["x"]), array.ravel()[:1])
        )
        stored[name] = odd
    elif kind < 0.5:
        stored[name] = (
            array.astype(
                rng.choice(("u1", "<i8", "f4", "c8", "U5", "S3", "O", "?")), casting="unsafe"
            )
            if array.dtype.kind in "biuf"
            else np.array(rng.choice(ODD_VALUES), dtype=object)
        )
    elif kind < 0.6:
        stored[rng.choice((name + "x", "plan", "name", "x_train"))] = array
    elif kind < 0.7 and array.size and array.dtype.kind in "iuf":
        stored[name] = array.copy()
        stored[name].flat[rng.randrange(array.size)] = rng.choice((0, 1, 99))
    elif kind < 0.8:
        stored[name] = np.frombuffer(rng.randbytes(max(1, array.nbytes)), np.uint8)
    np.savez(written, allow_pickle=True, **stored)
    if kind < 0.8:
        return written.getvalue()
    with zipfile.ZipFile(written, "a") as out, io.BytesIO() as one:
        np.save(one, array, allow_pickle=True)
        out.writestr(f"{name}.npy", mutate_npy(one.getvalue(), rng))
    return written.getvalue()


def mutate_pickle(content: bytes, rng: random.Random) -> bytes:
    """Pickle the values again with one replaced, in any protocol, or insert odd instructions."""
    if rng.random() < 0.5:
        values = replace_node(pickle.loads(content), rng, lambda: rng.choice(ODD_VALUES))
        return pickle.dumps(values, rng.randrange(6))
    instructions = (
        *(b"cos\nsystem\n(S'true'\ntR", b"cnumpy\nndarray\n(K\x01tR", b"c__builtin__\neval\n"),
        *(
            b"\x8b\xff\xff\xff\x7f",
            b"\x8e" + b"\xff" * 8,
            b"B\xff\xff\xff\x7f",
            b"r\xff\xff\xff\x7f",
        ),
        *(
            b"(" * 1000,
            b"}" * 50,
            b"]" * 9000 + b"a" * 8999,
            b"h\xff",
            b"0" * 5,
            b"R",
            b"b",
            b"\x81",
        ),
        *(b"I" + b"9" * 5000 + b"\n", b"V\\ud800\n", b"S'\n", b"P1\n", b"\x82\x01", b"\x97", b"."),
    )
    at = rng.randrange(2, len(content))
    return content[:at] + rng.choice(instructions) + content[at:]


def mutate_idx(content: bytes, rng: random.Random) -> bytes:
    """Write another shape or type into the header."""
    header = struct.pack(
        ">HBB",
        rng.choice((0, 0, 1)),
        rng.choice((8, 8, 9, 13)),
        rng.choice((0, 1, 2, 3, 4, 5, 255)),
    )
    lengths = [
        rng.choice((0, 1, 2, 4, 2**16, 2**31, 2**32 - 1)) for _ in range(rng.randrange(1, 5))
    ]
    return header + struct.pack(f">{len(lengths)}I", *lengths) + content[16:]


def inside_gzip(mutation: Mutation) -> Mutation:
    """Return a mutation of the content of a gzip file, with a correct checksum."""
    return lambda content, rng: gzip.compress(mutation(gzip.decompress(content), rng))
