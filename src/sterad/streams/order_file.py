"""Order files: a stream as `order.npz`, so that others train on the very same one."""

import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sterad.atomic import write_atomically
from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.streams.digest import digest_of
from sterad.streams.stream import Evaluation, Shift, Stream
from sterad.streams.transforms import NAMED, Transform, from_plain, plain

FORMAT = 1


def save_order(stream: Stream, path: str | Path) -> Path:
    """Write the order, its hash and all else that `read_order` needs; return the path.

    The images stay where they are. `numpy.load` opens the file; `order` holds positions in the
    train split, `hash` the digest of the stream.
    """
    evaluations = stream.evaluations()
    columns: dict[str, Any] = {
        "format": FORMAT,
        "hash": stream.digest,
        "dataset": stream.dataset.name,
        "dataset_labels": labels_checksum(stream.dataset),
        "name": stream.name,
        "order": stream.order,
        "batch_size": stream.batch_size,
        "ends": np.array(stream.ends, dtype=np.int64),
        "scored": np.concatenate([one.indices for one in evaluations]),
        "plan": json.dumps(_plan(stream, evaluations)),
    }
    file = Path(path)
    write_atomically(file, lambda opened: np.savez_compressed(opened, **columns))
    return file


def read_order(path: str | Path, dataset: Dataset) -> Stream:
    """Return the stream that was saved, over `dataset`, which must have the labels it had then."""
    with _reading(path):
        columns = _columns(path)
        _check_dataset(path, columns, dataset)
        stream = _stream(columns, dataset)
    if stream.digest != str(columns["hash"]):
        raise _damaged(
            path, f"its hash says {str(columns['hash'])[:12]}, its order {stream.digest[:12]}"
        )
    return stream


def order_hash(path: str | Path) -> str:
    """Return the hash that an order file says it has, without a dataset to check it by."""
    with _reading(path):
        return str(_columns(path)["hash"])


def labels_checksum(dataset: Dataset) -> str:
    """Return a hash of both splits' labels: equal where positions mean the same images."""
    return digest_of(dataset.train_labels, dataset.test_labels)


def _plan(stream: Stream, evaluations: tuple[Evaluation, ...]) -> dict[str, Any]:
    return {
        "settings": stream.settings,
        "tasks": stream.tasks,
        "shifts": [{"start": one.start, "under": _named(one.transform)} for one in stream.shifts],
        "evaluations": [
            {
                "name": one.name,
                "classes": one.classes,
                "images": len(one.indices),
                "under": None if one.transform is None else _named(one.transform),
                "since": one.since,
            }
            for one in evaluations
        ],
    }


def _named(transform: object) -> dict[str, Any]:
    if not isinstance(transform, Transform) or type(transform) not in NAMED.values():
        raise SteradError(
            f"the transformation {transform!r} is not one that a file can name: "
            f"those are {', '.join(NAMED)}"
        )
    return plain(transform)


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Turn whatever a file that is none raises into a sentence."""
    try:
        yield
    except SteradError:
        raise
    except FileNotFoundError as error:
        raise SteradError(
            f"there is no order file {str(path)!r}: give the file of an exported stream"
        ) from error
    except (
        *(OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError),
        *(LookupError, TypeError, ValueError, AttributeError),
    ) as error:
        raise _damaged(path, repr(error)) from error


def _columns(path: str | Path) -> dict[str, Any]:
    # numpy leaves a file open that it cannot read: it gets an open one, which is closed here.
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):  # numpy would take it for a pickle, and say so
            raise _damaged(path, "it is no whole .npz file")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            columns: dict[str, Any] = {name: stored[name] for name in stored.files}
    if int(columns["format"]) != FORMAT:
        raise SteradError(
            f"the order file {str(path)!r} has format {columns['format']} and this sterad "
            f"reads {FORMAT}: use the sterad that wrote it"
        )
    return columns


def _check_dataset(path: str | Path, columns: dict[str, Any], dataset: Dataset) -> None:
    if str(columns["dataset_labels"]) != labels_checksum(dataset):
        raise SteradError(
            f"the order file {str(path)!r} is of the dataset {str(columns['dataset'])!r} and "
            f"{dataset.name!r} as loaded now has other labels: load it with the options it had"
        )


def _stream(columns: dict[str, Any], dataset: Dataset) -> Stream:
    plan = json.loads(str(columns["plan"]))
    counts = [one["images"] for one in plan["evaluations"]]
    indices = np.split(columns["scored"].astype(np.int64), np.cumsum(counts)[:-1])
    return Stream(
        dataset=dataset,
        name=str(columns["name"]),
        order=columns["order"].astype(np.int64),
        batch_size=int(columns["batch_size"]),
        tasks=tuple(map(tuple, plan["tasks"])),
        ends=tuple(columns["ends"].tolist()),
        shifts=tuple(Shift(one["start"], from_plain(one["under"])) for one in plan["shifts"]),
        scored=tuple(
            Evaluation(
                name=one["name"],
                classes=tuple(one["classes"]),
                indices=chosen,
                transform=None if one["under"] is None else from_plain(one["under"]),
                since=one["since"],
            )
            for one, chosen in zip(plan["evaluations"], indices, strict=True)
        ),
        settings=str(plan.get("settings", "")),
    )


def _damaged(path: str | Path, reason: str) -> SteradError:
    return SteradError(f"the order file {str(path)!r} is damaged ({reason}): export it again")
