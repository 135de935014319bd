"""Losses of new and old classes along the stream: what the paper's fifth figure is drawn from."""

import math

from torch import Tensor

from sterad.methods import Learner
from sterad.streams import Batch, Stream

WATCHED = 200
"""Steps of a run that are watched at most, evenly spread: enough for a line, and next to free."""


class LossWatch:
    """Watches every k-th step, if no class of the stream belongs to two tasks."""

    def __init__(self, stream: Stream) -> None:
        """Know the task of each class."""
        pairs = [(label, task) for task, labels in enumerate(stream.tasks) for label in labels]
        self.task_of = dict(pairs) if len(dict(pairs)) == len(pairs) else {}
        self.every = -(-len(stream) // WATCHED)
        self.losses: list[tuple[int, float, float]] = []
        """Steps with the mean loss of new and of old classes."""

    def look(self, learner: Learner, step: int) -> None:
        """Decide whether the step to come is watched."""
        learner.sample_losses = None
        learner.records_sample_losses = bool(self.task_of) and step % self.every == 0

    def note(self, learner: Learner, batch: Batch, step: int) -> None:
        """Keep the mean losses of a watched step where both kinds of classes were in it.

        Classes of tasks before the one that most of the batch belongs to are old, all others new.
        """
        if learner.sample_losses is None:
            return
        tasks = [self.task_of[label] for label in batch.y.tolist()]
        current = max(set(tasks), key=lambda task: (tasks.count(task), task))
        losses, labels = learner.sample_losses
        means = _means(losses, [self.task_of[label] < current for label in labels.tolist()])
        if means is not None:
            self.losses.append((step, *means))


def _means(losses: Tensor, old: list[bool]) -> tuple[float, float] | None:
    kinds: tuple[list[float], list[float]] = ([], [])
    for loss, is_old in zip(losses.tolist(), old, strict=True):
        kinds[is_old].append(loss)
    if not all(kinds):
        return None
    new, past = (math.fsum(kind) / len(kind) for kind in kinds)
    return (new, past) if math.isfinite(new) and math.isfinite(past) else None
