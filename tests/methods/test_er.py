"""ER: one whole step against a slow, literal transcription of section 7.2."""

import copy
import re
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import Problem, build_learner
from sterad.methods.er import ER, ERConfig
from sterad.streams import Batch, Clear, Stream
from sterad.testing.method import same

EVERYTHING: dict[str, Any] = {"views": 2, "memory_iterations": 2, "clip": 1.0, "teacher": "ema"}


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=30, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(classes: int | None = 6, memory: int = 30, **fields: Any) -> ER:
    return build_learner(
        ER, ERConfig(**fields), Problem((1, 8, 8), classes, memory, width=2, seed=3)
    )


def literal_cross_entropy(logits: Tensor, labels: list[int]) -> Tensor:
    rows = zip(logits, labels, strict=True)
    return torch.stack([row.exp().sum().log() - row[label] for row, label in rows]).mean()


@pytest.mark.parametrize("views", [0, 1, 3])
def test_one_step_is_the_algorithm_of_the_paper(views: int) -> None:
    feed, made = (
        stream(),
        learner(memory_batch=4, views=views, head="mlp" if views == 3 else "linear"),
    )
    assert made.observe(feed.batch(0)) is None, "nothing is learned while the memory is empty"
    for step in (1, 2):  # the second step has a momentum
        twin = copy.deepcopy(made)
        loss = made.observe(feed.batch(step))
        kept, new = twin.memory.sample(4), feed.batch(step)
        x, y = torch.cat([kept.x, new.x]), [*kept.y.tolist(), *new.y.tolist()]
        shown = [twin.augmentation(x, twin.rng["views"]) for _ in range(views)]
        shown += [] if views == 1 else [x]
        logits = twin.network.head(twin.network.encoder(torch.cat(shown)))
        assert logits.shape == (14 * len(shown), 6), "one output a class, whatever the views"
        expected = literal_cross_entropy(logits, y * len(shown))
        twin.engine.optimizer.zero_grad()
        expected.backward()
        twin.engine.optimizer.step()
        assert loss is not None
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5)
        for mine, literal in zip(made.network.buffers(), twin.network.buffers(), strict=True):
            assert torch.allclose(mine.float(), literal.float(), atol=1e-6)


def test_released_settings_are_the_defaults() -> None:
    config = ERConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.01, 0.9)
    assert (config.weight_decay, config.augmentation, config.head) == (1e-4, "full", "linear")
    assert (config.views, config.memory_batch, config.classifier) == (1, 64, "head")
    assert (config.memory_iterations, config.clip, config.teacher) == (1, None, "none")


def test_images_of_a_step() -> None:
    feed, made = stream(), learner(memory=100)
    counts = [0]
    for step in range(9):
        made.observe(feed.batch(step))
        counts.append(made.images)
    assert counts[1] == 0
    assert counts[-1] - counts[-2] == 74


@pytest.mark.parametrize("fields", [{}, EVERYTHING])
def test_the_head_grows_and_a_state_continues_to_the_bit(fields: dict[str, Any]) -> None:
    made, x = learner(classes=None, **fields), stream().batch(0).x
    for labels in ([0, 1] * 5, [1, 4] * 5):
        made.observe(Batch(x, torch.tensor(labels)))
    assert made.network.outputs == 5
    loaded = learner(classes=None, **fields)
    loaded.load_state_dict(made.state_dict())
    for one in (made, loaded):
        one.observe(Batch(x, torch.tensor([7, 0] * 5)))
    assert same(made.state_dict(), loaded.state_dict())
    assert set(made.predict(x).tolist()) <= {0, 1, 4, 7}


@pytest.mark.parametrize(
    ("encoder", "width", "kept"),
    [
        ("resnet18", 15, torch.contiguous_format),
        ("resnet18", 16, torch.channels_last),
        ("mlp", 16, torch.contiguous_format),
    ],
)
def test_channels_come_last_for_convolutions_whose_gradient_stays_within_its_memory(
    encoder: str, width: int, kept: torch.memory_format
) -> None:
    made = build_learner(ER, ERConfig(), Problem((3, 8, 8), 6, 30, encoder=encoder, width=width))
    assert made.engine.memory_format is kept
    assert made.engine.to_device(torch.zeros(4, 3, 8, 8)).is_contiguous(memory_format=kept)
    weights = [w for w in made.network.parameters() if w.dim() == 4 and w.shape[-1] == 3]
    assert all(weight.is_contiguous(memory_format=kept) for weight in weights)


def test_bad_numbers_are_refused_in_words() -> None:
    told = "memory_batch 0 is out of range: give an integer from 1 to 100,000$"
    with pytest.raises(SteradError, match=told):
        learner(memory_batch=0)
    with pytest.raises(SteradError, match="memory 0 stores no samples"):
        learner(memory=0)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [(None, "of type NoneType"), (torch.zeros(3), "of shape (3,), requires_grad=False")],
)
def test_a_loss_that_is_none_is_told(
    wrong: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build_learner(ER, ERConfig(), Problem((1, 8, 8), 6, 30, width=2))
    batch = Batch(torch.rand(4, 1, 8, 8), torch.arange(4))
    made.observe(batch)
    monkeypatch.setattr(made, "loss", lambda *_: wrong)
    with pytest.raises(SteradError, match=re.escape(f"the loss is {told}: return a scalar")):
        made.observe(batch)
