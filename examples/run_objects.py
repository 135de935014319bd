"""Run your own dataset, stream and method as objects: nothing is registered."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sterad import Dataset, run
from sterad.methods import Learner
from sterad.streams import Batch, Stream


def make_shapes(count: int) -> tuple[Any, Any]:
    """Return noisy images of 12x20 pixels with a bar in one of four places, and their labels."""
    rng, labels = np.random.default_rng(count), np.arange(count) % 4
    images = rng.uniform(0, 0.5, (count, 12, 20))
    for image, label in zip(images, labels, strict=True):
        image[:, 5 * label : 5 * label + 5] += 0.3
    return images, labels


@dataclass(frozen=True)
class LargestFirst:
    """A stream without tasks that begins with the classes of the largest labels."""

    batch_size: int = 10

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream; the seed shuffles the images of each class."""
        shuffled = np.random.default_rng(seed).permutation(len(dataset.train_labels))
        order = shuffled[np.argsort(-dataset.train_labels[shuffled], kind="stable")]
        tasks = (tuple(range(dataset.classes)),)
        return Stream(dataset, "largest first", order, self.batch_size, tasks)


@dataclass(frozen=True)
class NearestMeanConfig:
    """The fields of the method."""

    prior: float = 1.0
    """Number of gray images that the mean of a class begins with."""


class NearestMean(Learner):
    """The class with the nearest mean image."""

    Config = NearestMeanConfig

    def __init__(self, config: NearestMeanConfig, problem: Any) -> None:
        """Begin without classes."""
        super().__init__(config, problem)
        self.sums: dict[int, Tensor] = {}
        self.counts: dict[int, float] = {}

    def observe(self, batch: Batch) -> None:
        """Add the images to the sums of their classes."""
        self.see(batch)
        for x, label in zip(batch.x, batch.y.tolist(), strict=True):
            start = torch.full_like(x, 0.5 * self.config.prior)
            self.sums[label] = self.sums.get(label, start) + x
            self.counts[label] = self.counts.get(label, self.config.prior) + 1

    def consolidate(self) -> None:
        """Do nothing: the means are always up to date."""

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the negative distance of each image to each mean."""
        labels = self.seen.tolist()
        means = torch.stack([self.sums[label] / self.counts[label] for label in labels])
        return -torch.cdist(x.flatten(1), means.flatten(1)), self.seen

    immediate_scores = scores

    def state_dict(self) -> dict[str, Any]:
        """Return all of the state, so that an interrupted run continues to the bit."""
        return super().state_dict() | {"sums": dict(self.sums), "counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict()`."""
        super().load_state_dict(state)
        self.sums, self.counts = dict(state["sums"]), dict(state["counts"])


record = run(
    method=NearestMean,
    dataset=Dataset.from_arrays(*make_shapes(200), *make_shapes(80), name="shapes"),
    stream=LargestFirst(),
    prior=0.5,  # fields of the method are keywords
)
print(f"{record.id}: final accuracy {record.final_average_accuracy:.1%}")
