"""DVC: dual view consistency, with replay of the images that the stream batch interferes with most.

Yanan Gu, Xu Yang, Kun Wei, Cheng Deng: Not Just Selection, but Exploration: Online
Class-Incremental Continual Learning via Dual View Consistency. CVPR 2022

For each stream batch B:
  1. gradient of the loss of B: each image and one random view in one pass, raw logits z and z̃ of
     a linear head, q = QNet(z, z̃); the loss is `dual_view_loss`;
  2. draw candidates from memory and retrieve those that a step with this gradient would harm
     most: see `most_interfered`;
  3. add the gradient of the same loss of the retrieved images;
  4. one step, then offer B to the reservoir.

Differences from the released code ("there"): it lacks the replay buffer; related code draws 50
candidates for a memory batch of 64, so that nothing is selected, here there are more candidates;
logits are raw unless `unit_logits` is set (there scaled to unit length, which bounds the
posteriors); candidates are ranked by the raw images with running statistics of BatchNorm; the head
and the QNet grow with the classes; predictions are among the classes seen.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import normalize

from sterad.encoders import Network, carry_over
from sterad.encoders.pair_classifier import PairClassifier
from sterad.errors import SteradError
from sterad.losses.dual_view import dual_view_loss
from sterad.memory import MaximallyInterfered
from sterad.methods.base.learner import FORWARD_COST, METHODS, Problem
from sterad.methods.base.parts import Parts, ReplayConfig, UnitLogitsConfig
from sterad.methods.base.replay import Replay
from sterad.seeds import use_generator
from sterad.streams import Batch
from sterad.validation import BelowOne, Count, NonNegative, Positive, Range


@dataclass(frozen=True)
class DVCConfig(UnitLogitsConfig, ReplayConfig):
    """The released settings of CIFAR-100; those of CIFAR-10 differ in `consistency` alone."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.9
    views: Annotated[int, Range(1, 1)] = 1
    """Always 1: the loss takes one random view."""
    candidates: Count = 128
    """Number of images drawn from memory; the `memory_batch` most interfered ones are retrieved."""
    consistency: NonNegative = 4.0
    """Weight of the distance between the posteriors of the views and of the pair; CIFAR-10: 2."""


@METHODS.register("dvc")
class DVC(Replay):
    """Cross-entropy, marginal entropy and consistency of an image and its view."""

    Config = DVCConfig
    config: DVCConfig
    chooses_views = False
    stream_loss: Tensor
    """Loss of the stream batch, whose gradient `retrieve` has stored in the parameters."""

    def __init__(self, config: DVCConfig, problem: Problem, parts: Parts) -> None:
        """Refuse fewer candidates than retrieved images."""
        if config.candidates < config.memory_batch:
            raise SteradError(
                f"candidates {config.candidates} for memory_batch {config.memory_batch} "
                "leave nothing to select: give more candidates, or a smaller memory_batch"
            )
        if isinstance(parts.retrieval, MaximallyInterfered):
            raise SteradError(
                "dvc selects the most interfered candidates by its own measure: use "
                "retrieval=random or class-balanced, which draw its candidates"
            )
        super().__init__(config, problem, parts)

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of pairs of both batches, and of ranking the candidates twice."""
        pairs = batch_size + replayed
        return float(2 * pairs + FORWARD_COST * 2 * config.candidates)

    @property
    def qnet(self) -> PairClassifier:
        """The classifier of pairs, a submodule of the network."""
        qnet = self.network.get_submodule("qnet")
        assert isinstance(qnet, PairClassifier)
        return qnet

    def make_network(self, outputs: int) -> Network:
        """Add the QNet."""
        network = super().make_network(outputs)
        with use_generator(self.rng["network"]):
            network.add_module("qnet", PairClassifier(network.outputs))
        return network

    def retrieve(self, batch: Batch) -> Batch:
        """Store the gradient of the stream batch and return the images that it harms most."""
        self.engine.drop_gradients()
        loss = self.pair_loss(batch)
        self.engine.backward(loss)
        self.stream_loss = loss.detach()
        drawn, count = self.draw(self.config.candidates, batch), self.config.memory_batch
        if len(drawn) <= count:
            return drawn
        self.engine.count(drawn.x, backward=False, times=2)
        x, y = self.engine.to_device(drawn.x), self.engine.to_device(drawn.y)
        lr = self.config.lr / self.engine.scaler.get_scale()  # the gradients are scaled
        chosen = most_interfered(self.network, x, y, lr, count, self.has_unit_logits)
        return Batch(x[chosen], y[chosen])

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of both batches; the gradient of the stream batch is in .grad already."""
        if not len(retrieved):
            return self.stream_loss
        return self.stream_loss + self.pair_loss(retrieved)

    def virtual_loss(self, batch: Batch) -> Tensor:
        """Return the loss of the stream batch alone."""
        return self.pair_loss(batch)

    def pair_loss(self, batch: Batch) -> Tensor:
        """Return the loss of a batch and one view of it."""
        x = self.engine.to_device(batch.x)
        pair, unit = torch.cat([x, self.view(x)]), self.has_unit_logits
        logits, view_logits = self.engine.forward([pair], unit=unit).chunk(2)
        pair_logits = self.qnet(logits, view_logits)
        labels = self.engine.to_device(batch.y)
        return dual_view_loss(logits, view_logits, pair_logits, labels, self.config.consistency)

    def step(self, loss: Tensor) -> None:
        """Add the gradient of the retrieved images to the stored one and take a step."""
        if loss.requires_grad:
            self.engine.backward(loss)
        self.engine.step(self.config.clip)

    def widen(self, outputs: int) -> None:
        """Grow the head and the QNet."""
        super().widen(outputs)
        carry_over(self.engine.optimizer, self.qnet.widen(outputs, self.rng["network"]))
        if self.teacher is not None:
            self.teacher.network.add_module("qnet", deepcopy(self.qnet).requires_grad_(False))


@torch.no_grad()
def most_interfered(
    network: Network, x: Tensor, y: Tensor, lr: float, n: int, unit: bool = False
) -> Tensor:
    """Return the indices of the n images of x that an SGD step harms most, worst first.

    Interference is what a step adds to the L1 norm of a sample's gradient for the classifier's
    weights, see `gradient_norm`. The step uses the current gradients; weights, gradients and the
    running statistics of BatchNorm, which normalize here, do not change. unit: whether features and
    logits are scaled to unit length, as in the released code.
    """
    training = network.training
    network.eval()
    outputs = _FeaturesAndLogits(network, unit)
    h, z = outputs(x)
    before = gradient_norm(h, z, y)
    h, z = functional_call(outputs, _after_step(outputs, lr), (x,))
    after = gradient_norm(h, z, y)
    network.train(training)
    return (after - before).topk(n).indices


def gradient_norm(h: Tensor, z: Tensor, y: Tensor) -> Tensor:
    """Return (n,) L1 norms of each sample's gradient for the classifier's weights.

    For the cross-entropy of z = W h it is ‖softmax(z) - onehot(y)‖₁ ‖h‖₁.

    >>> h, z = torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2)
    >>> gradient_norm(h, z, torch.tensor([1]))  # (0.5 + 0.5) (1 + 2)
    tensor([3.])
    """
    error = z.softmax(dim=1)
    error[torch.arange(len(y), device=y.device), y] -= 1
    return error.abs().sum(dim=1) * h.abs().sum(dim=1)


class _FeaturesAndLogits(nn.Module):
    """Features and outputs of a network as one module for `functional_call`."""

    def __init__(self, network: Network, unit: bool) -> None:
        super().__init__()
        self.network, self.unit = network, unit

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return features and outputs."""
        h, z = self.network.features_and_outputs(x)
        return (normalize(h), normalize(z)) if self.unit else (h, z)


def _after_step(module: nn.Module, lr: float) -> dict[str, Tensor]:
    return {
        name: parameter if parameter.grad is None else parameter - lr * parameter.grad
        for name, parameter in module.named_parameters()
    }
