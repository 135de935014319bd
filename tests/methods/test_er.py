"""ER: one whole step against a literal transcription of the algorithm."""

import copy
import re
from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.methods.er import ER, ERConfig
from sterad.streams import Batch
from tests.methods.scaffold import (
    ALL_OPTIONS,
    assert_networks_close,
    assert_resumes,
    build,
    count_images,
    draw_views,
    literal_cross_entropy,
    open_stream,
    random_images,
    take_step,
    train,
)


@pytest.mark.parametrize("views", [0, 1, 3])
def test_steps_equal_the_literal_algorithm(views: int) -> None:
    stream = open_stream(per_class=30)
    learner = build(ER, memory_batch=4, views=views, head="mlp" if views == 3 else "linear")
    assert learner.observe(stream.batch(0)) is None, "no step while the memory is empty"
    for step in (1, 2):  # the second step has momentum
        reference, new = copy.deepcopy(learner), stream.batch(step)
        loss = take_step(learner, new)
        stored = reference.memory.sample(4)
        x, y = torch.cat([stored.x, new.x]), [*stored.y.tolist(), *new.y.tolist()]
        inputs = draw_views(reference, x)
        logits = reference.network.head(reference.network.encoder(torch.cat(inputs)))
        assert logits.shape == (14 * len(inputs), 6)
        expected = literal_cross_entropy(logits, y * len(inputs))
        reference.engine.optimizer.zero_grad()
        expected.backward()
        reference.engine.optimizer.step()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        assert_networks_close(learner.network, reference.network, 1e-5, buffer_atol=1e-6)


def test_default_settings_are_those_of_the_released_code() -> None:
    config = ERConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.01, 0.9)
    assert (config.weight_decay, config.augmentation, config.head) == (1e-4, "full", "linear")
    assert (config.views, config.memory_batch, config.classifier) == (1, 64, "head")
    assert (config.memory_iterations, config.clip, config.teacher) == (1, None, "none")


def test_images_per_step() -> None:
    stream, learner = open_stream(per_class=30), build(ER, memory=100)
    assert count_images(learner, stream.batch(0)) == 0
    train(learner, stream, start=1, stop=8)
    assert count_images(learner, stream.batch(8)) == 64 + 10


@pytest.mark.parametrize("options", [{}, ALL_OPTIONS])
def test_a_widened_learner_resumes_bit_for_bit(options: dict[str, Any]) -> None:
    learner, x = build(ER, classes=None, **options), open_stream().batch(0).x
    for labels in ([0, 1] * 5, [1, 4] * 5):
        learner.observe(Batch(x, torch.tensor(labels)))
    assert learner.network.outputs == 5
    fresh = build(ER, classes=None, **options)
    assert_resumes(learner, fresh, Batch(x, torch.tensor([7, 0] * 5)))
    assert set(learner.predict(x).tolist()) <= {0, 1, 4, 7}


@pytest.mark.parametrize(
    ("encoder", "width", "memory_format"),
    [
        ("resnet18", 15, torch.contiguous_format),
        ("resnet18", 16, torch.channels_last),
        ("mlp", 16, torch.contiguous_format),
    ],
)
def test_wide_convolutions_use_channels_last(
    encoder: str, width: int, memory_format: torch.memory_format
) -> None:
    problem = {"input_shape": (3, 8, 8), "encoder": encoder, "width": width}
    learner = build(ER, problem=problem)
    assert learner.engine.memory_format is memory_format
    x = learner.engine.to_device(torch.zeros(4, 3, 8, 8))
    assert x.is_contiguous(memory_format=memory_format)
    weights = [w for w in learner.network.parameters() if w.dim() == 4 and w.shape[-1] == 3]
    assert all(weight.is_contiguous(memory_format=memory_format) for weight in weights)
    assert bool(weights) == (encoder == "resnet18")


def test_invalid_sizes_raise() -> None:
    message = "memory_batch 0 is out of range: give an integer from 1 to 100,000$"
    with pytest.raises(SteradError, match=message):
        build(ER, memory_batch=0)
    with pytest.raises(SteradError, match="memory 0 stores no samples"):
        build(ER, memory=0)


@pytest.mark.parametrize(
    ("loss", "description"),
    [(None, "of type NoneType"), (torch.zeros(3), "of shape (3,), requires_grad=False")],
)
def test_a_loss_that_is_not_a_scalar_raises(
    loss: Any, description: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, batch = build(ER), Batch(random_images(4), torch.arange(4))
    learner.observe(batch)
    monkeypatch.setattr(learner, "loss", lambda *_: loss)
    message = re.escape(f"the loss is {description}: return a scalar")
    with pytest.raises(SteradError, match=message):
        learner.observe(batch)
