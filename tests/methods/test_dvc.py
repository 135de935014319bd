"""DVC: one whole step against a slow, literal transcription of section 7.7 and of the retrieval."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.dvc import DVC, DVCConfig
from sterad.streams import Batch, Clear, Stream


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(classes: int | None = 6, **fields: Any) -> DVC:
    made = build_learner(
        METHODS["dvc"],
        DVCConfig(**({"lr": 0.02} | fields)),
        Problem((1, 8, 8), classes, memory=30, width=2, seed=3),
    )
    assert isinstance(made, DVC)
    return made


def fed(made: DVC, steps: int) -> DVC:
    for step in range(steps):
        made.observe(stream().batch(step))
    return made


def literal_loss(made: DVC, x: Tensor, y: Tensor) -> Tensor:
    """Write the loss of pairs down as the facts have it; one concatenated pass."""
    n = len(x)
    z = made.network.head(
        made.network.encoder(torch.cat([x, made.augmentation(x, made.rng["views"])]))
    )
    z, w = z[:n], z[n:]
    q = made.qnet(z, w)
    P, W, Q = (torch.exp(v) / torch.exp(v).sum(1, keepdim=True) for v in (z, w, q))
    total = torch.tensor(0.0)
    for i in range(n):
        total = total - (P[i, y[i]].log() + W[i, y[i]].log()) / (2 * n)
    for distribution in (P, W, Q):
        mean = distribution.sum(0) / n
        mean = torch.clamp(mean / mean.sum(), min=2.2e-16)
        total = total + (mean * mean.log()).sum() / 3
    gap = torch.cat([(Q - P).abs(), (Q - W).abs()])
    return total + made.config.consistency * gap.mean()


def test_one_step_is_the_algorithm_of_the_paper() -> None:
    made = fed(learner(memory_batch=5, candidates=12), 3)
    twin = copy.deepcopy(made)
    counted = made.images
    batch = stream().batch(3)
    loss = made.observe(batch)

    twin.engine.optimizer.zero_grad()
    of_stream = literal_loss(twin, batch.x, batch.y)
    of_stream.backward()
    drawn = twin.memory.sample(12)
    moved = copy.deepcopy(twin.network)
    with torch.no_grad():
        for parameter, theirs in zip(moved.parameters(), twin.network.parameters(), strict=True):
            assert theirs.grad is not None
            parameter.sub_(0.02 * theirs.grad)
    scores = []
    for model in (moved, twin.network):
        model.eval()
        with torch.no_grad():
            h, z = model.features_and_outputs(drawn.x)
        wrong = (z.softmax(1) - F.one_hot(drawn.y, 6)).abs().sum(1)
        scores.append(wrong * h.abs().sum(1))
        model.train()
    chosen = (scores[0] - scores[1]).argsort(descending=True)[:5]
    of_memory = literal_loss(twin, drawn.x[chosen], drawn.y[chosen])
    of_memory.backward()
    twin.engine.optimizer.step()

    assert loss is not None
    assert loss.item() == pytest.approx((of_stream + of_memory).item(), rel=1e-5)
    assert made.images - counted == 20 + 2 * 12 + 2 * 5
    for ours, literal in zip(made.network.parameters(), twin.network.parameters(), strict=True):
        assert torch.allclose(ours, literal, atol=1e-5)
    for mine, other in zip(made.network.buffers(), twin.network.buffers(), strict=True):
        assert torch.allclose(mine.float(), other.float(), atol=1e-6)


def test_the_retrieval_really_selects() -> None:
    made = fed(learner(memory_batch=5, candidates=30), 3)
    whole = {tuple(image.flatten().tolist()) for image in made.memory.sample(30).x}
    retrieved = made.retrieve(stream().batch(3))
    assert len(retrieved) == 5
    assert {tuple(image.flatten().tolist()) for image in retrieved.x} < whole


def test_a_small_memory_is_retrieved_whole_without_a_virtual_step() -> None:
    made = learner()
    made.observe(stream().batch(0))
    assert made.images == 20  # the stream's pairs alone: the memory was empty
    made.observe(stream().batch(1))
    assert made.images == 20 + 20 + 20  # ten remembered images, fewer than 64 places


def test_images_per_step_at_the_released_settings() -> None:
    made = build_learner(METHODS["dvc"], DVCConfig(), Problem((1, 8, 8), 4, memory=200, width=2))
    x = torch.rand(200, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.memory.update(Batch(x, torch.arange(200) % 4))  # type: ignore[attr-defined]
    made.observe(Batch(x[:10], torch.arange(10) % 4))
    assert made.images == 20 + 128 + 2 * 128


def test_the_released_settings_are_the_defaults() -> None:
    config = DVCConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.9)
    assert (config.weight_decay, config.augmentation, config.head) == (0.0, "full", "linear")
    assert (config.memory_batch, config.candidates, config.consistency) == (64, 128, 4.0)


@pytest.mark.parametrize("teacher", ["none", "ema"])
def test_head_and_qnet_grow_and_go_on_from_a_saved_state(teacher: str) -> None:
    made, loaded = (learner(None, teacher=teacher, predict_with="student") for _ in range(2))
    x = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x, torch.tensor([0, 1, 0, 1, 0, 1])))
    made.observe(Batch(x, torch.tensor([4, 1, 0, 1, 0, 2])))
    assert (made.network.outputs, len(made.qnet.table)) == (5, 5)
    optimized = {id(p) for group in made.engine.optimizer.param_groups for p in group["params"]}
    assert optimized == {id(p) for p in made.network.parameters()}
    loaded.load_state_dict(made.state_dict())
    again = Batch(x, torch.tensor([4, 6, 0, 1, 0, 2]))
    first, second = made.observe(again), loaded.observe(again)
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)
    for ours, theirs in zip(made.network.parameters(), loaded.network.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"candidates": 50}, "candidates 50 for memory_batch 64 leave nothing to select"),
        ({"views": 2}, "views 2"),
        ({"memory_batch": 0}, "memory_batch 0 is out of range: give an integer from 1 to 100,000$"),
    ],
)
def test_bad_numbers_are_refused_in_words(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SteradError, match=said):
        learner(**fields)
