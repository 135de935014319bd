"""Stage 8: losses, as pure functions from tensors to a scalar."""

from sterad.losses.class_posterior import likelihood_loss, posterior_loss, posterior_loss_of_scores

__all__ = ["likelihood_loss", "posterior_loss", "posterior_loss_of_scores"]
