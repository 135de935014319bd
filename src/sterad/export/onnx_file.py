"""ONNX files: a graph with the card in its metadata and, as the last bytes, a SHA-256 of the rest.

The digest is a field of the protobuf message itself: fields may follow in any order, so every
reader of ONNX takes it as one more entry of the metadata, and it can be checked before parsing.
"""

import hashlib
from typing import Any

import torch

from sterad.errors import SteradError
from sterad.export.tracing import quiet
from sterad.optional_imports import require_extra

OPSETS = range(18, 24)
"""Versions of the operator set that torch writes and onnxruntime reads."""
DEFAULT_OPSET = 18
CARD_KEY = "sterad_card"
DIGEST_KEY = b"sterad_sha256"
METADATA_TAG = b"\x72"
"""Field 14 of a ModelProto, `metadata_props`: a message with a key (1) and a value (2)."""
_ENTRY = b"\x0a" + bytes([len(DIGEST_KEY)]) + DIGEST_KEY + b"\x12\x40"
DIGEST_PREFIX = METADATA_TAG + bytes([len(_ENTRY) + 64]) + _ENTRY
DIGEST_SIZE = len(DIGEST_PREFIX) + 64


def check_opset(opset: Any) -> int:
    """Return a supported version of the operator set."""
    if not isinstance(opset, int) or isinstance(opset, bool) or opset not in OPSETS:
        raise SteradError(
            f"opset {opset!r} is not supported: give a number from {OPSETS[0]} to {OPSETS[-1]}"
        )
    return opset


def to_onnx(program: torch.export.ExportedProgram, card: str, opset: int) -> bytes:
    """Return the bytes of an ONNX file."""
    for package in ("onnx", "onnxscript"):
        require_extra(package, "export")
    with quiet():
        made: Any = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=opset,
            verbose=False,
            input_names=["inputs"],
            output_names=["scores", "indices"],
        )
        model = made.model_proto
    _remove_sources(model)
    entry = model.metadata_props.add()
    entry.key, entry.value = CARD_KEY, card
    try:
        content: bytes = model.SerializeToString(deterministic=True)
    except Exception as error:  # a protobuf message has at most 2 GB
        raise SteradError(
            f"the classifier does not fit into one ONNX file ({error}): export it as safetensors"
        ) from error
    return with_digest(content)


def with_digest(content: bytes) -> bytes:
    """Return the content of an ONNX file with the entry of its SHA-256.

    >>> check_digest(with_digest(b"content"))
    """
    return content + DIGEST_PREFIX + hashlib.sha256(content).hexdigest().encode()


def check_digest(content: bytes) -> None:
    """Raise ValueError unless the last bytes are the SHA-256 of everything before them."""
    body, end = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
    if not end.startswith(DIGEST_PREFIX):
        raise ValueError("it has no SHA-256 of sterad, or was changed after the export")
    if end != with_digest(body)[-DIGEST_SIZE:]:
        raise ValueError("its content does not match its SHA-256")


def open_session(content: bytes, threads: int | None) -> Any:
    """Return a session of onnxruntime on the CPU."""
    runtime = require_extra("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # errors are raised
    if threads is not None:
        options.intra_op_num_threads = threads
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _remove_sources(model: Any) -> None:
    """Remove the stack traces of the export, which contain paths of this machine."""
    for part in (model, model.graph):
        del part.metadata_props[:]
    functions = [node for function in model.functions for node in function.node]
    values = [*model.graph.value_info, *model.graph.input, *model.graph.output]
    for one in (*model.graph.node, *functions, *values, *model.graph.initializer):
        del one.metadata_props[:]
        one.doc_string = ""
