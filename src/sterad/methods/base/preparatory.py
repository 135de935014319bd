"""Preparatory classes: rotated images of seen classes get directions that no class has yet.

The preparatory classes of EARL (CVPR 2024), whose directions are fixed as well. In each step:
  1. draw up to k of the classes among the images of memory and stream, and m images of each;
  2. rotate a random view of each image by 180°, 90° and 270°; each pair of a class and a rotation
     is a preparatory class, and its label is one that no seen class has;
  3. add w ℓ(rotated views), where ℓ is the method's own loss;
  4. every ℓ of the step, also that of real images, contrasts the classes of the batch and the
     preparatory ones: all of them are in one posterior.
So images that are unlike those of a seen class are kept from its direction, and images of seen
classes from the unused ones: a new class finds its direction free.

From the paper: up to 4 classes, three hard transforms such as rotations, unused ones of the 1,024
directions of a simplex, and ½(zᵀw_y - 1)² as the loss, without a posterior. Ours is the rest:
- ℓ and 4, the weight w (ℓ is a sum over images for fixed directions, else a mean), and views;
- m images of a class, repeated in other views if it has fewer (there each image), so that the cost
  of a step does not depend on what is drawn;
- unused labels are taken from the highest down, because those of coming classes are mostly low. A
  pair keeps its label until a class with this label appears, and then gets another one;
- a class for which no three labels are left is not rotated. Fixed directions have labels to spare,
  with `directions=simplex` one more than dimensions; a head with one output for each class
  prepares fewer classes as they appear, and at the end none.

An image must not look like one of its class, or of another one, after a rotation, as digits do.
With `stage_weight` only the last stage is trained on rotated images.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods.base.additions import Addition, join
from sterad.seeds import generator
from sterad.streams import Batch
from sterad.validation import ADVANCED, OMIT_DEFAULT_FROM_ID, Count, Positive, Range
from sterad.views.geometry import QUARTER_TURNS

if TYPE_CHECKING:
    from sterad.methods.base.replay import Replay

TURNS = QUARTER_TURNS[1:]
"""Quarter turns of the preparatory classes of a class."""
_RARE = ADVANCED | OMIT_DEFAULT_FROM_ID


@dataclass(frozen=True)
class PreparatoryConfig:
    """Training of unused directions on rotated images."""

    preparatory_classes: Annotated[int, Range(0, 100)] = field(default=0, metadata=_RARE)
    """Classes of each step whose rotated images are trained towards unused directions; 0: none,
    published: 4."""
    preparatory_images: Count = field(default=4, metadata=_RARE)
    """Images of each of these classes, each of which is rotated by 90°, 180° and 270°."""
    preparatory_weight: Positive = field(default=1.0, metadata=_RARE)
    """Weight of the loss of the rotated images."""


class PreparatoryClasses(Addition):
    """Adds the method's own loss of rotated images with unused labels."""

    Config = PreparatoryConfig
    switch, switch_value = "preparatory_classes", "preparatory_classes=4"

    def __init__(self, learner: "Replay") -> None:
        """Refuse methods and inputs without unused labels or rotations."""
        _refuse(learner)
        self.labels: dict[int, list[int]] = {}
        """Unused labels of the rotations of a class."""
        self.drawn: list[int] = []
        """The classes of the step in progress."""
        learner.rng["preparatory"] = generator(learner.problem.seed, "preparatory")

    @classmethod
    def cost(cls, config: Any, images: int) -> float:
        """Return the cost of the rotated images."""
        return float(len(TURNS) * config.preparatory_classes * config.preparatory_images)

    def before_loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> None:
        """Draw classes, and let all losses of the step contrast with the preparatory ones."""
        self.move_labels(learner)
        present = sorted({*retrieved.y.tolist(), *batch.y.tolist()})
        order = torch.randperm(len(present), generator=learner.rng["preparatory"]).tolist()
        usable = (present[i] for i in order if self.find_labels(learner, present[i]))
        self.drawn = [*islice(usable, learner.config.preparatory_classes)]
        learner.other_labels = self.step_labels(learner) if self.drawn else None

    def loss(self, learner: "Replay", retrieved: Batch, batch: Batch) -> Tensor | None:
        """Return the weighted loss of the rotated images of the drawn classes."""
        if not self.drawn:
            return None
        joined, labels = join(retrieved, batch), self.step_labels(learner)
        rows = torch.cat([self.draw_rows(learner, joined.y, one) for one in self.drawn])
        view = learner.view(learner.engine.to_device(joined.x[rows]))
        rotated = torch.cat([view.rot90(turns, (2, 3)) for turns in TURNS])
        outputs = learner.engine.forward([learner.engine.to_device(rotated)])
        learner.other_labels = joined.y
        loss = learner.loss_of_outputs(outputs, labels)
        learner.other_labels = None
        weight: float = learner.config.preparatory_weight
        return weight * loss

    def step_labels(self, learner: "Replay") -> Tensor:
        """Return the labels of the rotated images of a step, in blocks of one rotation."""
        labels = torch.tensor([self.labels[one] for one in self.drawn])
        return labels.repeat_interleave(learner.config.preparatory_images, dim=0).T.flatten()

    def draw_rows(self, learner: "Replay", labels: Tensor, wanted: int) -> Tensor:
        """Draw rows of a class, each again only after all others."""
        rows = (labels == wanted).nonzero().squeeze(1)
        order = torch.randperm(len(rows), generator=learner.rng["preparatory"])
        return rows[order[torch.arange(learner.config.preparatory_images) % len(rows)]]

    def find_labels(self, learner: "Replay", wanted: int) -> list[int]:
        """Return the labels of the rotations of a class; empty if none are left for it."""
        if wanted not in self.labels:
            found = [*islice(self.unused(learner), len(TURNS))]
            if len(found) < len(TURNS):
                return []
            self.labels[wanted] = found
        return self.labels[wanted]

    def move_labels(self, learner: "Replay") -> None:
        """Replace labels of classes that have appeared; without a replacement drop the class."""
        seen = set(learner.seen.tolist())
        for one, labels in list(self.labels.items()):
            if seen.isdisjoint(labels):
                continue
            unused = self.unused(learner)
            moved = [next(unused, -1) if label in seen else label for label in labels]
            self.labels[one] = moved
            if -1 in moved:
                del self.labels[one]

    def unused(self, learner: "Replay") -> Iterator[int]:
        """Return the labels that neither a seen nor a preparatory class has, the highest first."""
        taken = {*learner.seen.tolist(), *chain.from_iterable(self.labels.values())}
        return (one for one in reversed(range(learner.label_count)) if one not in taken)

    def state_dict(self) -> dict[str, Any]:
        """Return a row for each class that was rotated: the class and the labels it got."""
        rows = [[one, *labels] for one, labels in self.labels.items()]
        return {"labels": torch.tensor(rows, dtype=torch.int64).view(-1, 1 + len(TURNS))}

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless a state has distinct labels of distinct classes."""
        rows = state["labels"]
        if not (rows.dtype == torch.int64 and rows.shape == (len(rows), 1 + len(TURNS))):
            raise ValueError(f"the preparatory labels are not int64 rows of {1 + len(TURNS)}")
        for column in (rows[:, 0], rows[:, 1:]):
            if column.numel() and (column.min() < 0 or len(column.unique()) < column.numel()):
                raise ValueError("two preparatory classes have one label")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that `state_dict` returned."""
        self.labels = {one: labels for one, *labels in state["labels"].tolist()}


def _refuse(learner: "Replay") -> None:
    name, shape = type(learner).__name__, learner.problem.input_shape
    switch = f"preparatory_classes={learner.config.preparatory_classes}"
    if not learner.allows_preparatory_classes:
        raise SteradError(
            f"{switch} trains labels that no class has yet, and the loss of {name} is not over all "
            "outputs or fixed directions: use agd-fd, er or er-ace, for example"
        )
    if len(shape) != 3 or shape[1] != shape[2]:
        raise SteradError(
            f"{switch} rotates square images by 90°, and the inputs have shape {shape}: crop or "
            "pad images to a square, or leave preparatory_classes=0"
        )
    if learner.label_count <= len(TURNS):
        raise SteradError(
            f"{switch} needs outputs without a class, and the head of {name} starts with "
            f"{learner.label_count}: declare {1 + len(TURNS)} classes or more in advance, or use "
            "agd-fd"
        )
