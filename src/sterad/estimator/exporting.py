"""Exporting: the method `export` of a classifier."""

from abc import ABC, abstractmethod
from pathlib import Path

from sterad.encoders.make import is_registered
from sterad.estimator.finished import FinishedState
from sterad.estimator.recipe import use_threads


class Exporting(ABC):
    """A classifier whose predictions can be written as one graph."""

    @abstractmethod
    def _consolidated(self) -> FinishedState:
        """Return the state, with everything fitted that predicts."""

    def export(
        self,
        path: str | Path,
        format: str | None = None,
        *,
        opset: int | None = None,
        input_dtype: str = "float32",
    ) -> Path:
        """Write what `predict` computes now, as one graph from inputs to scores and class indices.

        `sterad.load_exported` reads the file; ONNX files also work without sterad.

        path: a file that ends with .onnx, .pt2 (a program of torch.export) or .safetensors; the
            last two have a card beside them, PATH.json.
        format: onnx, pt2 or safetensors, if it is to be checked against the ending.
        opset: version of the operators of ONNX, from 18 to 23 (default: 18).
        input_dtype: float32 for images in [0, 1] and for feature vectors, or uint8 for images.

        Class means along a feed are approximate: call `consolidate` before for exact ones. A
        PrecisionWarning says if the classifier computes its encoder in less than float32, as the
        graph does.
        """
        from sterad.export.write import Source, export_learner  # it imports torch.export

        state = self._consolidated()
        recipe = state.recipe
        is_own = "encoder" in recipe.parts or not is_registered(recipe.problem.encoder)
        method = recipe.params["method"]
        source = Source(
            state.predictor,
            method if isinstance(method, str) else recipe.method.__name__,
            state.labels,
            state.classes.tolist(),
            None if is_own else recipe.problem.encoder,
        )
        with use_threads(recipe.execution.threads):
            return export_learner(source, path, format, opset, input_dtype)
