"""Features of the memory: all of them for an evaluation, or some at a time along a feed."""

import hashlib
from collections.abc import Callable, Iterable
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

CLASS_WINDOW = 64
"""Features of a class that its moving mean extends over, about."""
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
    """Features of the slots of a memory, refreshed a few at a time, and moving class means.

    A refresh encodes the slots that have changed and, in equal numbers from each class, those that
    were encoded first. The mean of a class weighs its newest features most, so that means of all
    classes are of the same age: old and new features are not comparable while the network learns.
    The means need no pass over the memory. All tensors are on the CPU.
    """

    def __init__(self, memory: SlotMemory, slice_size: int) -> None:
        """Hold no features yet; all slots of `memory` are new."""
        self.memory, self.slice_size = memory, slice_size
        self.features = torch.zeros(0, 0)
        """(capacity, d) raw features."""
        self.tables = {
            "labels": torch.zeros(0, dtype=torch.int64),
            "encoded": torch.zeros(0, dtype=torch.int64),
            "sums": torch.zeros(0, 0, dtype=torch.float64),
            "squares": torch.zeros(0, dtype=torch.float64),
            "weights": torch.zeros(0, dtype=torch.float64),
            "refreshed": torch.zeros(0, dtype=torch.int64),
        }
        """By slot: the label, -1 without a feature, and the refresh that encoded it. By class:
        weighted sums of unit-length features (classes, d) and of their squared lengths, the sum of
        weights, and the last refresh with a feature."""
        self.step = 0
        """Number of refreshes."""
        self.changed = dict.fromkeys(range(len(memory)))
        self.watchers: list[Callable[[list[int]], None]] = []
        """Called with the slots whose features are about to change."""
        memory.watchers.append(self.note)

    def note(self, slots: list[int]) -> None:
        """Mark slots that are about to be written."""
        self.changed |= dict.fromkeys(slots)

    def refresh(self, engine: Engine, network: Network, size: int | None = None) -> None:
        """Encode the changed slots and the next `size` others (default: the slice size)."""
        count = len(self.memory)
        self.tables["labels"][count:] = -1
        changed = torch.tensor([slot for slot in sorted(self.changed) if slot < count])
        others = self._next_slots(self._slice_size(engine) if size is None else size)
        slots = torch.cat([changed.long(), others[~torch.isin(others, changed)]])
        self.step += 1
        if len(slots):
            batch = self.memory.read(slots)
            with engine.evaluation(network) as folded:
                features = engine.in_chunks(folded.features, batch.x)
            self._store(slots, features.float().cpu().clone(), batch.y)
        self.changed = {}

    def refresh_all(self, engine: Engine, network: Network) -> None:
        """Encode every slot: the class means are exact."""
        self.changed = dict.fromkeys(range(len(self.memory)))
        self.refresh(engine, network, 0)

    def pairs(self, engine: Engine) -> Pairs:
        """Return raw features and labels of all slots that have features."""
        labels = self.tables["labels"]
        slots = torch.nonzero(labels >= 0).squeeze(1)
        if not len(slots):
            return []
        return [(engine.to_device(self.features[slots]), engine.to_device(labels[slots]))]

    def nearest_mean(self, device: torch.device) -> NearestMean | None:
        """Return the classifier of the class means; None without features."""
        if not len(counts := self._counts()) or not bool(counts.any()):
            return None
        weights = self.tables["weights"]
        means = self.tables["sums"] / weights.unsqueeze(1)
        squares = self.tables["squares"] / weights
        return NearestMean.from_moments(means, squares, counts).to(device)

    def state_dict(self) -> dict[str, Any]:
        """Return all features, the moving means and the ages, to continue bit for bit."""
        tables = {name: table.clone() for name, table in self.tables.items()}
        return {"features": self.features.clone(), "step": self.step, **tables}

    def load_state_dict(self, state: dict[str, Any], width: int) -> None:
        """Restore the state; `width` is the number of features of the encoder."""
        slots, classes = len(state["labels"]), len(state["weights"])
        width = width if slots else 0
        if slots not in (0, self.memory.capacity):
            raise ValueError(f"it has features of {slots} slots")
        check_count(state["step"], "the number of refreshes")
        sizes = {"labels": slots, "encoded": slots}
        like: dict[str, Any] = {
            name: table.new_zeros(sizes.get(name, classes)) for name, table in self.tables.items()
        }
        like |= {"features": torch.zeros(slots, width), "step": 0}
        like["sums"] = like["squares"].new_zeros(classes, width)
        check_like(state, like, "features")
        labels: Tensor = state["labels"]
        if slots and not -1 <= int(labels.min()) <= int(labels.max()) < classes:
            raise ValueError("the features have labels without a class")
        self.features, self.step = state["features"].clone(), state["step"]
        self.tables = {name: state[name].clone() for name in self.tables}
        self.changed = {}

    def _slice_size(self, engine: Engine) -> int:
        """Return how many unchanged slots to encode: none if the features never change."""
        is_trained = any(one.requires_grad for one in engine.network.encoder.parameters())
        return self.slice_size if is_trained else 0

    def _next_slots(self, size: int) -> Tensor:
        """Return `size` slots: the one of each class that was encoded first, then the second, ...

        If there are more classes than `size`, those that were not refreshed for the longest time.
        """
        labels = self.tables["labels"]
        slots = torch.nonzero(labels >= 0).squeeze(1)
        slots = slots[self.tables["encoded"][slots].argsort(stable=True)]
        slots = slots[labels[slots].argsort(stable=True)]  # by class, oldest first
        counts = self._counts()
        rank = torch.arange(len(slots)) - (counts.cumsum(0) - counts)[labels[slots]]
        key = rank * (self.step + 1) + self.tables["refreshed"][labels[slots]]
        return slots[key.argsort(stable=True)[:size]]

    def _store(self, slots: Tensor, features: Tensor, labels: Tensor) -> None:
        """Replace the features and labels of some slots, and move the class means."""
        self._allocate(features.shape[1], int(labels.max()) + 1)
        for watch in self.watchers:
            watch(slots.tolist())
        self.features[slots], self.tables["labels"][slots] = features, labels
        self.tables["encoded"][slots] = self.step
        self.tables["refreshed"][labels] = self.step
        new = torch.bincount(labels, minlength=len(self.tables["weights"]))
        window = self._counts().clamp(min=1, max=CLASS_WINDOW)
        # A class whose features are all new forgets the old ones completely.
        keep = torch.where(new >= window, 0.0, (1 - 1 / window.double()) ** new)
        unit = F.normalize(features).double()
        for name, values in (
            ("sums", unit),
            ("squares", unit.square().sum(dim=1)),
            ("weights", torch.ones(len(labels), dtype=torch.float64)),
        ):
            table = self.tables[name]
            table.mul_(keep.view(-1, *[1] * (table.dim() - 1))).index_add_(0, labels, values)

    def _counts(self) -> Tensor:
        """Return the number of slots of each class."""
        labels = self.tables["labels"]
        return torch.bincount(labels[labels >= 0], minlength=len(self.tables["weights"]))

    def _allocate(self, width: int, classes: int) -> None:
        """Make room for all slots and classes; what is stored stays."""
        tables = self.tables
        if (more := self.memory.capacity - len(self.features)) > 0:
            self.features = torch.cat([self.features.view(-1, width), torch.zeros(more, width)])
            tables["labels"] = torch.cat([tables["labels"], torch.full((more,), -1)])
            tables["encoded"] = torch.cat([tables["encoded"], tables["encoded"].new_zeros(more)])
        if (more := classes - len(tables["weights"])) > 0:
            tables["sums"] = tables["sums"].view(-1, width)
            for name in ("sums", "squares", "weights", "refreshed"):
                rows = tables[name].new_zeros(more, *tables[name].shape[1:])
                tables[name] = torch.cat([tables[name], rows])


def _digest(tensors: Iterable[Tensor]) -> bytes:
    """Return a hash of the contents, whatever the device and memory format."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
