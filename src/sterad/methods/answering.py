"""Answering: how a network and a memory give answers, whatever the network was trained with."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.encoders import Network
from sterad.errors import SteradError
from sterad.memory import Memory
from sterad.methods.learner import Learner, check_inputs


class Answering(Learner):
    """A learner with a network, a memory and a classifier on top of both."""

    network: Network
    memory: Memory
    instant: ClassVar[str | None] = "head"
    """What the classifier that needs no fitting is called; None if no output stands for a class."""
    fitted: Classifier | None = None

    @property
    @abstractmethod
    def classifier(self) -> str:
        """Name of the classifier that answers."""

    @abstractmethod
    def place(self, x: Tensor) -> Tensor:
        """Bring images to the network's device and memory format."""

    def answering_network(self) -> Network:
        """Return the network that answers: the one that learns, unless a teacher does."""
        return self.network

    def check_classifier(self) -> None:
        """Refuse a classifier that this method does not know or cannot feed."""
        known = [*filter(None, [self.instant]), *CLASSIFIERS]
        if self.classifier not in known:
            raise SteradError(
                f"unknown classifier {self.classifier!r} for this method: "
                f"known are {', '.join(known)}"
            )
        if self.classifier in CLASSIFIERS and not self.memory.capacity:
            raise SteradError(
                f"the classifier {self.classifier!r} is fitted to what the memory holds and this "
                f"method keeps nothing: use {self.instant!r}"
            )

    @contextmanager
    def answering(self) -> Iterator[Network]:
        """Lend the answering network in evaluation mode without graphs; then back to training."""
        network, mode = self.answering_network(), self.network.training
        network.eval()
        try:
            with torch.inference_mode():
                yield network
        finally:
            self.network.train(mode)

    def decide(self, p: Tensor) -> Tensor:
        """Return scores of the seen classes from raw head outputs p: (n, outputs)."""
        return p[:, self.seen]

    def instant_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the weights as they are: answers are among the seen classes only.

        Where no output stands for a class, the classifier is fitted anew, a pass over the memory.
        """
        if self.instant is None:
            self.consolidate()
            return self.scores(x)
        check_inputs(x, self.problem)
        with self.answering() as network:
            return self.decide(network(self.place(x)).cpu()), self.seen

    def remembered(self) -> list[tuple[Tensor, Tensor]]:
        """Return raw features and labels of everything in memory, in storage order."""
        if len(self.memory) == 0:
            raise SteradError("nothing is remembered yet: observe a batch before asking")
        with self.answering() as network:
            return [
                (network.features(self.place(kept.x)), kept.y.to(self.problem.device))
                for kept in self.memory.everything()
            ]

    def consolidate(self) -> None:
        """Fit the classifier to unit-length features of the memory, if it is one that is fitted."""
        if self.classifier in CLASSIFIERS:
            pairs = ((F.normalize(h), y) for h, y in self.remembered())
            self.fitted = CLASSIFIERS[self.classifier].fit(pairs)

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the fitted classifier, or of the weights as they are."""
        if self.classifier == self.instant:
            return self.instant_scores(x)
        if self.fitted is None:
            raise SteradError("no classifier is fitted yet: consolidate before asking for answers")
        check_inputs(x, self.problem)
        with self.answering() as network:
            h = network.features(self.place(x), unit=True)
            return self.fitted.scores(h).cpu(), self.fitted.labels.cpu()

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return how many images of each class are kept."""
        return self.memory.class_counts(classes) if self.memory.capacity else None
