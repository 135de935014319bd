"""A step of AGD-FD built from kornia and plain torch, like the released code.

Views by kornia, one pass after the other, torch's default memory format, glibc's default settings,
and the loss from a series on one-hot products in double precision.
"""

from collections.abc import Callable

import kornia.augmentation as K
import torch
from plain_step import Rehearsal
from series_loss import series_loss
from torch import nn
from torch.nn.functional import normalize
from workload import SHAPE, new_encoder, run_on_request, seconds

from sterad.encoders import build_network
from sterad.seeds import generator

VIEWS, PROJECTION, VARIANCE, LR = 5, 512, 2.0, 5e-4


def set_up(name: str) -> Callable[[int], tuple[float, float]]:
    """Fill the memory and return a function that runs steps and returns their time."""
    net = build_network(new_encoder(name), "mlp", PROJECTION, generator(0, "network"))
    optimizer = torch.optim.Adam(net.parameters(), lr=LR)
    view = nn.Sequential(
        K.RandomResizedCrop(SHAPE[1:], scale=(0.2, 1.0)),
        K.RandomHorizontalFlip(),
        K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        K.RandomGrayscale(p=0.2),
    )
    rehearsal = Rehearsal()

    def step() -> None:
        batch = rehearsal.batch()
        x, y = rehearsal.joined(*batch)
        views = [*(view(x) for _ in range(VIEWS)), x]
        z = normalize(torch.cat([net(v) for v in views]))
        loss = series_loss(z, y.repeat(len(views)), VARIANCE)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rehearsal.keep(*batch)

    return lambda steps: seconds(lambda: [step() for _ in range(steps)])


if __name__ == "__main__":
    run_on_request(set_up)
