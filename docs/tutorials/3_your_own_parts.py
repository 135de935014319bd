"""# Your own method, encoder, memory and stream

Every part of a learner is an argument: a registered name, an object, or a function that makes one. You
write the part that your idea is about and inherit the rest.
"""

# %% [markdown]
# ## A method
#
# A replay method computes the loss of a retrieved and a stream batch. Retrieval, views, steps, memory,
# prediction and checkpoints are inherited. The fields of its `Config` become keywords and options.

# %%
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.methods import METHODS, Replay, ReplayConfig
from sterad.streams import Batch


@dataclass(frozen=True)
class SmoothConfig(ReplayConfig):
    """The fields of every replay method, and the smoothing."""

    smoothing: float = 0.1
    """Share of the target that is spread over all classes."""


@METHODS.register("smooth")
class Smooth(Replay):
    """Replay with smoothed labels."""

    Config = SmoothConfig
    config: SmoothConfig

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the mean cross-entropy with smoothed labels."""
        logits, labels = self.forward_views(Batch.concatenate(retrieved, batch))
        return F.cross_entropy(logits, labels, label_smoothing=self.config.smoothing)


# %% [markdown]
# `check_method` runs the contract of every method: it learns, accepts new classes, predicts only seen
# ones, and continues from a checkpoint to the same bits.

# %%
from sterad.testing import check_method

check_method("smooth")
print("the method keeps the contract")

# %% [markdown]
# ## A memory
#
# A memory policy decides what is kept. This one keeps the newest samples; slots are preallocated, and
# all columns (images, labels, what a method stores beside them) are written together.

# %%
from sterad.memory import MEMORIES, SlotMemory
from sterad.testing import check_memory


@MEMORIES.register("newest")
class Newest(SlotMemory):
    """The newest samples: a ring buffer."""

    def __len__(self) -> int:
        return min(self.seen, self.capacity)

    def update(self, batch: Batch) -> None:
        """Write each sample over the oldest one."""
        self.prepare(batch)
        slots = {(self.seen + i) % self.capacity: i for i in range(len(batch))}
        self.write(batch, slots)
        self.seen += len(batch)


check_memory("newest")
print("the memory keeps the contract")

# %% [markdown]
# ## A stream
#
# A stream is an object with `open(dataset, seed)` that returns an order of the training images. This one
# begins with the most frequent classes and has no announced ends of tasks.

# %%
import numpy as np

from sterad import Dataset
from sterad.data import Digits
from sterad.streams import Stream


@dataclass(frozen=True)
class FrequentFirst:
    """Classes by their frequency, the most frequent one first."""

    batch_size: int = 10

    def open(self, dataset: Dataset, seed: int) -> Stream:
        """Return the stream; the seed shuffles the images of each class."""
        shuffled = np.random.default_rng(seed).permutation(len(dataset.train_labels))
        counts = np.bincount(dataset.train_labels)
        labels = dataset.train_labels[shuffled]
        order = shuffled[np.lexsort((labels, -counts[labels]))]
        return Stream(
            dataset, "frequent first", order, self.batch_size, (tuple(range(10)),)
        )


# %% [markdown]
# ## An encoder, and all of it together
#
# An encoder is any torch module from a batch to features, or a function that makes one. `run` takes all
# parts as objects; what you pass is part of the run's id by a digest of its code and values.

# %%
from sterad import run
from sterad.engine import Execution


def make_encoder() -> nn.Module:
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
    )


common = {
    "dataset": Digits(per_class=100),
    "stream": FrequentFirst(),
    "encoder": make_encoder,
    "augmentation": "none",
    "lr": 0.05,
    "execution": Execution(threads=1),
}
for name, memory in (("reservoir", 150), ("newest", Newest(150))):
    record = run(method=Smooth, memory=memory, smoothing=0.05, **common)
    print(f"{name:9} {record.final_average_accuracy:.1%}")

# %% [markdown]
# A memory of the newest samples has forgotten the first classes; a reservoir is a uniform sample of the
# stream.
#
# ## In the classifier
#
# The same parts are arguments of `OnlineClassifier`, and the optimizer, too:

# %%
from sterad import OnlineClassifier

digits = Digits(per_class=100).load()
classifier = OnlineClassifier(
    Smooth,
    memory=300,
    encoder=make_encoder,
    augment="none",
    optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=3e-3),
    smoothing=0.05,
)
classifier.fit(digits.train_images, digits.train_labels)
print(f"{classifier.score(digits.test_images, digits.test_labels):.1%}")

# %% [markdown]
# ## On the command line
#
# A file that registers your parts is a plugin: `sterad train smooth --plugin my_parts.py
# --memory-policy newest --smoothing 0.05`. [My method](../../examples/my_method.py),
# [my law](../../examples/my_law.py) and [my retrieval](../../examples/my_retrieval.py) are complete
# files.
