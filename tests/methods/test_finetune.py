"""Fine-tuning: whole steps against a literal transcription of the algorithm."""

import copy

import pytest
import torch

from sterad.methods.finetune import Finetune, FinetuneConfig
from tests.methods.scaffold import build, draw_views, literal_cross_entropy, open_stream, take_step


@pytest.mark.parametrize("views", [0, 1, 3])
def test_steps_equal_the_literal_algorithm(views: int) -> None:
    stream = open_stream()
    learner = build(Finetune, views=views, momentum=0.5, weight_decay=0.01)
    velocity = [torch.zeros_like(p) for p in learner.network.parameters()]
    for step in range(3):
        reference, batch, images = copy.deepcopy(learner), stream.batch(step), learner.images
        loss = take_step(learner, batch)
        inputs = draw_views(reference, batch.x)
        logits = reference.network.head(reference.network.encoder(torch.cat(inputs)))
        expected = literal_cross_entropy(logits, batch.y.tolist() * len(inputs))
        expected.backward()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        pairs = zip(learner.network.parameters(), reference.network.parameters(), strict=True)
        for index, (weight, start) in enumerate(pairs):
            assert start.grad is not None
            velocity[index] = 0.5 * velocity[index] + start.grad + 0.01 * start.detach()
            assert torch.allclose(weight, start - 0.03 * velocity[index], atol=1e-5)
        assert learner.images - images == 10 * len(inputs)
    assert len(learner.memory) == 0


def test_default_settings() -> None:
    config = FinetuneConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.03, 0.0)
    assert (config.augmentation, config.head, config.views) == ("full", "mlp", 1)
