"""Order files: a stream saved as `order.npz`, and the stream `replay-file` that replays one.

An order file lets others train on exactly the same images in the same order.
"""

import dataclasses
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.files import write_atomically
from sterad.streams.arrangement import STREAMS
from sterad.streams.domain_transforms import TRANSFORMS, DomainTransform, from_dict
from sterad.streams.stream import Evaluation, Shift, Stream, digest_of

FORMAT_VERSION = 1


@STREAMS.register("replay-file")
@dataclass(frozen=True)
class ReplayFile:
    """The stream of an order file, with its saved batches, task ends and evaluations."""

    file: Path = field(default=Path("order.npz"), metadata={"place": True})
    """Order file of a stream over the dataset of this run."""
    hash: str | None = None
    """Required hash of the stream, or its first digits (default: any)."""

    def with_hash(self) -> "ReplayFile":
        """Return the description with the hash of the file, which identifies the stream."""
        if self.hash:
            return self
        with _reading(self.file):
            return dataclasses.replace(self, hash=str(_read_columns(self.file)["hash"]))

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the saved stream; the seed has no effect."""
        stream = read_order(self.file, dataset)
        if self.hash is not None and not stream.digest.startswith(self.hash):
            raise SteradError(
                f"the order file {str(self.file)!r} has the hash {stream.digest[:12]} and not "
                f"{self.hash}: give the file of that stream, or give no hash"
            )
        return stream


def save_order(stream: Stream, path: str | Path) -> Path:
    """Write the order, its hash and everything that `read_order` needs; return the path.

    The images are not copied. `numpy.load` opens the file; `order` holds positions in the train
    split, `hash` the digest of the stream.
    """
    evaluations = stream.evaluations()
    plan = {
        "settings": stream.settings,
        "tasks": stream.tasks,
        "shifts": [
            {"start": one.start, "under": _transform_dict(one.transform)} for one in stream.shifts
        ],
        "evaluations": [
            {
                "name": one.name,
                "classes": one.classes,
                "images": len(one.indices),
                "under": None if one.transform is None else _transform_dict(one.transform),
                "since": one.since,
            }
            for one in evaluations
        ],
    }
    columns: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "hash": stream.digest,
        "dataset": stream.dataset.name,
        "dataset_labels": _labels_digest(stream.dataset),
        "name": stream.name,
        "order": stream.order,
        "batch_size": stream.batch_size,
        "ends": np.array(stream.ends, dtype=np.int64),
        "scored": np.concatenate([one.indices for one in evaluations]),
        "plan": json.dumps(plan),
    }
    file = Path(path)
    write_atomically(file, lambda opened: np.savez_compressed(opened, **columns))
    return file


def read_order(path: str | Path, dataset: Dataset) -> Stream:
    """Return the saved stream over `dataset`, which must have the same labels as when saved."""
    with _reading(path):
        columns = _read_columns(path)
        if str(columns["dataset_labels"]) != _labels_digest(dataset):
            raise SteradError(
                f"the order file {str(path)!r} is for the dataset {str(columns['dataset'])!r} and "
                f"{dataset.name!r} has other labels: load the dataset with the options of the "
                "saved one"
            )
        stream, saved = _make_stream(columns, dataset), str(columns["hash"])
    if stream.digest != saved:
        raise _damaged(path, f"its hash is {saved[:12]}, its content {stream.digest[:12]}")
    return stream


def _labels_digest(dataset: Dataset) -> str:
    """Return a hash of the labels of both splits, to check that positions mean the same images."""
    return digest_of(dataset.train_labels, dataset.test_labels)


def _transform_dict(transform: DomainTransform) -> dict[str, Any]:
    if type(transform) not in TRANSFORMS.values():
        raise SteradError(
            f"the transformation {transform!r} cannot be saved in an order file: "
            f"use {', '.join(TRANSFORMS)}"
        )
    return transform.to_dict()


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Convert the exceptions of a missing or damaged file into a SteradError."""
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


def _read_columns(path: str | Path) -> dict[str, Any]:
    # numpy.load(path) leaves a file open if it cannot read it, so the file is opened here.
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):  # numpy would report a pickle
            raise _damaged(path, "it is not a complete .npz file")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            columns: dict[str, Any] = {name: stored[name] for name in stored.files}
    if int(columns["format"]) != FORMAT_VERSION:
        raise SteradError(
            f"the order file {str(path)!r} has format {columns['format']} and this version "
            f"reads {FORMAT_VERSION}: use the version that wrote it"
        )
    return columns


def _make_stream(columns: dict[str, Any], dataset: Dataset) -> Stream:
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
        shifts=tuple(Shift(one["start"], from_dict(one["under"])) for one in plan["shifts"]),
        scored=tuple(
            Evaluation(
                name=one["name"],
                classes=tuple(one["classes"]),
                indices=chosen,
                transform=None if one["under"] is None else from_dict(one["under"]),
                since=one["since"],
            )
            for one, chosen in zip(plan["evaluations"], indices, strict=True)
        ),
        settings=str(plan["settings"]),
    )


def _damaged(path: str | Path, reason: str) -> SteradError:
    return SteradError(f"the order file {str(path)!r} is damaged ({reason}): export it again")
