"""Answering: how a network and a memory give answers, whatever the network was trained with."""

import hashlib
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers import CLASSIFIERS, Classifier
from sterad.encoders import Network, Passes, folded
from sterad.encoders.folding import Room
from sterad.errors import SteradError
from sterad.memory import Memory
from sterad.methods.learner import Learner, check_inputs
from sterad.methods.problem import Problem

CHUNK = 50
"""Images that go through the network at a time: with more, the maps between two layers are too
large for the processor's cache; with fewer, layers wait for each other."""
_MODE_LOCK = threading.Lock()
Encoded = list[tuple[Tensor, Tensor]]
"""Raw features and labels."""


class Answering(Learner):
    """A learner with a network, a memory and a classifier on top of both."""

    network: Network
    memory: Memory
    passes: Passes
    instant: ClassVar[str | None] = "head"
    """What the classifier that needs no fitting is called; None if no output stands for a class."""
    fitted: Classifier | None = None

    def __init__(self, config: Any, problem: Problem) -> None:
        """Have nothing encoded yet."""
        super().__init__(config, problem)
        self._encoded: tuple[bytes, Encoded] | None = None
        """The memory as it was last encoded, after the digest of all that this depends on."""
        self._room: Room = {}
        self._evaluations = 0
        """Evaluations under way, in this thread or others; the last one restores the mode."""
        self._mode = True

    @property
    @abstractmethod
    def classifier(self) -> str:
        """Name of the classifier that answers."""

    @abstractmethod
    def place(self, x: Tensor) -> Tensor:
        """Bring a tensor to the network's device, and images to its memory format."""

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
        """Lend the answering network, folded, in evaluation mode without graphs.

        It is folded anew each time, which takes as long as the answers to one or two images: so
        weights that change unseen, through `.data` say, cannot make an answer stale.
        """
        network = self.answering_network()
        room, self._room = self._room, {}  # concurrent callers get their own buffers
        with _MODE_LOCK:
            if self._evaluations == 0:
                self._mode = self.network.training
            self._evaluations += 1
            network.eval()
        try:
            with torch.inference_mode():
                yield folded(network, room)
        finally:
            self._room = room
            with _MODE_LOCK:
                self._evaluations -= 1
                if self._evaluations == 0:
                    self.network.train(self._mode)

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
        return self.ask(x, lambda network, some: self.decide(network(some).cpu())), self.seen

    def ask(self, x: Tensor, answer: Callable[[Network, Tensor], Tensor]) -> Tensor:
        """Return the answers to x: (n, ...), each given to a chunk of placed images."""
        check_inputs(x, self.problem)
        with self.answering() as network:
            return self.in_chunks(lambda some: answer(network, some), x)

    def in_chunks(self, answer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Return the answers to chunks of placed images, without graphs, side by side."""

        def alone(some: Tensor) -> Tensor:
            with torch.inference_mode():  # each thread has a switch of its own
                return answer(self.place(some))

        return torch.cat(self.passes.map(alone, x.split(CHUNK)))

    def remembered(self) -> Encoded:
        """Return raw features and labels of everything in memory, in storage order.

        They are not computed again while neither the weights nor the memory have changed.
        """
        if len(self.memory) == 0:
            raise SteradError("nothing is remembered yet: observe a batch before asking")
        with self.answering() as network:
            kept = chain.from_iterable((one.x, one.y) for one in self.memory.everything())
            key = _digest(chain(network.parameters(), network.buffers(), kept))
            if self._encoded is None or self._encoded[0] != key:
                self._encoded = (
                    key,
                    [
                        (
                            self.in_chunks(network.features, one.x),
                            self.place(one.y),
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
        if self.classifier == self.instant:
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
