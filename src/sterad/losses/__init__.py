"""Laws to gradients: pure functions, tensors in, a scalar out."""

from sterad.losses.posterior import (
    likelihood_loss,
    posterior_loss,
    posterior_loss_of_scores,
)

__all__ = [
    "likelihood_loss",
    "posterior_loss",
    "posterior_loss_of_scores",
]
