"""check_memory accepts all built-in policies and names the rule that others break."""

from pathlib import Path

import pytest
import torch

from sterad.errors import SteradError
from sterad.memory import MEMORIES, Reservoir
from sterad.plugins import load_plugin
from sterad.streams import Batch
from sterad.testing import check_memory

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_memory.py"


@pytest.mark.parametrize("policy", list(MEMORIES))
def test_built_in_policies(policy: str) -> None:
    check_memory(policy)


def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MEMORIES, "_components", dict(MEMORIES._components))
    load_plugin(EXAMPLE)
    check_memory("newest")


class Overfull(Reservoir):
    def __init__(self, capacity: int, rng: torch.Generator) -> None:
        super().__init__(2 * capacity, rng)


class WithoutGenerator(Reservoir):
    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, torch.Generator())


class StoresTwice(Reservoir):
    def update(self, batch: Batch) -> None:
        super().update(batch)
        super().update(batch)


class ForgetsItsGenerator(Reservoir):
    def load_state_dict(self, state: object) -> None:
        before = self._rng.get_state()
        super().load_state_dict(state)  # type: ignore[arg-type]
        self._rng.set_state(before)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Overfull, "holds 16 samples, more than 12"),
        (StoresTwice, "stored twice"),
        (ForgetsItsGenerator, "a loaded memory (draws|stores) other samples"),
    ],
)
def test_a_bad_policy_raises_and_names_the_rule(
    policy: type[Reservoir], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MEMORIES._components, "bad", policy)
    with pytest.raises(AssertionError, match=message):
        check_memory("bad")


def test_registration_refuses_another_constructor_and_missing_methods() -> None:
    with pytest.raises(SteradError, match="cannot be called with a capacity and a generator"):
        MEMORIES.register("wrong")(WithoutGenerator)  # type: ignore[arg-type]

    class Half:
        def __init__(self, capacity: int, rng: torch.Generator) -> None: ...

    with pytest.raises(SteradError, match=r"does not define .*update, sample"):
        MEMORIES.register("half")(Half)  # type: ignore[arg-type]
