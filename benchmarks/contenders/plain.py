"""Plain: experience replay as one writes it by hand in torch, without a library.

The memory is a tensor; crops, flips and the reservoir are loops over images.
"""

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from work import (
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
    seconds,
    take_turns,
)


def augment(x: Tensor) -> Tensor:
    """Cut each image out of a padded one and mirror every second."""
    padded, out = F.pad(x, (PAD, PAD, PAD, PAD)), torch.empty_like(x)
    for i in range(len(x)):
        top, left = random.randint(0, 2 * PAD), random.randint(0, 2 * PAD)
        view = padded[i, :, top : top + SHAPE[1], left : left + SHAPE[2]]
        out[i] = view.flip(-1) if random.random() < 0.5 else view
    return out


def ready(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return the loop."""
    images, labels = map(torch.from_numpy, pixels())
    net, order = network(name), torch.randperm(IMAGES)
    optimiser = torch.optim.SGD(net.parameters(), **SGD)
    memory_x, memory_y = images[:MEMORY].float() / 255, labels[:MEMORY].clone()
    seen = SEEN

    def step() -> None:
        nonlocal seen
        now = order[seen % IMAGES : seen % IMAGES + BATCH]
        x, y = images[now].float() / 255, labels[now]
        chosen = torch.randperm(MEMORY)[:MEMORY_BATCH]
        x_all, y_all = torch.cat([memory_x[chosen], x]), torch.cat([memory_y[chosen], y])
        loss = F.cross_entropy(net(augment(x_all)), y_all)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for image, label in zip(x, y, strict=True):
            slot = random.randint(0, seen)
            if slot < MEMORY:
                memory_x[slot], memory_y[slot] = image, label
            seen += 1

    return lambda steps: seconds(lambda: [step() for _ in range(steps)])


if __name__ == "__main__":
    take_turns(ready)
