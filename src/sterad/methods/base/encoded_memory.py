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

DRIFT_WINDOW = 64
"""Number of features of a class, about, that its mean drift is averaged over."""
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
    """Features of the slots of a memory, refreshed a few at a time, and the class means.

    A refresh encodes the slots that have changed and random others, equally many of each class. The
    mean of a class is the mean of all its features, which are of any age, plus their mean drift:
    how much features that are encoded again have changed, averaged over the last ones of the class.
    Without that correction the means of two classes may be of different ages. The means need no
    pass over the memory. All tensors are on the CPU.
    """

    def __init__(self, memory: SlotMemory) -> None:
        """Hold no features yet; all slots of `memory` are new."""
        self.memory = memory
        self.features = torch.zeros(0, 0)
        """(capacity, d) raw features."""
        self.tables = {
            "labels": torch.zeros(0, dtype=torch.int64),
            "sums": torch.zeros(0, 0, dtype=torch.float64),
            "squares": torch.zeros(0, dtype=torch.float64),
            "drift": torch.zeros(0, 0, dtype=torch.float64),
            "weights": torch.zeros(0, dtype=torch.float64),
            "stale": torch.zeros(0, dtype=torch.float64),
            "common": torch.zeros(0, dtype=torch.float64),
            "refreshed": torch.zeros(0, dtype=torch.int64),
        }
        """By slot: the label, -1 without a feature. By class: the sum of unit-length features
        (classes, d) and of their squared lengths, the weighted sum of their changes (classes, d),
        the sum of its weights, the share of features that the last refresh of the class did not
        encode, and the number of that refresh. `common` (d,) is the mean change of all classes in
        the last refresh; the changes by class are relative to it."""
        self.step = 0
        """Number of refreshes."""
        self.changed = dict.fromkeys(range(len(memory)))
        self.watchers: list[Callable[[list[int]], None]] = []
        """Called with the slots whose features are about to change."""
        memory.watchers.append(self.note)

    def note(self, slots: list[int]) -> None:
        """Mark slots that are about to be written."""
        self.changed |= dict.fromkeys(slots)

    def refresh(self, engine: Engine, network: Network, size: int) -> None:
        """Encode the changed slots and, if the encoder is trained, the next `size` others."""
        count = len(self.memory)
        self._remove(torch.nonzero(self.tables["labels"][count:] >= 0).squeeze(1) + count)
        changed = torch.tensor([slot for slot in sorted(self.changed) if slot < count]).long()
        is_trained = any(one.requires_grad for one in engine.network.encoder.parameters())
        others = self._next_slots(size if is_trained else 0)
        others = others[~torch.isin(others, changed)]
        self.step += 1
        if len(slots := torch.cat([changed, others])):
            batch = self.memory.read(slots)
            with engine.evaluation(network) as folded:
                features = engine.in_chunks(folded.features, batch.x)
            self._store(slots, features.float().cpu().clone(), batch.y, len(changed))
        self.changed = {}

    def refresh_all(self, engine: Engine, network: Network) -> None:
        """Encode every slot: the class means are exact."""
        self._remove(torch.nonzero(self.tables["labels"] >= 0).squeeze(1))
        for name in ("sums", "squares"):
            self.tables[name].zero_()  # removes rounding errors, too
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
        tables, size = self.tables, counts.clamp(min=1)
        means = tables["sums"] / size.unsqueeze(1)
        spread = tables["squares"] / size - means.square().sum(dim=1)
        # The features that were just encoded have no drift.
        drift = tables["common"] + tables["drift"] / tables["weights"].clamp(min=1).unsqueeze(1)
        moved = means + tables["stale"].unsqueeze(1) * drift
        return NearestMean.from_moments(moved, spread, counts).to(device)

    def state_dict(self) -> dict[str, Any]:
        """Return all features, their sums and their drift, to continue bit for bit."""
        tables = {name: table.clone() for name, table in self.tables.items()}
        return {"features": self.features.clone(), "step": self.step, **tables}

    def load_state_dict(self, state: dict[str, Any], width: int) -> None:
        """Restore the state; `width` is the number of features of the encoder."""
        slots, classes = len(state["labels"]), len(state["weights"])
        width = width if slots else 0
        if slots not in (0, self.memory.capacity):
            raise ValueError(f"it has features of {slots} slots")
        check_count(state["step"], "the number of refreshes")
        like: dict[str, Any] = {
            name: table.new_zeros((classes, width)[: table.dim()])
            for name, table in self.tables.items()
        }
        like |= {"labels": like["refreshed"].new_zeros(slots)}
        like |= {"common": like["weights"].new_zeros(width)}
        like |= {"features": torch.zeros(slots, width), "step": 0}
        check_like(state, like, "features")
        labels: Tensor = state["labels"]
        if slots and not -1 <= int(labels.min()) <= int(labels.max()) < classes:
            raise ValueError("the features have labels without a class")
        self.features, self.step = state["features"].clone(), state["step"]
        self.tables = {name: state[name].clone() for name in self.tables}
        self.changed = {}

    def _next_slots(self, size: int) -> Tensor:
        """Return random slots: one of each class, then a second one of each, up to `size`.

        If there are more classes than `size`, those that were not refreshed for the longest time.
        """
        labels = self.tables["labels"]
        slots = torch.nonzero(labels >= 0).squeeze(1)
        rng = torch.Generator().manual_seed(self.step)  # so that there is no state to save
        slots = slots[torch.randperm(len(slots), generator=rng)]
        slots = slots[labels[slots].argsort(stable=True)]
        counts = self._counts()
        rank = torch.arange(len(slots)) - (counts.cumsum(0) - counts)[labels[slots]]
        key = rank * (self.step + 1) + self.tables["refreshed"][labels[slots]]
        return slots[key.argsort(stable=True)[:size]]

    def _store(self, slots: Tensor, features: Tensor, labels: Tensor, changed: int) -> None:
        """Replace the features of some slots; the first `changed` slots have new samples."""
        self._allocate(features.shape[1], int(labels.max()) + 1)
        unit, same = F.normalize(features).double(), slots[changed:]
        drift = unit[changed:] - F.normalize(self.features[same]).double()
        self._remove(slots)
        self.features[slots], self.tables["labels"][slots] = features, labels
        self.tables["refreshed"][labels] = self.step
        self._add(unit, labels, 1)
        self._update_drift(drift, labels, changed)

    def _update_drift(self, drift: Tensor, labels: Tensor, changed: int) -> None:
        """Average the changes of features over the last ones of each class.

        Running statistics of BatchNorm move the features of all classes alike, in another direction
        at each step: that part is taken from the last refresh alone.
        """
        tables, classes = self.tables, len(self.tables["weights"])
        new = torch.bincount(labels, minlength=classes)
        again = torch.bincount(labels[changed:], minlength=classes)
        counts = self._counts().clamp(min=1)
        keep = (1 - 1 / DRIFT_WINDOW) ** again.double()
        keep[new >= counts] = 0  # what is completely new has not drifted yet
        tables["common"] = drift.mean(dim=0) if len(drift) else drift.new_zeros(drift.shape[1])
        residual = drift - tables["common"]
        tables["drift"].mul_(keep.unsqueeze(1)).index_add_(0, labels[changed:], residual)
        tables["weights"].mul_(keep).add_(again)
        tables["stale"][new > 0] = (1 - new / counts).double()[new > 0]

    def _remove(self, slots: Tensor) -> None:
        """Remove the features of some slots from the sums."""
        if not len(slots):
            return
        for watch in self.watchers:
            watch(slots.tolist())
        slots = slots[self.tables["labels"][slots] >= 0]
        unit = F.normalize(self.features[slots]).double()
        self._add(unit, self.tables["labels"][slots], -1)
        self.tables["labels"][slots] = -1

    def _add(self, unit: Tensor, labels: Tensor, sign: int) -> None:
        self.tables["sums"].index_add_(0, labels, unit, alpha=sign)
        self.tables["squares"].index_add_(0, labels, unit.square().sum(dim=1), alpha=sign)

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
        if (more := classes - len(tables["weights"])) > 0:
            for name in ("sums", "drift"):
                tables[name] = tables[name].view(-1, width)
            for name in ("sums", "squares", "drift", "weights", "stale", "refreshed"):
                rows = tables[name].new_zeros(more, *tables[name].shape[1:])
                tables[name] = torch.cat([tables[name], rows])


def _digest(tensors: Iterable[Tensor]) -> bytes:
    """Return a hash of the contents, whatever the device and memory format."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
