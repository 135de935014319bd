"""Readers of exported classifiers: ONNX, and safetensors with their card."""

import hashlib
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from sterad import OnlineClassifier, load_exported
from sterad.export.card import card_path
from sterad.export.onnx_file import CARD_KEY, DIGEST_SIZE, with_digest
from sterad.files import content_hash
from tests.fuzz.harness import Reader
from tests.fuzz.mutations import mutate_bytes, mutate_json
from tests.fuzz.state_readers import rehashed_json

X = np.eye(3, dtype=np.float32).repeat(2, axis=0)


@cache
def small_classifier() -> OnlineClassifier:
    return OnlineClassifier("er", memory=4, encoder="mlp", width=2).partial_fit(X, [*"aabbcc"])


def write_onnx(folder: Path) -> Path:
    return small_classifier().export(folder / "model.onnx")


def write_weights(folder: Path) -> Path:
    return small_classifier().export(folder / "model.safetensors")


def write_card(folder: Path) -> Path:
    return card_path(write_weights(folder))


def read_exported(file: Path) -> Any:
    exported = load_exported(file, threads=1)
    scores = exported.scores(X)
    return exported.classes_.tolist(), exported.predict(X).tolist(), scores.tobytes()


def read_by_card(file: Path) -> Any:
    return read_exported(file.with_suffix(""))


def read_with_new_card(file: Path) -> Any:
    """Read weights after their digest in the card was computed again, so that they are parsed."""
    values = json.loads(card_path(file).read_text())
    del values["sha256"]
    values["weights_sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    text = json.dumps(values | {"sha256": content_hash(values)})
    card_path(file).write_text(text)
    return read_exported(file)


def mutate_onnx_card(content: bytes, rng: random.Random) -> bytes:
    """Change the card in the metadata of an ONNX file, and compute both digests again."""
    model = onnx.load_from_string(content[:-DIGEST_SIZE])
    (entry,) = (one for one in model.metadata_props if one.key == CARD_KEY)
    entry.value = rehashed_json(entry.value.encode(), rng).decode()
    return with_digest(model.SerializeToString())


EXPORT_READERS = (
    Reader("export-onnx", write_onnx, read_exported, (mutate_bytes,), (mutate_onnx_card,)),
    Reader("export-safetensors", write_weights, read_exported, (mutate_bytes,)),
    Reader("export-card", write_card, read_by_card, (mutate_bytes, mutate_json), (rehashed_json,)),
    Reader("export-weights", write_weights, read_with_new_card, (), (mutate_bytes,)),
)
