"""load_exported: predictions from an exported file, without training code."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sterad.data.arrays import as_inputs
from sterad.encoders.make import EncoderSource
from sterad.errors import SteradError
from sterad.export.card import FORMATS, Card, card_path
from sterad.export.onnx_file import CARD_KEY, check_digest, open_session
from sterad.export.predictor import rebuild_predictor
from sterad.files import parse_json, reading
from sterad.optional_imports import require_extra

BATCH_SIZE = 500
"""Inputs passed to the graph at a time."""
REMEDY = "export the classifier again"
PROGRAM_FILES = ("models/model.json", "data/sample_inputs/model.pt")
PROGRAM_FOLDERS = ("data/weights/", "data/constants/", ".data/")
Array = npt.NDArray[Any]
Graph = Callable[[Array], tuple[Array, Array]]
"""From inputs (n, ...) to scores (n, k) and class indices (n,)."""


class ExportedClassifier:
    """Predicts as the classifier that was exported; it cannot learn."""

    def __init__(self, card: Card, graph: Graph) -> None:
        """Take what `load_exported` has read."""
        self.card, self._graph = card, graph

    @property
    def classes_(self) -> npt.NDArray[np.generic]:
        """Labels, sorted: the columns of `predict_proba`."""
        return np.array(self.card.classes)

    @property
    def labels_(self) -> npt.NDArray[np.generic]:
        """Labels of the columns of `scores`, in the order of class indices."""
        return np.array(self.card.labels)

    def predict(self, X: npt.ArrayLike | Tensor) -> npt.NDArray[np.generic]:
        """Return the label of each input, given as to `OnlineClassifier.predict`."""
        labels: npt.NDArray[np.generic] = self.labels_[self._run(X)[1]]
        return labels

    def scores(self, X: npt.ArrayLike | Tensor) -> Array:
        """Return (n, len(labels_)) scores; the highest one decides."""
        return self._run(X)[0]

    def predict_proba(self, X: npt.ArrayLike | Tensor) -> npt.NDArray[np.float64]:
        """Return (n, len(classes_)) probabilities; classes that were never seen have 0."""
        scores = torch.from_numpy(self.scores(X)).double()
        order = {label: position for position, label in enumerate(self.card.classes)}
        table = np.zeros((len(scores), len(order)))
        table[:, [order[label] for label in self.card.labels]] = scores.softmax(dim=1).numpy()
        return table

    def _run(self, x: Any) -> tuple[Array, Array]:
        inputs, shape = as_inputs(x, "inputs"), self.card.input_shape
        if inputs.shape[1:] != shape:
            raise SteradError(
                f"the inputs have shape {inputs.shape[1:]} and the exported classifier takes "
                f"{shape}: bring every input to that shape"
            )
        if inputs.dtype == np.uint8 and self.card.input_dtype == "float32":
            inputs = inputs.astype(np.float32) / np.float32(255)
        starts = range(0, max(len(inputs), 1), BATCH_SIZE)
        parts = [self._graph(inputs[start : start + BATCH_SIZE]) for start in starts]
        return np.concatenate([s for s, _ in parts]), np.concatenate([i for _, i in parts])

    def __repr__(self) -> str:
        card = self.card
        return f"ExportedClassifier({card.method!r}, {len(card.classes)} classes)"


def load_exported(
    path: str | Path,
    *,
    encoder: EncoderSource | None = None,
    threads: int | None = None,
    trusted: bool = False,
) -> ExportedClassifier:
    """Return a classifier that predicts from a file that `OnlineClassifier.export` wrote.

    The SHA-256 of the content is checked first; it finds damage, not malice. Reading .onnx and
    .safetensors runs no code of the file.

    encoder: for safetensors with an encoder that is not sterad's: the module, or a function that
        makes it; its weights are replaced.
    threads: CPU threads for .onnx (default: chosen by onnxruntime).
    trusted: required for .pt2, because torch evaluates expressions of such a file when it reads it.
    """
    file = Path(path)
    if file.suffix not in FORMATS.values():
        raise SteradError(
            f"{str(file)!r} has no ending of an exported classifier: give a file that ends with "
            f"{', '.join(FORMATS.values())}"
        )
    if not file.is_file():
        raise SteradError(f"there is no file {str(file)!r}: give the path that export() wrote")
    with reading(file, REMEDY):
        if encoder is not None and file.suffix != ".safetensors":
            raise SteradError("its graph contains the encoder: leave out encoder")
        if file.suffix == ".onnx":
            return ExportedClassifier(*_load_onnx(file, threads))
        card, content = _read_with_card(file)
        if file.suffix == ".pt2":
            return ExportedClassifier(card, _load_program(content, trusted))
        tensors = require_extra("safetensors.torch", "export").load(content)
        with reading(card_path(file), REMEDY):
            predictor = rebuild_predictor(card, tensors, encoder)
        return ExportedClassifier(card, _as_graph(predictor))


def _load_onnx(file: Path, threads: int | None) -> tuple[Card, Graph]:
    content = file.read_bytes()
    check_digest(content)
    session = open_session(content, threads)
    card = Card.from_json(session.get_modelmeta().custom_metadata_map.get(CARD_KEY, "{}"))
    shapes = {one.name: one.shape[1:] for one in (*session.get_inputs(), *session.get_outputs())}
    if shapes != {"inputs": [*card.input_shape], "scores": [len(card.labels)], "indices": []}:
        raise ValueError(f"its graph has the inputs and outputs {shapes}")

    def run(x: Array) -> tuple[Array, Array]:
        scores, indices = session.run(["scores", "indices"], {"inputs": x})
        return scores, indices

    return card, run


def _read_with_card(file: Path) -> tuple[Card, bytes]:
    """Return the card beside a file, and the content of the file, which it describes."""
    card_file = card_path(file)
    if not card_file.is_file():
        raise SteradError(f"its card {card_file.name!r} is missing: keep both files together")
    with reading(card_file, REMEDY):
        card = Card.from_json(card_file.read_bytes())
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != card.weights_sha256:
        raise ValueError(f"its content does not match the SHA-256 in {card_file.name}")
    return card, content


def _load_program(content: bytes, trusted: bool) -> Graph:
    if not trusted:
        raise SteradError(
            "it is a program of torch.export, and torch evaluates expressions of such a file when "
            "it reads it: load it with trusted=True if it is from you, or export .onnx or "
            ".safetensors"
        )
    _refuse_pickles(content)
    return _as_graph(torch.export.load(io.BytesIO(content)).module())


def _refuse_pickles(content: bytes) -> None:
    """Raise ValueError for an archive of which torch would unpickle a part without restrictions."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            inner = name.partition("/")[2]
            is_known = inner in PROGRAM_FILES or inner.startswith(PROGRAM_FOLDERS)
            if not is_known and "/" in inner:
                raise ValueError(f"it contains {inner}")
            if inner.startswith("data/") and inner.endswith(".json"):
                entries = parse_json(archive.read(name))["config"].values()
                if any(one["use_pickle"] for one in entries):
                    raise ValueError("it contains pickled objects")
            elif inner == PROGRAM_FILES[1]:
                # Raises for anything but tensors and plain values.
                torch.load(io.BytesIO(archive.read(name)), weights_only=True)
            elif inner.endswith(".pt"):
                raise ValueError(f"it contains {inner}")


def _as_graph(module: torch.nn.Module) -> Graph:
    @torch.inference_mode()
    def run(x: Array) -> tuple[Array, Array]:
        # A copy, because torch does not accept read-only arrays.
        scores, indices = module(torch.from_numpy(x.copy()))
        return scores.numpy(), indices.numpy()

    return run
