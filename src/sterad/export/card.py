"""Card: what an exported classifier is, as JSON: classes, inputs, encoder, layers and digests."""

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from sterad.errors import SteradError
from sterad.files import content_hash, parse_json
from sterad.labels import LabelIndex, to_python_labels

FORMATS = {"onnx": ".onnx", "pt2": ".pt2", "safetensors": ".safetensors"}
"""Endings of the files by format."""
FORMAT = "sterad export"
SCHEMA = 1
MAX_INPUT_VALUES = 1 << 26
"""Values of one input; a damaged shape may need any amount of memory."""
MAX_WIDTH = 1 << 12
Label = int | str
InputType = Literal["float32", "uint8"]
INPUT_TYPES: tuple[str, ...] = get_args(InputType)


@dataclass(frozen=True)
class Card:
    """Everything about an exported classifier that is not in its graph or weights."""

    sterad: str
    """Version of the package that wrote it."""
    method: str
    labels: tuple[Label, ...]
    """Labels of the columns of the scores; a class index is a position here."""
    classes: tuple[Label, ...]
    """All labels, sorted, with those that were declared and not seen."""
    input_shape: tuple[int, ...]
    """(channels, height, width) of images, or (d,) of feature vectors."""
    input_dtype: str
    """float32: images in [0, 1], or any features; uint8: images from 0 to 255."""
    encoder: str | None
    """Registered name, or None if only the user has its code."""
    encoder_type: str
    width: int
    input_mean: tuple[float, ...]
    input_std: tuple[float, ...]
    input_size: tuple[int, int] | None
    """Mean, standard deviation, height and width that the encoder's inputs are transformed to."""
    answer: tuple[dict[str, Any], ...]
    """Layers from features to scores."""
    precision: str = "float32"
    """Precision of the encoder in the classifier that was exported; the graph is float32."""
    weights_sha256: str | None = None
    """Of the file beside the card."""

    def to_json(self) -> str:
        """Return the card with a hash of its content."""
        values = {"format": FORMAT, "schema": SCHEMA, **asdict(self)}
        return json.dumps(values | {"sha256": content_hash(values)}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Card":
        """Return the card of a text; raise if it is damaged or of another version."""
        values = parse_json(text)
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ValueError("it has no card of an exported classifier")
        digest = values.pop("sha256", None)
        if digest != content_hash(values):
            raise ValueError("its card does not match its SHA-256")
        if values["schema"] != SCHEMA:
            raise SteradError(
                f"its schema is {values['schema']} and this sterad reads {SCHEMA}: use the sterad "
                "that wrote it, or export the classifier again"
            )
        card = cls(**{one.name: _as_tuple(values[one.name]) for one in fields(cls)})
        card.check()
        return card

    def check(self) -> None:
        """Raise ValueError for values that no export has."""
        shape = self.input_shape
        if not _are(shape, int) or len(shape) not in (1, 3) or min(shape) < 1:
            raise ValueError(f"its inputs have the shape {shape}")
        size = self.input_size
        if size is not None and not (_are(size, int) and len(size) == 2 and min(size) > 0):
            raise ValueError(f"its encoder has images of the size {size}")
        values = [math.prod(shape), shape[0] * math.prod(size or ())]
        if max(values) > MAX_INPUT_VALUES:
            raise ValueError(f"its inputs have {max(values)} values")
        if not _are((self.width,), int) or not 0 < self.width <= MAX_WIDTH:
            raise ValueError(f"its width is {self.width}")
        if self.input_dtype not in INPUT_TYPES:
            raise ValueError(f"its inputs are {self.input_dtype}")
        if not _are(self.input_mean, int, float) or not _are(self.input_std, int, float):
            raise ValueError("its input_mean or input_std are no numbers")
        if not _are(self.answer, dict):
            raise ValueError("its layers are no objects")
        for name in ("sterad", "method", "encoder_type", "precision"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"its {name} is no text")
        self._check_labels()

    def _check_labels(self) -> None:
        if not isinstance(self.labels, tuple) or not isinstance(self.classes, tuple):
            raise ValueError("its labels are no list")
        for labels in (self.labels, self.classes):
            LabelIndex(to_python_labels(list(labels)))  # refuses labels that are given twice
        if not self.labels or not set(self.labels) <= set(self.classes):
            raise ValueError("its labels are not among its classes")


def card_path(path: Path) -> Path:
    """Return the path of the card beside a file.

    >>> card_path(Path("model.safetensors")).name
    'model.safetensors.json'
    """
    return path.with_name(path.name + ".json")


def _are(values: Any, *types: type) -> bool:
    return isinstance(values, tuple) and all(type(one) in types for one in values)


def _as_tuple(value: Any) -> Any:
    """Return lists as tuples, as a card has them."""
    return tuple(value) if isinstance(value, list) else value
