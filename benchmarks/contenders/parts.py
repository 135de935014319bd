"""Parts: a step of AGD-FD put together from what is at hand, as released code does it.

Views by kornia, one pass after the other, torch's layout, glibc's defaults, and the loss from a
series on one-hot products in double precision.
"""

from collections.abc import Callable

import kornia.augmentation as K
import torch
from series_loss import series_loss
from torch import nn
from torch.nn.functional import normalize
from work import (
    BATCH,
    ENCODERS,
    IMAGES,
    MEMORY,
    MEMORY_BATCH,
    SEEN,
    SHAPE,
    pixels,
    seconds,
    take_turns,
)

from sterad.encoders import build_network
from sterad.seeds import generator

VIEWS, PROJECTION, VARIANCE, LR = 5, 512, 2.0, 5e-4


def ready(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return the loop."""
    images, labels = map(torch.from_numpy, pixels())
    encoder, width = ENCODERS[name]
    net = build_network(encoder, SHAPE, width, "mlp", PROJECTION, generator(0, "network"))
    optimiser = torch.optim.Adam(net.parameters(), lr=LR)
    view = nn.Sequential(
        K.RandomResizedCrop(SHAPE[1:], scale=(0.2, 1.0)),
        K.RandomHorizontalFlip(),
        K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        K.RandomGrayscale(p=0.2),
    )
    memory_x, memory_y = images[:MEMORY].float() / 255, labels[:MEMORY].clone()
    seen = SEEN

    def step() -> None:
        nonlocal seen
        now = torch.arange(seen, seen + BATCH) % IMAGES
        x, y = images[now].float() / 255, labels[now]
        chosen = torch.randperm(MEMORY)[:MEMORY_BATCH]
        x_all, y_all = torch.cat([memory_x[chosen], x]), torch.cat([memory_y[chosen], y])
        shown = [*(view(x_all) for _ in range(VIEWS)), x_all]
        z = normalize(torch.cat([net(one) for one in shown]))
        loss = series_loss(z, y_all.repeat(len(shown)), VARIANCE)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for image, label in zip(x, y, strict=True):
            slot = int(torch.randint(0, seen + 1, ()))
            if slot < MEMORY:
                memory_x[slot], memory_y[slot] = image, label
            seen += 1

    return lambda steps: seconds(lambda: [step() for _ in range(steps)])


if __name__ == "__main__":
    take_turns(ready)
