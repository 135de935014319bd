"""The class weights of GSA, from the gradients that the logits of each class have received.

In a cross-entropy with posteriors p, the logit of class c gets the gradient p_c - 1 from samples of
c, and p_c from all others: positive and negative mass.
"""

import torch
from torch import Tensor


def gradient_masses(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the sums of 1 - p_c over samples of c, and of p_c over all others: (2, C).

    logits: (n, C); targets: (n,) int64.

    >>> gradient_masses(torch.zeros(3, 2), torch.tensor([0, 0, 1]))
    tensor([[1.0000, 0.5000],
            [0.5000, 1.0000]])
    """
    p = logits.detach().softmax(dim=1)
    own = (targets[:, None] == torch.arange(p.shape[1], device=p.device)).to(p)
    return torch.stack([(own - own * p).sum(dim=0), (p - own * p).sum(dim=0)])


def balance_weights(masses: Tensor) -> Tensor:
    """Return 2 / (1 + exp(1 - g)) for g = positive / negative mass: (C,), in (0.54, 2).

    masses: (2, C). A class without negative mass has no ratio yet, and the weight 1.

    >>> balance_weights(torch.tensor([[1.0, 2.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]]))
    tensor([1.0000, 1.4621, 0.5379, 1.0000])
    """
    positive, negative = masses
    ratio = torch.where(negative > 0, positive / negative.clamp_min(1e-12), 1)
    return 2 * (ratio - 1).sigmoid()
