"""FrozenEncoder: a learner behind an encoder that is not trained; it learns from features.

Each image is encoded once, when it arrives, and the memory of the inner learner keeps features. So
every method works on a pretrained network at the cost of its head.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor

from sterad.encoders import Encoder, EncoderOptions, Network, build_network
from sterad.encoders.make import EncoderSource
from sterad.engine import Evaluator
from sterad.engine.passes import Passes
from sterad.errors import SteradError
from sterad.methods.base.learner import Learner, Problem, build_learner, check_batch, check_inputs
from sterad.plugins import object_digest
from sterad.saved_state import bytes_of
from sterad.seeds import generator
from sterad.streams import Batch, Boundary

MAX_KEPT_IMAGES = 256
"""Largest batch of predicted images that is kept in case it is learned from next."""
NO_ENCODER = "flatten"
"""Name of the encoder that returns its inputs."""


def is_needed(
    method: type[Learner], config: Any, problem: Problem, parts: Any, source: EncoderSource
) -> bool:
    """Return whether a learner of these parts learns from features of a frozen encoder.

    It does if its encoder is frozen and no view differs from its image. With augmentation, a chain
    of views or rotated images, the frozen encoder stays in the network, as each view is encoded.
    """
    options = problem.encoder_options
    has_encoder = source != NO_ENCODER or options.changes_inputs or options.weights is not None
    if not method.trains_encoder:
        for name in ("train_from", "encoder_lr"):
            if (value := getattr(options, name)) is not None:
                raise SteradError(
                    f"{method.__name__} learns from features and trains no encoder, so that "
                    f"{name}={value} has no effect: leave it out"
                )
        return has_encoder
    if not (options.frozen and has_encoder and method.takes_features) or parts is None:
        return False
    uses_views = config.views > 0 or config.teacher != "none"
    changes = parts.augmentation.changes(torch.empty(0, *problem.input_shape))
    more_views = config.chain_views > 0 or config.preparatory_classes > 0
    return not ((uses_views and changes) or more_views)


class FrozenEncoder(Learner):
    """An encoder in evaluation mode, and the learner that gets its features."""

    def __init__(
        self,
        method: type[Learner],
        config: Any,
        problem: Problem,
        make_encoder: Callable[[], Encoder],
        parts: Mapping[str, Any],
    ) -> None:
        """Draw the encoder's weights from the problem's seed, then build the inner learner."""
        network = build_network(make_encoder, "none", None, generator(problem.seed, "network"))
        self.evaluator = Evaluator(network.eval().requires_grad_(False), problem.execution)
        inner = replace(
            problem,
            input_shape=(network.outputs,),
            encoder=NO_ENCODER,
            encoder_options=EncoderOptions(),
        )
        self._inner: Learner = build_learner(method, config, inner, **parts)
        self.Config = method.Config  # type: ignore[misc]
        self.config, self.problem, self.trains = config, problem, self._inner.trains
        self._passes = Passes()
        """Images encoded in training: each once."""
        self._last: tuple[Tensor, Tensor] | None = None
        """Images that were predicted without being learned from, and their features."""

    @property
    def inner(self) -> Learner:
        """The learner from features."""
        return self._inner

    @inner.setter
    def inner(self, learner: Learner) -> None:
        self._inner = learner

    @property
    def seen(self) -> Tensor:  # type: ignore[override]
        """Labels seen so far, ascending."""
        return self._inner.seen

    @property
    def sample_losses(self) -> list[tuple[Tensor, Tensor]] | None:
        """Losses of the inner learner."""
        return self._inner.sample_losses

    @sample_losses.setter
    def sample_losses(self, losses: list[tuple[Tensor, Tensor]] | None) -> None:
        self._inner.sample_losses = losses

    @property
    def consolidation_images(self) -> int:
        """Images of the inner learner's consolidations."""
        return self._inner.consolidation_images

    @consolidation_images.setter
    def consolidation_images(self, images: int) -> None:
        self._inner.consolidation_images = images

    @property
    def images(self) -> int:
        """Feature vectors passed through the inner learner's network in training."""
        return self._inner.images

    @property
    def consolidation_passes(self) -> Passes:  # type: ignore[override]
        """Passes of the inner learner's consolidations."""
        return self._inner.consolidation_passes

    @property
    def passes(self) -> Sequence[tuple[Network, Passes]]:
        """The passes through the encoder, and those of feature vectors."""
        return [(self.evaluator.network, self._passes), *self._inner.passes]

    @property
    def state_bytes(self) -> int:
        """Bytes of the encoder and of the inner learner's state."""
        return bytes_of(self.evaluator.network.state_dict()) + self._inner.state_bytes

    def encode(self, x: Tensor) -> Tensor:
        """Return (n, features) on the CPU for images; the encoder is in evaluation mode."""
        check_inputs(x, self.problem)
        features = self.evaluator.evaluate(lambda network, chunk: network.features(chunk), x)
        if not bool(torch.isfinite(features).all()):
            raise SteradError(
                "the encoder returns NaN or infinite features for these images: check its weights, "
                "and input_mean and input_std"
            )
        # Cloned, because autograd refuses tensors made in inference mode.
        return features.cpu().clone()

    def observe(self, batch: Batch) -> Tensor | None:
        """Encode the batch, unless it was just predicted, and learn from its features."""
        check_batch(batch, self.problem)
        self._passes.count(batch.x, backward=False)
        features, self._last = self._last_features(batch.x), None
        features = self.encode(batch.x) if features is None else features
        return self._inner.observe(Batch(features, batch.y, batch.extra))

    def _last_features(self, x: Tensor) -> Tensor | None:
        """Return the features of the images that were predicted last, if these are the same."""
        if self._last is None or not torch.equal(self._last[0], x):
            return None
        return self._last[1]

    def boundary(self, event: Boundary) -> None:
        """Pass the end of a task on."""
        self._inner.boundary(event)

    def consolidate(self) -> None:
        """Prepare the inner learner for predictions."""
        self._inner.consolidate()

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inner learner's scores of the features of x."""
        return self._inner.scores(self.encode(x))

    def immediate_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return immediate scores; images that are learned from next are not encoded again."""
        features = self.encode(x)
        self._last = (x.clone(), features) if len(x) <= MAX_KEPT_IMAGES else None
        return self._inner.immediate_scores(features)

    def on_sphere(self, x: Tensor) -> Tensor | None:
        """Return unit representations of the inner learner, if it has any."""
        return self._inner.on_sphere(self.encode(x))

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return the number of stored feature vectors of each class."""
        return self._inner.memory_counts(classes)

    @cached_property
    def digest(self) -> str:
        """A hash of the encoder's weights and buffers."""
        return object_digest(dict(self.evaluator.network.encoder.state_dict()))

    def fork(self) -> Self:
        """Return a copy with a copy of the inner learner; the encoder never changes."""
        other = copy(self)
        other._inner, other._passes = self._inner.fork(), deepcopy(self._passes)
        return other

    def state_dict(self) -> dict[str, Any]:
        """Return the inner learner's state, and the digest of the encoder instead of its weights.

        The encoder never changes, so that a checkpoint need not hold it.
        """
        return {
            "encoder_digest": self.digest,
            "passes": self._passes.state_dict(),
            "inner": self._inner.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; refuse that of another encoder, whose features are others."""
        if state["encoder_digest"] != self.digest:
            raise SteradError(
                f"the state belongs to a frozen encoder with the weights "
                f"{state['encoder_digest']}, and this one has {self.digest}: build it with the "
                "same encoder and weights"
            )
        self._last = None
        self._passes.load_state_dict(state.get("passes"))
        self._inner.load_state_dict(state["inner"])
