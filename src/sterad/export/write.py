"""export_learner: write what a learner predicts as ONNX, a torch program or safetensors."""

import hashlib
import importlib.metadata
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from sterad.encoders.own_encoder import example_inputs
from sterad.encoders.peers import PeerEncoders
from sterad.errors import SteradError
from sterad.export.card import FORMATS, INPUT_TYPES, Card, Label, card_path
from sterad.export.comparison import (
    check_scores,
    encoder_precision,
    expected_scores,
    warn_of_precision,
)
from sterad.export.from_learner import build_predictor
from sterad.export.layers import Traced, describe_layers
from sterad.export.onnx_file import DEFAULT_OPSET, check_opset, open_session, to_onnx
from sterad.export.predictor import Predictor, rebuild_predictor
from sterad.export.tracing import trace
from sterad.files import write_atomically
from sterad.methods import Learner
from sterad.optional_imports import require_extra

EXAMPLES = 5
"""Inputs on which an export is compared with the classifier before it is written."""
Run = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Source:
    """A consolidated learner, and what a card says about it."""

    learner: Learner
    method: str
    labels: Sequence[Label]
    """Labels by class index."""
    classes: Sequence[Label]
    """All labels, sorted."""
    encoder: str | None
    """Registered name of the encoder; None for a user's own."""


def export_learner(
    source: Source,
    path: str | Path,
    format: str | None = None,
    opset: int | None = None,
    input_dtype: str = "float32",
) -> Path:
    """Write the graph from inputs to scores and class indices; return the path of the file.

    The file is compared with the learner, in float32, on a few inputs before it is written.
    """
    target = Path(path)
    kind = _format_of(target, format)
    number = _check_opset(opset, kind)
    _check_input_dtype(input_dtype, source.learner.problem.input_shape)
    predictor, columns = build_predictor(source.learner, input_dtype)
    card = _describe(source, predictor, columns)
    example = _examples(predictor)
    if kind == "safetensors" and isinstance(predictor.encoder, PeerEncoders):
        raise SteradError(
            f"a file of weights is for one encoder, and {source.method} has two: export to a path "
            f"that ends with {FORMATS['onnx']}, for example"
        )
    content, run = _WRITERS[kind](predictor, card, example, number)
    expected = expected_scores(source.learner, predictor, example)
    check_scores(run(example).numpy(), expected, source.method)
    write_atomically(target, content)
    if kind != "onnx":
        digest = hashlib.sha256(content).hexdigest()
        write_atomically(card_path(target), replace(card, weights_sha256=digest).to_json())
    warn_of_precision(card.precision, stacklevel=4)
    return target


def _check_opset(opset: int | None, kind: str) -> int:
    if opset is not None and kind != "onnx":
        raise SteradError(f"opset {opset} has no effect on {kind}: leave it out")
    return DEFAULT_OPSET if opset is None else check_opset(opset)


def _format_of(path: Path, format: str | None) -> str:
    endings = {ending: name for name, ending in FORMATS.items()}
    if format is not None and format not in FORMATS:
        raise SteradError(f"unknown format {format!r}: give one of {', '.join(FORMATS)}")
    found = endings.get(path.suffix)
    if found is None:
        raise SteradError(
            f"{path.name!r} has no ending of a known format: give a path that ends with "
            f"{', '.join(endings)}"
        )
    if format is not None and format != found:
        raise SteradError(
            f"{path.name!r} ends with {path.suffix} and format is {format}: leave out the format, "
            f"or end the path with {FORMATS[format]}"
        )
    return found


def _check_input_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    if dtype not in INPUT_TYPES:
        raise SteradError(f"unknown input_dtype {dtype!r}: give one of {', '.join(INPUT_TYPES)}")
    if dtype == "uint8" and len(shape) == 1:
        raise SteradError(
            "input_dtype uint8 is for images, and the inputs are feature vectors: leave it out"
        )


def _describe(source: Source, predictor: Predictor, columns: Sequence[int]) -> Card:
    problem, inputs = source.learner.problem, predictor.inputs
    return Card(
        sterad=importlib.metadata.version("sterad"),
        method=source.method,
        labels=tuple(source.labels[column] for column in columns),
        classes=tuple(source.classes),
        input_shape=problem.input_shape,
        input_dtype=predictor.input_dtype,
        encoder=source.encoder,
        encoder_type=type(predictor.encoder).__name__,
        width=problem.width,
        input_mean=() if inputs is None else tuple(inputs.mean.flatten().tolist()),
        input_std=() if inputs is None else tuple(inputs.std.flatten().tolist()),
        input_size=None if inputs is None else inputs.size,
        answer=tuple(describe_layers(predictor.answer)),
        precision=encoder_precision(source.learner),
    )


def _examples(predictor: Predictor) -> Tensor:
    x = example_inputs(predictor.input_shape, EXAMPLES)
    return (x * 255).to(torch.uint8) if predictor.input_dtype == "uint8" else x


def _write_onnx(predictor: Predictor, card: Card, example: Tensor, opset: int) -> tuple[bytes, Run]:
    content = to_onnx(trace(predictor, example), card.to_json(), opset)
    session = open_session(content, 1)
    return content, lambda x: torch.from_numpy(session.run(["scores"], {"inputs": x.numpy()})[0])


def _write_program(
    predictor: Predictor, card: Card, example: Tensor, opset: int
) -> tuple[bytes, Run]:
    program = trace(predictor, example)
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue(), lambda x: program.module()(x)[0]


def _write_tensors(
    predictor: Predictor, card: Card, example: Tensor, opset: int
) -> tuple[bytes, Run]:
    library = require_extra("safetensors.torch", "export")
    for layer in predictor.answer:
        if isinstance(layer, Traced):
            raise SteradError(
                f"{layer.name} is your own code, which a file of weights cannot contain: export to "
                ".onnx or .pt2"
            )
    parts = (("encoder", predictor.encoder), ("answer", predictor.answer))
    # Clones, because weights that modules share must not be shared in the file.
    tensors = {
        f"{name}.{key}": value.detach().clone().contiguous()
        for name, part in parts
        for key, value in part.state_dict().items()
    }
    content: bytes = library.save(tensors, metadata={"format": "pt"})
    own = None if card.encoder is not None else predictor.encoder
    rebuilt = rebuild_predictor(card, library.load(content), own)
    return content, lambda x: rebuilt(x)[0]


_WRITERS: dict[str, Callable[..., tuple[bytes, Run]]] = {
    "onnx": _write_onnx,
    "pt2": _write_program,
    "safetensors": _write_tensors,
}
