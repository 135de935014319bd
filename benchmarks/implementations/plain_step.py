"""Experience replay written by hand in torch, without a library.

The memory is a tensor; crops, flips and the reservoir are loops over images.
"""

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from workload import (
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


class Rehearsal:
    """A shuffled stream at its middle, and a reservoir of its images."""

    def __init__(self) -> None:
        self.images, self.labels = map(torch.from_numpy, pixels())
        self.order, self.seen = torch.randperm(IMAGES), SEEN
        self.memory_x = self.images[:MEMORY].float() / 255
        self.memory_y = self.labels[:MEMORY].clone()

    def batch(self) -> tuple[Tensor, Tensor]:
        """Return the next images and labels."""
        now = self.order[self.seen % IMAGES : self.seen % IMAGES + BATCH]
        return self.images[now].float() / 255, self.labels[now]

    def joined(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Return images drawn from memory, followed by a batch."""
        chosen = torch.randperm(MEMORY)[:MEMORY_BATCH]
        return torch.cat([self.memory_x[chosen], x]), torch.cat([self.memory_y[chosen], y])

    def keep(self, x: Tensor, y: Tensor) -> None:
        """Offer a batch to the reservoir."""
        for image, label in zip(x, y, strict=True):
            slot = random.randint(0, self.seen)
            if slot < MEMORY:
                self.memory_x[slot], self.memory_y[slot] = image, label
            self.seen += 1


def augment(x: Tensor) -> Tensor:
    """Return a random crop of each padded image, flipped with probability 1/2."""
    padded, out = F.pad(x, (PAD, PAD, PAD, PAD)), torch.empty_like(x)
    for i in range(len(x)):
        top, left = random.randint(0, 2 * PAD), random.randint(0, 2 * PAD)
        view = padded[i, :, top : top + SHAPE[1], left : left + SHAPE[2]]
        out[i] = view.flip(-1) if random.random() < 0.5 else view
    return out


def set_up(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return a function that runs steps and returns their time."""
    net, rehearsal = network(name), Rehearsal()
    optimizer = torch.optim.SGD(net.parameters(), **SGD)

    def step() -> None:
        batch = rehearsal.batch()
        x, y = rehearsal.joined(*batch)
        loss = F.cross_entropy(net(augment(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rehearsal.keep(*batch)

    return lambda steps: seconds(lambda: [step() for _ in range(steps)])


if __name__ == "__main__":
    run_on_request(set_up)
