"""trace: the graph of a predictor, by torch.export."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.export.layers import Traced
from sterad.export.predictor import Predictor


def trace(predictor: Predictor, example: Tensor) -> torch.export.ExportedProgram:
    """Return the graph of a predictor for batches of any size."""
    size = torch.export.Dim("n", min=1)
    try:
        with quiet():
            program = torch.export.export(predictor, (example,), dynamic_shapes=({0: size},))
    except Exception as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "")[:200]
        own = [layer.name for layer in predictor.answer if isinstance(layer, Traced)]
        what = " or ".join([f"the encoder {type(predictor.encoder).__name__}", *own])
        raise SteradError(
            f"{what} cannot be traced ({type(error).__name__}: {reason.strip()}): it must compute "
            "the same operations for every batch; replace branches on values by torch.where and "
            "len(x) by x.shape[0], or export to .safetensors"
        ) from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it contains paths of this machine
    return program


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence what torch logs and prints while it exports: errors are raised as well."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
