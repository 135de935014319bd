"""Make committed records small: `python -m sterad_reproduction.compact reproduction/records`.

Tables, verdicts and curves need none of what is left out: names of classes, their proportions along
the stream, the confusion matrix, losses of single steps, points on the sphere and the memory's
counts. Each record
is read with its SHA-256 checked, names what was left out in its provenance, and is written with a
new SHA-256. Every accuracy, time and setting stays as it was.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sterad.files import write_atomically
from sterad.results.record import RunRecord

LEFT_OUT = (
    *("stream.class_names", "stream.proportions", "confusion", "losses", "sphere"),
    "moments.memory",
)
"""Parts of a record that only figures use."""


def compact(record: RunRecord) -> RunRecord:
    """Return the record without what tables do not need; a compact record does not change."""
    return replace(
        record,
        stream=replace(record.stream, class_names=(), proportions=()),
        moments=tuple(replace(moment, memory=()) for moment in record.moments),
        confusion=(),
        losses=(),
        sphere=None,
        provenance={**record.provenance, "left_out": list(LEFT_OUT)},
    )


def compact_folder(folder: Path) -> tuple[int, int]:
    """Compact every record below a folder; return the bytes before and after."""
    before = after = 0
    for file in sorted(folder.rglob("record.json")):
        text = file.read_text(encoding="utf-8")
        smaller = compact(RunRecord.from_json(text, str(file))).to_json()
        before, after = before + len(text.encode()), after + len(smaller.encode())
        if smaller != text:
            write_atomically(file, smaller)
    return before, after


def main(arguments: Sequence[str] | None = None) -> int:
    """Compact the records of all folders."""
    parser = argparse.ArgumentParser(
        prog="python -m sterad_reproduction.compact", description=__doc__.splitlines()[0]
    )
    parser.add_argument("folders", type=Path, nargs="+", help="folders of records")
    for folder in parser.parse_args(arguments).folders:
        if not folder.is_dir():
            parser.error(f"{str(folder)!r} is no folder: give folders of records")
        before, after = compact_folder(folder)
        print(f"{folder}: {before / 1e6:.2f} MB before, {after / 1e6:.2f} MB after")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
