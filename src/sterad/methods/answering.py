"""Answering: how a network and a memory give answers, whatever the network was trained with."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.encoders import Network
from sterad.engine import Engine
from sterad.errors import SteradError
from sterad.memory import Memory
from sterad.methods.learner import Learner, check_inputs
from sterad.methods.problem import Problem

Encoded = list[tuple[Tensor, Tensor]]
"""Raw features and labels."""


class Answering(Learner):
    """A learner with a network, a memory and a classifier on top of both."""

    engine: Engine
    memory: Memory
    head_classifier: ClassVar[str | None] = "head"
    """What the classifier that needs no fitting is called; None if no output stands for a class."""
    fitted: Classifier | None = None

    def __init__(self, config: Any, problem: Problem) -> None:
        """Have nothing encoded yet."""
        super().__init__(config, problem)
        self._encoded: tuple[bytes, Encoded] | None = None
        """The memory as it was last encoded, after the digest of all that this depends on."""

    @property
    def network(self) -> Network:
        """The network that learns."""
        return self.engine.network

    @property
    @abstractmethod
    def classifier(self) -> str:
        """Name of the classifier that answers."""

    def answering_network(self) -> Network:
        """Return the network that answers: the one that learns, unless a teacher does."""
        return self.network

    def check_classifier(self) -> None:
        """Refuse a classifier that this method does not know or cannot feed."""
        known = [*filter(None, [self.head_classifier]), *CLASSIFIERS]
        if self.classifier not in known:
            raise SteradError(
                f"unknown classifier {self.classifier!r} for this method: "
                f"known are {', '.join(known)}"
            )
        if self.classifier in CLASSIFIERS and not self.memory.capacity:
            raise SteradError(
                f"the classifier {self.classifier!r} is fitted to what the memory holds and this "
                f"method keeps nothing: use {self.head_classifier!r}"
            )

    def decide(self, p: Tensor) -> Tensor:
        """Return scores of the seen classes from raw head outputs p: (n, outputs)."""
        return p[:, self.seen]

    def instant_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the weights as they are: answers are among the seen classes only.

        Where no output stands for a class, the classifier is fitted anew, a pass over the memory.
        """
        if self.head_classifier is None:
            self.consolidate()
            return self.scores(x)
        return self.ask(x, lambda network, some: self.decide(network(some).cpu())), self.seen

    def ask(self, x: Tensor, answer: Callable[[Network, Tensor], Tensor]) -> Tensor:
        """Return `answer(network, x)` of the network that answers, for x: (n, ...)."""
        check_inputs(x, self.problem)
        return self.engine.evaluate(answer, x, self.answering_network())

    def remembered(self) -> Encoded:
        """Return raw features and labels of everything in memory, in storage order.

        They are not computed again while neither the weights nor the memory have changed.
        """
        if len(self.memory) == 0:
            raise SteradError("nothing is remembered yet: observe a batch before asking")
        with self.engine.evaluation(self.answering_network()) as network:
            kept = chain.from_iterable((one.x, one.y) for one in self.memory.everything())
            key = _digest(chain(network.parameters(), network.buffers(), kept))
            if self._encoded is None or self._encoded[0] != key:
                self._encoded = (
                    key,
                    [
                        (
                            self.engine.in_chunks(network.features, one.x),
                            self.engine.to_device(one.y),
                        )
                        for one in self.memory.everything()
                    ],
                )
            return self._encoded[1]

    def consolidate(self) -> None:
        """Fit the classifier to unit-length features of the memory, if it is one that is fitted."""
        if self.classifier in CLASSIFIERS:
            pairs = ((F.normalize(h), y) for h, y in self.remembered())
            self.fitted = CLASSIFIERS[self.classifier].fit(pairs)

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the fitted classifier, or of the weights as they are."""
        if self.classifier == self.head_classifier:
            return self.instant_scores(x)
        if (fitted := self.fitted) is None:
            raise SteradError("no classifier is fitted yet: consolidate before asking for answers")
        scores = self.ask(
            x, lambda network, some: fitted.scores(network.features(some, True)).cpu()
        )
        return scores, fitted.labels.cpu()

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return how many images of each class are kept."""
        return self.memory.class_counts(classes) if self.memory.capacity else None


def _digest(tensors: Iterable[Tensor]) -> bytes:
    """Return what tells these contents from all others, wherever and however they lie."""
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.digest()
