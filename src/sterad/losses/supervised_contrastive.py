"""The supervised contrastive loss.

P. Khosla et al., "Supervised Contrastive Learning", NeurIPS 2020, https://arxiv.org/abs/2004.11362.
For unit rows z_i, with P(i) the other rows with the label of i,

    loss_i = -1/|P(i)| Σ_{p in P(i)} log( exp(z_i·z_p / T) / Σ_{a ≠ i} exp(z_i·z_a / T) ).

If each image has its own label, shared by its two views, this is the loss of SimCLR (T. Chen et
al., ICML 2020, https://arxiv.org/abs/2002.05709).
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
    """Return the mean of loss_i over the rows with a nonempty P(i), or 0 if there are none.

    z: (n, d) unit rows, all views of all images; labels: (n,). With reduction "none": (n,), 0 for
    rows with an empty P(i).

    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> supervised_contrastive_loss(z, torch.tensor([4, 4, 7]), temperature=1.0)  # log(1 + 1/e)
    tensor(0.3133)
    """
    diagonal = torch.eye(len(z), dtype=torch.bool, device=z.device)
    cosines = z @ z.T / temperature
    # The lowest finite number, not -inf, which would give NaN in a batch of one row.
    others = cosines.masked_fill(diagonal, torch.finfo(cosines.dtype).min)
    log_probs = others.log_softmax(dim=1)
    positive = (labels[:, None] == labels) & ~diagonal
    count = positive.sum(dim=1)
    mean_log_probs = torch.where(positive, log_probs, 0).sum(dim=1) / count.clamp_min(1)
    if reduction == "none":
        return -mean_log_probs
    return -mean_log_probs.sum() / (count > 0).sum().clamp_min(1)
