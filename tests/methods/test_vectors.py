"""Rows of features have no views, so each is computed once; a user's augmentation may add some."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.base.replay import Replay
from sterad.streams import Batch
from sterad.views import AUGMENTATIONS, Augmentation


def learner(method: str, shape: tuple[int, ...] = (6,), **fields: Any) -> Replay:
    cls = METHODS[method]
    encoder = "mlp" if len(shape) == 1 else "resnet18"
    made = build_learner(cls, cls.Config(**fields), Problem(shape, 4, 20, encoder=encoder, width=2))
    assert isinstance(made, Replay)
    return made


def images_of_a_step(made: Replay) -> int:
    """Return how many images a step on 4 new and 8 remembered ones pushes."""
    rng = torch.Generator().manual_seed(0)
    shape = made.problem.input_shape
    made.observe(Batch(torch.rand(8, *shape, generator=rng), torch.arange(8) % 4))
    before = made.images
    made.observe(Batch(torch.rand(4, *shape, generator=rng), torch.arange(4)))
    return made.images - before


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "scr", "er", "pcr"])
def test_a_vector_goes_through_the_network_once(method: str) -> None:
    assert images_of_a_step(learner(method)) == 12
    assert images_of_a_step(learner(method, views=4)) == 12


@pytest.mark.parametrize("method", ["agd-fd", "scr"])
def test_images_that_nothing_changes_go_through_once_too(method: str) -> None:
    assert images_of_a_step(learner(method, (1, 8, 8), augmentation="none")) == 12
    views = METHODS[method].Config().views
    assert images_of_a_step(learner(method, (1, 8, 8))) == 12 * (views + 1)


@dataclass(frozen=True)
class Jitter(Augmentation):
    """Adds noise to vectors."""

    takes_vectors = True

    def augment(self, x: Tensor, rng: torch.Generator) -> Tensor:
        return x + 0.1 * torch.randn(x.shape, generator=rng)


def test_a_augmentation_for_vectors_gives_them_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AUGMENTATIONS._components, "jitter", Jitter)
    made = learner("agd-fd", augmentation="jitter", views=2)
    assert images_of_a_step(made) == 36
    x = torch.rand(4, 6)
    first, second, raw = made.views_of(x)
    assert torch.equal(raw, x)
    assert not torch.equal(first, second)


def test_a_method_that_compares_views_refuses_vectors() -> None:
    with pytest.raises(SteradError, match=r"lump compares random views, .*\(6,\) have none"):
        learner("lump")
