"""Retrieval: which samples of the memory are replayed beside a stream batch."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sterad.devices import to_device
from sterad.errors import SteradError
from sterad.memory.memory import Memory, SlotMemory
from sterad.registry import Registry
from sterad.streams import Batch

LossRise = Callable[[Batch], Tensor]
"""Returns how much the loss of each of n candidates rises under a virtual step on the stream batch:
(n,). It costs a step on the stream batch and two forward passes of the candidates."""
CANDIDATES_PER_SAMPLE = 5
"""Candidates of maximally interfered retrieval for each sample; published: 50 for 10."""


class Retrieval(ABC):
    """Chooses samples of a memory; random draws use `memory.sample` or the memory's generator."""

    @abstractmethod
    def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
        """Return at most `n` distinct samples to replay beside `batch`, not in memory yet."""

    def count_candidates(self, n: int) -> int:
        """Return for how many candidates `loss_rise` is computed to choose `n` samples."""
        return 0

    def state_dict(self) -> dict[str, Any]:
        """Return what later choices depend on: nothing, by default."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # noqa: B027 - optional
        """Restore the state that `state_dict` returned."""


def _find_problem(retrieval: Any) -> str | None:
    """Return why a class cannot be registered as a retrieval."""
    if not (isinstance(retrieval, type) and issubclass(retrieval, Retrieval)):
        return "is no subclass of Retrieval: extend sterad.memory.Retrieval"
    if missing := sorted(getattr(retrieval, "__abstractmethods__", ())):
        return f"does not define {', '.join(missing)}: define each"
    try:
        retrieval()
    except TypeError as error:
        return f"cannot be called without arguments ({error}): give each a default"
    return None


RETRIEVALS: Registry[Callable[[], Retrieval]] = Registry(
    "retrieval", "sterad.retrievals", _find_problem
)


@RETRIEVALS.register("random")
class RandomRetrieval(Retrieval):
    """A uniform random draw without repetition."""

    def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
        """Return `n` samples, or all in storage order if the memory holds fewer."""
        return memory.sample(n)


@RETRIEVALS.register("class-balanced")
class ClassBalancedRetrieval(Retrieval):
    """Equal numbers of each stored class, as far as they last, and random samples of each."""

    def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
        """Return `n` samples whose classes differ by at most one where both have enough."""
        if not isinstance(memory, SlotMemory):
            raise SteradError(
                "class-balanced retrieval needs the slots of a memory, and "
                f"{type(memory).__name__} has none: extend SlotMemory, or use retrieval=random"
            )
        if n >= len(memory):
            return memory.sample(n)
        order = torch.randperm(len(memory), generator=memory.rng)
        labels, by_class = memory.labels[order].sort(stable=True)
        starts = torch.searchsorted(labels, labels)
        rank_in_class = torch.arange(len(labels)) - starts
        # Back to the random order, so that the classes of the last, partial round are random.
        rank = torch.empty_like(rank_in_class).index_copy_(0, by_class, rank_in_class)
        return memory.read(order[rank.argsort(stable=True)[:n]])


@RETRIEVALS.register("mir", alias=("maximally-interfered",))
@dataclass(frozen=True)
class MaximallyInterfered(Retrieval):
    """The candidates whose loss rises most under a virtual step on the stream batch.

    Rahaf Aljundi, Lucas Caccia, Eugene Belilovsky, Massimo Caccia, Min Lin, Laurent Charlin, Tinne
    Tuytelaars: Online Continual Learning with Maximally Interfered Retrieval. NeurIPS 2019,
    https://arxiv.org/abs/1908.04742

    The virtual step is one of plain SGD; losses of candidates are those of the raw samples with the
    running statistics of BatchNorm.
    """

    candidates: int | None = None
    """Number of random candidates (default: five for each retrieved sample, as published)."""

    def retrieve(self, memory: Memory, n: int, batch: Batch, loss_rise: LossRise) -> Batch:
        """Return the `n` most interfered candidates, the most interfered one first."""
        drawn = memory.sample(self.count_candidates(n))
        if len(drawn) <= n:
            return drawn
        rise = loss_rise(drawn).nan_to_num(nan=0.0)
        return take(drawn, rise.sort(descending=True, stable=True).indices[:n])

    def count_candidates(self, n: int) -> int:
        """Return the number of candidates for `n` samples."""
        return CANDIDATES_PER_SAMPLE * n if self.candidates is None else self.candidates


def take(batch: Batch, chosen: Tensor) -> Batch:
    """Return the samples of a batch at some positions, with their extra columns."""
    rows = {
        name: column.index_select(0, to_device(chosen, column.device))
        for name, column in {"x": batch.x, "y": batch.y, **batch.extra}.items()
    }
    return Batch(rows.pop("x"), rows.pop("y"), rows)
