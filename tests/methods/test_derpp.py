"""DER++: one whole step against a slow, literal transcription of section 7.6."""

import copy
import io
from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.derpp import DERpp, DERppConfig
from sterad.streams import Batch, Clear, Stream
from sterad.testing.method import same

EVERYTHING: dict[str, Any] = {"views": 2, "memory_iterations": 2, "clip": 1.0, "teacher": "ema"}


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=30, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(classes: int | None = 6, memory: int = 30, **fields: Any) -> DERpp:
    return build_learner(
        DERpp, DERppConfig(**fields), Problem((1, 8, 8), classes, memory, width=2, seed=3)
    )


def literal_cross_entropy(logits: Tensor, labels: list[int]) -> Tensor:
    rows = zip(logits, labels, strict=True)
    return torch.stack([row.exp().sum().log() - row[label] for row, label in rows]).mean()


def logits_of(twin: DERpp, x: Tensor) -> tuple[Tensor, int]:
    """Return logits of what is shown, in one pass, and how many times each image is shown."""
    views = [twin.augmentation(x, twin.rng["views"]) for _ in range(twin.config.views)]
    views += [] if len(views) == 1 else [x]
    return twin.network.head(twin.network.encoder(torch.cat(views))), len(views)


def literal_drift(logits: Tensor, kept: list[list[float]]) -> Tensor:
    """Average squares over the entries that were kept, row by row."""
    gaps = [
        (row[c] - value) ** 2
        for row, then in zip(logits, kept, strict=True)
        for c, value in enumerate(then)
    ]
    return torch.stack(gaps).mean()


def literal_step(twin: DERpp, new: Batch, kept: dict[bytes, list[float]]) -> float:
    """Take one step; `kept` has the logits of every image so far, by its bytes."""
    config, count = twin.config, twin.config.memory_batch
    o, times = logits_of(twin, new.x)
    total = literal_cross_entropy(o, new.y.tolist() * times)
    if len(twin.memory):
        first = twin.memory.sample(count)
        then = [kept[image.numpy().tobytes()] for image in first.x]
        total = total + config.alpha * literal_drift(logits_of(twin, first.x)[0], then * times)
        second = twin.memory.sample(count)
        logits = logits_of(twin, second.x)[0]
        total = total + config.beta * literal_cross_entropy(logits, second.y.tolist() * times)
    before = o.detach().clone()[: len(new)]
    twin.engine.optimizer.zero_grad()
    total.backward()
    twin.engine.optimizer.step()
    kept |= {x.numpy().tobytes(): row for x, row in zip(new.x, before.tolist(), strict=True)}
    return total.item()


@pytest.mark.parametrize("views", [0, 1, 3])
def test_steps_are_the_algorithm_of_the_paper(views: int) -> None:
    feed, made = stream(), learner(memory_batch=4, views=views, alpha=0.7, beta=0.4)
    kept = dict[bytes, list[float]]()
    for step in range(5):  # the memory is full after the third
        twin = copy.deepcopy(made)
        loss = made.observe(feed.batch(step))
        assert loss is not None, "the first batch is learned from, too"
        assert loss.item() == pytest.approx(literal_step(twin, feed.batch(step), kept), rel=1e-4)
        for ours, theirs in zip(made.network.parameters(), twin.network.parameters(), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-4)
        for mine, literal in zip(made.network.buffers(), twin.network.buffers(), strict=True):
            assert torch.allclose(mine.float(), literal.float(), atol=1e-4)


def test_raw_images_are_kept_with_logits_of_the_first_view_before_the_step() -> None:
    feed, made = stream(), learner(views=2)
    twin = copy.deepcopy(made)
    made.observe(feed.batch(0))
    kept = next(made.memory.everything())
    view = twin.augmentation(feed.batch(0).x, twin.rng["views"])
    other = twin.augmentation(feed.batch(0).x, twin.rng["views"])
    o = twin.network(torch.cat([view, other, feed.batch(0).x]))[:10]
    assert torch.equal(kept.x, feed.batch(0).x)
    torch.testing.assert_close(kept.extra["logits"], o.detach())
    assert kept.extra["outputs"].tolist() == [6] * 10
    assert not torch.allclose(made.network(view), o, atol=1e-3), "the step has changed the logits"


def test_logits_kept_before_the_head_grew_are_compared_over_their_own_width() -> None:
    made = learner(classes=None, memory_batch=20, memory=40, alpha=0.9)
    feed, kept = stream(), dict[bytes, list[float]]()
    for step, labels in enumerate(([0, 1], [1, 3], [5, 0], [5, 3], [0, 9])):
        batch = Batch(feed.batch(step).x, torch.tensor(labels * 5))
        twin = copy.deepcopy(made)
        twin.admit(batch)
        loss = made.observe(batch)
        assert loss is not None
        assert loss.item() == pytest.approx(literal_step(twin, batch, kept), rel=1e-4)
    assert {len(row) for row in kept.values()} == {2, 4, 6, 10}
    assert made.network.outputs == 10


@pytest.mark.parametrize("fields", [{}, EVERYTHING])
def test_a_grown_state_continues_to_the_bit(fields: dict[str, Any]) -> None:
    made, feed = learner(classes=None, **fields), stream()
    for step, top in enumerate((1, 4)):
        made.observe(Batch(feed.batch(step).x, torch.tensor([0, top] * 5)))
    file = io.BytesIO()
    torch.save(made.state_dict(), file)
    file.seek(0)
    loaded = learner(classes=None, **fields)
    loaded.load_state_dict(torch.load(file, weights_only=True))
    for step, top in enumerate((4, 7), start=2):
        for one in (made, loaded):
            one.observe(Batch(feed.batch(step).x, torch.tensor([0, top] * 5)))
    assert same(made.state_dict(), loaded.state_dict())


def test_released_settings_are_the_defaults() -> None:
    config = DERppConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.03, 0.0)
    assert (config.weight_decay, config.augmentation, config.head) == (0.0, "partial", "linear")
    assert (config.alpha, config.beta, config.memory_batch, config.views) == (0.2, 1.0, 64, 1)


def test_images_of_a_step() -> None:
    feed, made = stream(), learner(memory=100)
    counts = [0]
    for step in range(9):
        made.observe(feed.batch(step))
        counts.append(made.images)
    assert counts[1] == 10
    assert counts[-1] - counts[-2] == 10 + 64 + 64


def test_names() -> None:
    assert METHODS["der++"] is DERpp


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("weight", [-0.1, float("nan")])
def test_weights_below_zero_are_refused_in_words(name: str, weight: float) -> None:
    fields: dict[str, Any] = {name: weight}
    told = rf"^{name} {weight} is out of range: give a number in \[0, 1e\+06\]$"
    with pytest.raises(SteradError, match=told):
        learner(**fields)
