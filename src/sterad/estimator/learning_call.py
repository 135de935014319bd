"""One call of `fit` or `partial_fit`: its checks, and the learner while it learns."""

from typing import Any

import torch

from sterad.engine.engine import DivergenceError
from sterad.errors import SteradError
from sterad.estimator.finished import FinishedState, Label
from sterad.estimator.inputs import Array, check_labels
from sterad.estimator.recipe import Recipe
from sterad.labels import LabelIndex
from sterad.methods import Learner
from sterad.methods.base.rollback import Snapshot
from sterad.streams import Batch


class LearningCall:
    """The learner and the labels while a call learns."""

    def __init__(
        self, recipe: Recipe, learner: Learner, labels: LabelIndex, on_divergence: str
    ) -> None:
        self.recipe, self.learner, self.labels = recipe, learner, labels
        self.skips = on_divergence == "skip"
        self.skipped_batches = 0

    def learn(self, x: torch.Tensor, labels: list[Label], start: int) -> None:
        """Learn from one batch or, with "skip", from nothing of it; `start` is its first row."""
        known, index = self.labels.known, torch.from_numpy(self.labels.encode(labels))
        snapshot = Snapshot(self.learner) if self.skips else None
        try:
            loss = self.learner.observe(Batch(x, index))
            if loss is not None and not bool(torch.isfinite(loss)):
                raise DivergenceError(f"the loss is {float(loss)}")
        except DivergenceError as error:
            if snapshot is None:
                raise SteradError(
                    f"{error} in rows {start} to {start + len(labels) - 1}: nothing of this call "
                    "was learned, and the classifier is as before; remove outliers from these "
                    "rows, choose a smaller lr, or use on_divergence='skip'"
                ) from error
            self.learner = snapshot.restore(self.recipe.build)
            self.labels = LabelIndex(known)
            self.skipped_batches += 1
        finally:
            if snapshot is not None:
                snapshot.close()


def check_rows(inputs: Array, y: Any) -> list[Label]:
    """Return the labels of inputs, one for each of at least one."""
    labels = check_labels(y)
    if len(inputs) == 0:
        raise SteradError("the batch is empty: give at least one image")
    if len(inputs) != len(labels):
        raise SteradError(
            f"there are {len(inputs)} images and {len(labels)} labels: give one label per image"
        )
    return labels


def declare(before: FinishedState | None, classes: Any) -> tuple[Label, ...] | None:
    """Return the declared labels: those of the first call, in which they may be given."""
    given = None if classes is None else tuple(sorted({*check_labels(classes)}))
    if before is None:
        return given
    if given is not None and given != before.declared:
        raise SteradError(
            "classes= differs from the first call, which "
            + ("declared none" if before.declared is None else f"declared {before.declared}")
            + ": give the same ones, or none"
        )
    return before.declared


def check_declared(labels: list[Label], declared: tuple[Label, ...] | None) -> None:
    """Refuse labels that are not declared, if any are."""
    if declared is None:
        return
    LabelIndex(declared).check(labels)
    if unknown := sorted(set(labels) - set(declared)):
        raise SteradError(
            f"label {unknown[0]!r} is not in classes=, which was given in the first call: declare "
            "all labels there, or none, so that new ones may appear"
        )
