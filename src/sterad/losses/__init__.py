"""Laws to gradients: pure functions, tensors in, a scalar out."""

from sterad.losses.frequencies import ClassFrequencies
from sterad.losses.posterior import (
    likelihood_loss,
    posterior_loss,
    posterior_loss_of_scores,
)

__all__ = [
    "ClassFrequencies",
    "likelihood_loss",
    "posterior_loss",
    "posterior_loss_of_scores",
]
