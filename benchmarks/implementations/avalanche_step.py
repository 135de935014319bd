"""Experience replay by avalanche-lib, in a separate environment.

Naive with a ReplayPlugin over a ReservoirSamplingBuffer, configured for speed: torchvision's
transforms work on uint8 tensors, which is faster than on PIL images, and there is no worker
process, metric, logger, evaluation or warning. Avalanche updates its memory after an experience,
not after a batch. The third argument chooses: `round` makes one experience of all steps of a round,
which is fastest but does not update the memory within a round; `online` makes one of each batch, as
the others do. Creating the experiences is not timed.
"""

import sys
import warnings
from collections.abc import Callable

import torch

# torchvision's wheel does not load its compiled part with a torch without CUDA. Its import needs
# these two operators to be defined; nothing here calls them.
MISSING = torch.library.Library("torchvision", "DEF")
for operator in ("nms", "qnms"):
    MISSING.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from avalanche.benchmarks import benchmark_from_datasets  # noqa: E402
from avalanche.benchmarks.utils import as_classification_dataset  # noqa: E402
from avalanche.benchmarks.utils.transform_groups import DefaultTransformGroups  # noqa: E402
from avalanche.training.plugins import ReplayPlugin  # noqa: E402
from avalanche.training.storage_policy import ReservoirSamplingBuffer  # noqa: E402
from avalanche.training.supervised import Naive  # noqa: E402
from torchvision import transforms  # noqa: E402
from workload import (  # noqa: E402
    BATCH,
    IMAGES,
    MEMORY,
    MEMORY_BATCH,
    PAD,
    SEEN,
    SGD,
    SHAPE,
    network,
    pixels,
    run_on_request,
    seconds,
)

warnings.warn = lambda *_, **__: None  # avalanche would print a deprecation at each step


class Pixels(torch.utils.data.Dataset):
    """Images as uint8 tensors, and their labels."""

    def __init__(self) -> None:
        images, labels = pixels()
        self.images, self.targets = torch.from_numpy(images), labels.tolist()

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.images[index], self.targets[index]


def set_up(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return a function that runs steps and returns their time."""
    augmentation = transforms.Compose(
        [
            transforms.RandomCrop(SHAPE[1], padding=PAD),
            transforms.RandomHorizontalFlip(),
            transforms.ConvertImageDtype(torch.float32),
        ]
    )
    data = as_classification_dataset(Pixels(), DefaultTransformGroups((augmentation, None)))
    memory, net = ReservoirSamplingBuffer(max_size=MEMORY), network(name)
    replay = ReplayPlugin(mem_size=MEMORY, batch_size_mem=MEMORY_BATCH, storage_policy=memory)
    strategy = Naive(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), **SGD),
        train_mb_size=BATCH,
        plugins=[replay],
        evaluator=None,
    )
    memory.update_from_dataset(data.subset(list(range(SEEN))))
    online, seen = sys.argv[3] == "online", SEEN

    def experiences(steps: int) -> list:
        nonlocal seen
        size, parts = (BATCH, steps) if online else (BATCH * steps, 1)
        starts = range(seen, seen + size * parts, size)
        seen += size * parts
        subsets = [data.subset([i % IMAGES for i in range(s, s + size)]) for s in starts]
        return list(benchmark_from_datasets(train=subsets).train_stream)

    def train(stream: list) -> None:
        for experience in stream:
            # A smaller last memory batch would be less work than the others have.
            strategy.train(experience, num_workers=0, drop_last=True)

    def steps(count: int) -> tuple[float, float]:
        stream = experiences(count)
        return seconds(lambda: train(stream))

    return steps


if __name__ == "__main__":
    run_on_request(set_up)
