"""Features of the memory: all of them for an evaluation, or some at a time along a feed."""

import hashlib
from collections.abc import Iterable
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers import NearestMean
from sterad.encoders import Network
from sterad.engine import Engine
from sterad.errors import SteradError
from sterad.memory import Memory, SlotMemory
from sterad.saved_state import check_count, check_like

Pairs = list[tuple[Tensor, Tensor]]
"""Batches of raw features (n, d) and labels (n,)."""


class EncodedMemory:
    """Features of everything in memory, computed again only when weights or memory change."""

    def __init__(self, memory: Memory) -> None:
        """Encode nothing yet."""
        self.memory = memory
        self.rolling: RollingFeatures | None = None
        """Features that are refreshed along a feed, used in place of a pass over the memory."""
        self._key = b""
        self._pairs: Pairs = []

    def encode(self, engine: Engine, network: Network) -> Pairs:
        """Return raw features and labels of the memory, in batches, in storage order."""
        if self.rolling is not None and (pairs := self.rolling.pairs(engine)):
            return pairs
        if len(self.memory) == 0:
            raise SteradError("the memory is empty: observe a batch before you evaluate")
        with engine.evaluation(network) as folded:
            stored = chain.from_iterable((part.x, part.y) for part in self.memory.everything())
            key = _digest(chain(folded.parameters(), folded.buffers(), stored))
            if key != self._key:
                self._pairs = [
                    (engine.in_chunks(folded.features, part.x), engine.to_device(part.y))
                    for part in self.memory.everything()
                ]
                self._key = key
        return self._pairs


class RollingFeatures:
    """Features of the slots of a memory, refreshed a few at a time, and their sums per class.

    A refresh encodes the slots that have changed and the next `slice_size` slots in turn, so that
    no feature is older than capacity / slice_size refreshes. The class means come from the sums
    and need no pass over the memory. All tensors are on the CPU.
    """

    def __init__(self, memory: SlotMemory, slice_size: int) -> None:
        """Hold no features yet; all slots of `memory` are new."""
        self.memory, self.slice_size = memory, slice_size
        self.features = torch.zeros(0, 0)
        """(capacity, d) raw features."""
        self.labels = torch.zeros(0, dtype=torch.int64)
        """(capacity,) labels of the features; -1 where a slot has none."""
        self.sums = torch.zeros(0, 0, dtype=torch.float64)
        """(classes, d) sums of unit-length features."""
        self.counts = torch.zeros(0, dtype=torch.int64)
        self.squares = 0.0
        """Sum of squared lengths, which are 1 but for zero features and rounding."""
        self.position = 0
        """Slot from which the next slice is taken."""
        self.changed = dict.fromkeys(range(len(memory)))
        self.watchers: list[Any] = []
        """Called with the slots whose features are about to change."""
        memory.watchers.append(self.note)

    def note(self, slots: list[int]) -> None:
        """Mark slots that are about to be written."""
        self.changed |= dict.fromkeys(slots)

    def refresh(self, engine: Engine, network: Network, size: int | None = None) -> None:
        """Encode the changed slots and the next `size` in turn (default: the slice size)."""
        count = len(self.memory)
        self._forget(torch.nonzero(self.labels[count:] >= 0).squeeze(1) + count)
        size = min(self._turn(engine) if size is None else size, count)
        turn = [(self.position + step) % count for step in range(size)]
        slots = [*dict.fromkeys([*sorted(self.changed), *turn])]
        if slots := [slot for slot in slots if slot < count]:
            batch = self.memory.read(torch.tensor(slots))
            with engine.evaluation(network) as folded:
                features = engine.in_chunks(folded.features, batch.x)
            self._store(torch.tensor(slots), features.float().cpu().clone(), batch.y)
        self.position = (self.position + size) % max(count, 1)
        self.changed = {}

    def refresh_all(self, engine: Engine, network: Network) -> None:
        """Encode every slot, and add up the sums again."""
        self._forget(torch.nonzero(self.labels >= 0).squeeze(1))
        self.sums, self.squares = torch.zeros_like(self.sums), 0.0
        self.refresh(engine, network, len(self.memory))

    def pairs(self, engine: Engine) -> Pairs:
        """Return raw features and labels of all slots that have features."""
        slots = torch.nonzero(self.labels >= 0).squeeze(1)
        if not len(slots):
            return []
        return [(engine.to_device(self.features[slots]), engine.to_device(self.labels[slots]))]

    def nearest_mean(self, device: torch.device) -> NearestMean | None:
        """Return the classifier of the class means; None without features."""
        if not bool(self.counts.any()):
            return None
        return NearestMean.from_sums(self.sums, self.counts, self.squares).to(device)

    def state_dict(self) -> dict[str, Any]:
        """Return all features, their sums and the position, to continue bit for bit."""
        count = len(self.memory)
        return {
            "features": self.features[:count].clone(),
            "labels": self.labels[:count].clone(),
            "sums": self.sums.clone(),
            "counts": self.counts.clone(),
            "squares": self.squares,
            "position": self.position,
        }

    def load_state_dict(self, state: dict[str, Any], width: int) -> None:
        """Restore the state; `width` is the number of features of the encoder."""
        count, classes = len(self.memory), len(state["counts"])
        width = width if count else 0
        like = {
            "features": torch.zeros(count, width),
            "labels": torch.zeros(count, dtype=torch.int64),
            "sums": torch.zeros(classes, width, dtype=torch.float64),
            "counts": torch.zeros(classes, dtype=torch.int64),
            "squares": 0.0,
            "position": 0,
        }
        check_like(state, like, "features")
        check_count(state["position"], "the position in the memory")
        labels: Tensor = state["labels"]
        if count and not -1 <= int(labels.min()) <= int(labels.max()) < classes:
            raise ValueError("the features have labels without a class")
        self.features, self.labels = torch.zeros(0, width), labels[:0]
        if count:
            self._allocate(width, 0)
            self.features[:count], self.labels[:count] = state["features"], labels
        self.sums, self.counts = state["sums"].clone(), state["counts"].clone()
        self.squares, self.position = float(state["squares"]), state["position"] % max(count, 1)
        self.changed = {}

    def _turn(self, engine: Engine) -> int:
        """Return how many unchanged slots to encode: none if the features never change."""
        is_trained = any(one.requires_grad for one in engine.network.encoder.parameters())
        return self.slice_size if is_trained else 0

    def _store(self, slots: Tensor, features: Tensor, labels: Tensor) -> None:
        """Replace the features and labels of some slots."""
        self._allocate(features.shape[1], int(labels.max()) + 1)
        self._forget(slots)
        self._add(features, labels, 1)
        self.features[slots], self.labels[slots] = features, labels

    def _forget(self, slots: Tensor) -> None:
        """Remove the features of some slots."""
        if not len(slots):
            return
        for watch in self.watchers:
            watch(slots.tolist())
        slots = slots[self.labels[slots] >= 0]
        self._add(self.features[slots], self.labels[slots], -1)
        self.labels[slots] = -1

    def _add(self, features: Tensor, labels: Tensor, sign: int) -> None:
        unit = F.normalize(features).double()
        self.sums.index_add_(0, labels, unit, alpha=sign)
        self.counts.index_add_(0, labels, torch.full_like(labels, sign))
        self.squares += sign * float(unit.square().sum())

    def _allocate(self, width: int, classes: int) -> None:
        """Make room for all slots and classes; what is stored stays."""
        if (more := self.memory.capacity - len(self.labels)) > 0:
            self.features = torch.cat([self.features.view(-1, width), torch.zeros(more, width)])
            self.labels = torch.cat([self.labels, torch.full((more,), -1)])
        if (more := classes - len(self.counts)) > 0:
            sums = self.sums.view(-1, width)
            self.sums = torch.cat([sums, sums.new_zeros(more, width)])
            self.counts = torch.cat([self.counts, self.counts.new_zeros(more)])


def _digest(tensors: Iterable[Tensor]) -> bytes:
    """Return a hash of the contents, whatever the device and memory format."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
