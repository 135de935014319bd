"""PCR: one whole step against a literal transcription of the algorithm."""

import copy
import math

import pytest
import torch
from torch import Tensor

from sterad.encoders.heads import last_layer
from sterad.errors import SteradError
from sterad.methods.pcr import PCR, PCRConfig
from sterad.streams import Batch
from tests.methods.scaffold import (
    assert_resumes,
    build,
    count_images,
    open_stream,
    random_images,
    take_step,
    train,
)


def proxies_of(learner: PCR) -> Tensor:
    layer = last_layer(learner.network.head)
    assert layer is not None
    return layer.weight


def test_one_step_equals_the_literal_algorithm() -> None:
    stream, learner = open_stream(per_class=20), build(PCR, memory_batch=4)
    assert learner.observe(stream.batch(0)) is None, "no step while the memory is empty"
    reference = copy.deepcopy(learner)
    loss = take_step(learner, stream.batch(1))

    # Compare each image with the proxies of all images, repeated as often as their classes occur.
    stored, new = reference.memory.sample(4), stream.batch(1)
    x, y = torch.cat([stored.x, new.x]), torch.cat([stored.y, new.y]).tolist() * 2
    views = torch.cat([reference.augmentation(x, reference.rng["views"]), x])
    features, weight = reference.network.encoder(views), proxies_of(reference)
    proxies = [weight[label] / weight[label].norm() for label in y]
    expected = torch.tensor(0.0)
    for feature, proxy in zip(features, proxies, strict=True):
        unit = feature / (feature.norm() + 1e-6)
        total = sum((unit @ other / 0.09).exp() for other in proxies)
        expected = expected + (torch.log(total) - unit @ proxy / 0.09) / len(y)
    expected.backward()
    constant = sum(math.log(y.count(label)) for label in y) / len(y)
    assert loss.item() + constant == pytest.approx(expected.item(), rel=1e-4)
    pairs = zip(learner.network.parameters(), reference.network.parameters(), strict=True)
    for parameter, start in pairs:
        assert start.grad is not None
        assert torch.allclose(parameter, start - 0.1 * start.grad, atol=1e-4)
    absent = [label for label in range(6) if label not in y]
    assert absent
    assert torch.equal(proxies_of(learner)[absent], weight[absent])
    assert learner.images == 2 * (4 + 10)


def test_images_per_step() -> None:
    stream, learner = open_stream(per_class=20), build(PCR, memory=100)
    train(learner, stream, 7)
    assert count_images(learner, stream.batch(7)) == 2 * (64 + 10)


def test_default_settings_are_those_of_the_released_code_except_memory_batch() -> None:
    config = PCRConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.1, 0.0)
    assert (config.weight_decay, config.temperature, config.head) == (0.0, 0.09, "cosine")
    assert (config.augmentation, config.views, config.memory_batch) == ("full", 1, 64)


def test_new_labels_add_proxies_and_the_learner_resumes_bit_for_bit() -> None:
    learner, x = build(PCR, classes=None), random_images(4)
    for labels in ([0, 1, 0, 1], [1, 2, 0, 0], [9, 1, 2, 0]):
        learner.observe(Batch(x, torch.tensor(labels)))
    assert learner.network.outputs == 10
    assert proxies_of(learner).shape == (10, 16)
    batch = Batch(x, torch.tensor([9, 8, 11, 0]))
    assert_resumes(learner, build(PCR, classes=None), batch)
    assert learner.immediate_scores(x)[1].tolist() == [0, 1, 2, 8, 9, 11]


def test_scores_and_distillation_divide_cosines_by_the_temperature() -> None:
    learner = build(PCR, temperature=0.5, teacher="ema", teacher_temperature=4.0)
    learner.seen = torch.tensor([1, 4])
    target, output = torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(learner.class_scores(target), target[:, [1, 4]] / 0.5)
    p, q = (target / 2).softmax(1), (output / 2).softmax(1)  # 0.5 times 4
    expected = 16 * (p * (p / q).log()).sum(1).mean()
    assert learner.distillation_loss(target, output).item() == pytest.approx(
        expected.item(), rel=1e-4
    )


def test_invalid_fields_raise() -> None:
    message = r"^temperature 0\.0 is out of range: give a number in \(0, 1e\+06\]$"
    with pytest.raises(SteradError, match=message):
        build(PCR, temperature=0.0)
    with pytest.raises(SteradError, match="unknown head 'proxy'"):
        build(PCR, head="proxy")
