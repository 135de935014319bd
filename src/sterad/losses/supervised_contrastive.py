"""The supervised contrastive loss: images of one class together, all others apart.

Prannay Khosla et al.: Supervised Contrastive Learning. NeurIPS 2020,
https://arxiv.org/abs/2004.11362. For unit rows z_i, P(i) the other rows with the label of i,

    loss_i = -1/|P(i)| Σ_{p in P(i)} log( exp(z_i·z_p / T) / Σ_{a ≠ i} exp(z_i·z_a / T) ).

With a label of its own for each image, shared by its two views, it is the loss of SimCLR (Ting Chen
et al., ICML 2020, https://arxiv.org/abs/2002.05709).
"""

from typing import Literal

import torch
from torch import Tensor


def supervised_contrastive_loss(
    z: Tensor,
    labels: Tensor,
    temperature: float = 0.07,
    reduction: Literal["mean", "none"] = "mean",
) -> Tensor:
    """Return the mean of loss_i over the rows that have another row of their label, 0 without any.

    z: (n, d) unit rows, all views of all images; labels: (n,). Memory grows with n², not with d.
    With reduction none: (n,), 0 for a row that has no other of its label.

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> supervised_contrastive_loss(z, torch.tensor([4, 4, 7]), temperature=1.0)  # log(1 + 1/e)
    tensor(0.3133)
    """
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    cosines = z @ z.T / temperature
    # The least finite number, not -inf: a row alone in its batch must not become NaN.
    others = cosines.masked_fill(itself, torch.finfo(cosines.dtype).min)
    log_shares = others.log_softmax(dim=1)  # subtracts the maximum of each row
    positive = (labels[:, None] == labels) & ~itself
    count = positive.sum(dim=1)
    pulled = torch.where(positive, log_shares, 0).sum(dim=1) / count.clamp_min(1)
    if reduction == "none":
        return -pulled
    return -pulled.sum() / (count > 0).sum().clamp_min(1)
