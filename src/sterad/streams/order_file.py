"""Order files: a stream saved as `order.npz`, and the stream `replay-file` that replays one.

An order file lets others train on exactly the same images in the same order.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sterad.data import Dataset
from sterad.data.archive import read_npz
from sterad.errors import SteradError
from sterad.files import reading, write_atomically
from sterad.streams.arrangement import STREAMS
from sterad.streams.domain_transforms import TRANSFORMS, DomainTransform, from_dict
from sterad.streams.stream import Evaluation, Shift, Stream, digest_of

FORMAT_VERSION = 2
ARRAYS = ("order", "ends", "scored")
TEXTS = ("format", "dataset", "dataset_labels", "name", "batch_size", "plan")
REMEDY = "save the order again with `sterad stream`"


@STREAMS.register("replay-file")
@dataclass(frozen=True)
class ReplayFile:
    """The stream of an order file, with its saved batches, task ends and evaluations."""

    file: Path = field(default=Path("order.npz"), metadata={"place": True})
    """Order file of a stream over the dataset of this run."""
    hash: str | None = None
    """Required hash of the file, or its first digits (default: any)."""

    def with_hash(self) -> "ReplayFile":
        """Return the description with the hash of the file, which identifies the stream."""
        return self if self.hash else dataclasses.replace(self, hash=read_hash(self.file))

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the saved stream; the seed has no effect."""
        if self.hash is not None and not (found := read_hash(self.file)).startswith(self.hash):
            raise SteradError(
                f"the order file {str(self.file)!r} has the hash {found[:12]} and not "
                f"{self.hash}: give the file of that stream, or give no hash"
            )
        return read_order(self.file, dataset)


def read_hash(path: str | Path) -> str:
    """Return the hash of all that an order file contains."""
    return str(_read_columns(Path(path))["hash"])


def save_order(stream: Stream, path: str | Path) -> Path:
    """Write the order, its hash and everything that `read_order` needs; return the path.

    The images are not copied. `numpy.load` opens the file; `order` holds positions in the train
    split, `hash` a hash of everything else in the file.
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
        "dataset": stream.dataset.name,
        "dataset_labels": _labels_digest(stream.dataset),
        "name": stream.name,
        "order": stream.order,
        "batch_size": stream.batch_size,
        "ends": np.array(stream.ends, dtype=np.int64),
        "scored": np.concatenate([one.indices for one in evaluations]),
        "plan": json.dumps(plan),
    }
    columns["hash"] = _columns_digest(columns)
    file = Path(path)
    write_atomically(file, lambda opened: np.savez_compressed(opened, **columns))
    return file


def read_order(path: str | Path, dataset: Dataset) -> Stream:
    """Return the saved stream over `dataset`, which must have the same labels as when saved."""
    columns = _read_columns(Path(path))
    if str(columns["dataset_labels"]) != _labels_digest(dataset):
        raise SteradError(
            f"the order file {str(path)!r} is for the dataset {str(columns['dataset'])!r} and "
            f"{dataset.name!r} has other labels: load the dataset with the options of the "
            "saved one"
        )
    with reading(path, REMEDY):
        return _make_stream(columns, dataset)


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


def _columns_digest(columns: Mapping[str, Any]) -> str:
    """Return the hash of all columns, which includes tasks and evaluations."""
    return digest_of(*(columns[name] for name in ARRAYS), *(str(columns[name]) for name in TEXTS))


def _read_columns(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise SteradError(f"there is no order file {str(path)!r}: give the file of a saved stream")
    columns: dict[str, Any] = read_npz(path, (*ARRAYS, *TEXTS, "hash"), REMEDY)
    with reading(path, REMEDY):
        if str(columns["format"]) != str(FORMAT_VERSION):
            raise SteradError(
                f"the order file {str(path)!r} has format {columns['format']} and this version "
                f"reads {FORMAT_VERSION}: {REMEDY}"
            )
        if (saved := str(columns["hash"])) != (found := _columns_digest(columns)):
            raise ValueError(f"its hash is {saved[:12]}, its content {found[:12]}")
    return columns


def _make_stream(columns: dict[str, Any], dataset: Dataset) -> Stream:
    plan = json.loads(str(columns["plan"]))
    counts = [one["images"] for one in plan["evaluations"]]
    scored = columns["scored"].astype(np.int64)
    groups = [*plan["tasks"], *(one["classes"] for one in plan["evaluations"])]
    classes = [label for group in groups for label in group]
    for values, limit in ((scored, len(dataset.test_labels)), (classes, dataset.classes)):
        if not np.isin(values, np.arange(limit)).all():
            raise ValueError("it evaluates classes or test images that the dataset does not have")
    indices = np.split(scored, np.cumsum(counts)[:-1])
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
