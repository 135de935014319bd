"""ER-ACE: one whole step against a slow, literal transcription of section 7.8."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.er_ace import ERACE, ERACEConfig
from sterad.streams import Batch, Clear, Stream
from sterad.testing.method import same

EVERYTHING: dict[str, Any] = {"views": 2, "memory_iterations": 2, "clip": 1.0, "teacher": "ema"}


def stream() -> Stream:
    data = Synthetic(classes=16, per_class=20, test_per_class=2).load()
    return Clear(tasks=4, batch_size=10).open(data, seed=0)


def learner(classes: int | None = 16, memory: int = 30, **fields: Any) -> ERACE:
    return build_learner(
        ERACE, ERACEConfig(**fields), Problem((1, 8, 8), classes, memory, width=2, seed=3)
    )


def literal_cross_entropy(logits: Tensor, labels: list[int], among: set[int]) -> Tensor:
    total = torch.tensor(0.0)
    for row, label in zip(logits, labels, strict=True):
        masked = [value if c in among else value * 0 - 1e9 for c, value in enumerate(row)]
        total = total + torch.stack(masked).exp().sum().log() - row[label]
    return total / len(labels)


def shown(twin: ERACE, x: Tensor) -> list[Tensor]:
    views = [twin.augmentation(x, twin.rng["views"]) for _ in range(twin.config.views)]
    return views if len(views) == 1 else [*views, x]


def literal_loss(twin: ERACE, kept: Batch, new: Batch, seen: set[int]) -> Tensor:
    """Mask the stream, add the memory in a pass of its own."""
    labels = new.y.tolist()
    views = shown(twin, new.x)
    unseen = {c for c in range(twin.network.outputs) if c not in seen}
    total = literal_cross_entropy(
        twin.network(torch.cat(views)), labels * len(views), set(labels) | unseen
    )
    if len(kept):
        views = shown(twin, kept.x)
        logits = twin.network(torch.cat(views))
        total = total + literal_cross_entropy(
            logits, kept.y.tolist() * len(views), set(range(twin.network.outputs))
        )
    return total


@pytest.mark.parametrize("views", [1, 2])
def test_steps_are_the_algorithm_of_the_paper(views: int) -> None:
    feed, made = stream(), learner(memory_batch=4, views=views, lr=0.05)
    seen = set[int]()
    for step in range(10):  # the second task begins at step 8
        twin = copy.deepcopy(made)
        loss, new = made.observe(feed.batch(step)), feed.batch(step)
        seen |= set(new.y.tolist())
        expected = literal_loss(twin, twin.memory.sample(4), new, seen)
        twin.engine.optimizer.zero_grad()
        expected.backward()
        twin.engine.optimizer.step()
        assert loss is not None, "the first batch is learned from, too"
        assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
        for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-4)
    assert len(seen) > 4
    assert max(seen) > 9, "classes beyond the number of images of a batch take part"


def test_the_stream_leaves_the_rows_of_old_classes_alone() -> None:
    made, x = learner(classes=20, momentum=0.0, lr=0.1), stream().batch(0).x
    made.seen = torch.tensor([3, 12])
    head = made.network.head.get_parameter("weight")
    before = head.detach().clone()
    made.observe(Batch(x, torch.tensor([5, 15] * 5)))
    still = (head == before).all(dim=1).nonzero().squeeze(1)
    assert still.tolist() == [3, 12]


def test_released_settings_are_the_defaults() -> None:
    config = ERACEConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.001, 0.9)
    assert (config.weight_decay, config.augmentation, config.head) == (0.0, "partial", "linear")
    assert (config.views, config.memory_batch, config.classifier) == (1, 64, "head")


def test_images_of_a_step() -> None:
    feed, made = stream(), learner(memory=100)
    counts = [0]
    for step in range(9):
        made.observe(feed.batch(step))
        counts.append(made.images)
    assert counts[1] == 10
    assert counts[-1] - counts[-2] == 10 + 64


def test_a_batch_longer_than_the_head_is_wide_and_a_head_that_grows() -> None:
    made, x = learner(classes=None), torch.cat([stream().batch(0).x] * 3)
    for label in (1, 4):
        made.observe(Batch(x, torch.tensor([label - 1, label, 0] * 10)))
    assert made.network.outputs == 5
    twin, last = copy.deepcopy(made), Batch(x, torch.tensor([7, 0, 7] * 10))
    loss = made.observe(last)
    twin.widen(8)
    expected = literal_loss(twin, twin.memory.sample(64), last, {0, 1, 3, 4, 7})
    assert loss is not None
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_a_grown_state_continues_to_the_bit() -> None:
    made, x = learner(classes=None, **EVERYTHING), stream().batch(0).x
    for label in (1, 4):
        made.observe(Batch(x, torch.tensor([0, label] * 5)))
    loaded = learner(classes=None, **EVERYTHING)
    loaded.load_state_dict(made.state_dict())
    for one in (made, loaded):
        one.observe(Batch(x, torch.tensor([7, 0] * 5)))
    assert same(made.state_dict(), loaded.state_dict())


def test_names() -> None:
    assert METHODS["ER_ACE"] is METHODS["erace"] is ERACE
