"""DVC: dual view consistency, with the remembered images that the stream would harm most.

Yanan Gu, Xu Yang, Kun Wei, Cheng Deng: Not Just Selection, but Exploration: Online
Class-Incremental Continual Learning via Dual View Consistency. CVPR 2022

For each stream batch B:
  1. gradient of the loss of B: each image and one random view in one pass, raw logits z and z̃ of
     a linear head, q = QNet(z, z̃); the loss is `dual_view_loss`;
  2. draw candidates from memory and retrieve those that a step against this gradient would harm
     most: see `interference`;
  3. add the gradient of the same loss of the retrieved images;
  4. one step, then offer B to the reservoir.

What differs from the released code: its memory is missing; its siblings draw 50 candidates for 64
places, so that nothing is selected, here they are more than the places; logits are raw (there
scaled to unit length, which caps what they can say); candidates are judged by the images
themselves, as their views play no part in it, and by running statistics of BatchNorm; the head and
the QNet grow with the classes; answers are among the classes seen.
"""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from sterad.encoders import Network, carry_over
from sterad.encoders.pair_classifier import PairClassifier
from sterad.errors import SteradError
from sterad.losses.dual_view import dual_view_loss
from sterad.methods.interference import most_interfered
from sterad.methods.learner import METHODS
from sterad.methods.replay import Replay, ReplayConfig
from sterad.seeds import use_generator
from sterad.streams import Batch
from sterad.validation import BelowOne, Count, NonNegative, Positive


@dataclass(frozen=True)
class DVCConfig(ReplayConfig):
    """The released settings of CIFAR-100; those of CIFAR-10 differ in `consistency` alone."""

    lr: Positive = 0.1
    momentum: BelowOne = 0.9
    candidates: Count = 128
    """Number of images drawn from memory; the `memory_batch` most interfered ones are retrieved."""
    consistency: NonNegative = 4.0
    """Weight of the distance between the posteriors of the views and of the pair; CIFAR-10: 2."""


@METHODS.register("dvc")
class DVC(Replay):
    """Cross-entropy, marginal entropy and agreement of an image and its view."""

    Config = DVCConfig
    config: DVCConfig
    single_view = True
    streamed: Tensor
    """Loss of the stream batch, whose gradient `retrieve` has left in the parameters."""

    def check_numbers(self) -> None:
        """Refuse fewer candidates than places."""
        super().check_numbers()
        if self.config.candidates < self.config.memory_batch:
            raise SteradError(
                f"candidates {self.config.candidates} for memory_batch {self.config.memory_batch} "
                "leave nothing to select: give more candidates, or a smaller memory_batch"
            )

    def make_network(self) -> Network:
        """Put the QNet beside the head."""
        network = super().make_network()
        with use_generator(self.rng["network"]):
            self.qnet = PairClassifier(network.outputs)
        network.add_module("qnet", self.qnet)
        return network

    def retrieve(self, batch: Batch) -> Batch:
        """Leave the gradient of the stream batch, and return what a step against it harms most."""
        self.engine.drop_gradients()
        loss = self.consistency(batch)
        self.engine.backward(loss)
        self.streamed = loss.detach()
        drawn, places = self.memory.sample(self.config.candidates), self.config.memory_batch
        if len(drawn) <= places:
            return drawn
        self.images += 2 * len(drawn)
        x, y = self.engine.to_device(drawn.x), self.engine.to_device(drawn.y)
        lr = self.config.lr / self.engine.scaler.get_scale()
        chosen = most_interfered(self.network, x, y, lr, places)
        return Batch(x[chosen], y[chosen])

    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of both batches; that of the stream is a number by now."""
        return self.streamed + self.consistency(retrieved) if len(retrieved) else self.streamed

    def consistency(self, batch: Batch) -> Tensor:
        """Return the loss of the pairs of a batch."""
        x = self.engine.to_device(batch.x)
        first, second = self.forward(torch.cat([x, self.view(x)])).chunk(2)
        both = self.qnet(first, second)
        labels = self.engine.to_device(batch.y)
        return dual_view_loss(first, second, both, labels, self.config.consistency)

    def step(self, loss: Tensor) -> None:
        """Add the gradient of the retrieved pairs to that of the stream's, then move."""
        if loss.requires_grad:
            self.engine.backward(loss)
        self.descend()

    def widen(self, outputs: int) -> None:
        """Grow the head and the QNet."""
        super().widen(outputs)
        carry_over(self.engine.optimizer, self.qnet.widen(outputs, self.rng["network"]))
        if self.teacher is not None:
            self.teacher.network.add_module("qnet", deepcopy(self.qnet).requires_grad_(False))
