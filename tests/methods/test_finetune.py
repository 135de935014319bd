"""Fine-tuning: whole steps against a slow, literal transcription of section 7.12, raw logits."""

import copy

import pytest
import torch

from sterad.data.synthetic import Synthetic
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.finetune import Finetune, FinetuneConfig
from sterad.streams import Clear


@pytest.mark.parametrize("views", [0, 1, 3])
def test_steps_are_cross_entropy_of_the_stream_alone(views: int) -> None:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    feed = Clear(tasks=2, batch_size=10).open(data, seed=0)
    config = FinetuneConfig(views=views, momentum=0.5, weight_decay=0.01)
    made = build_learner(Finetune, config, Problem((1, 8, 8), 6, memory=30, width=2, seed=3))
    velocity = [torch.zeros_like(p) for p in made.network.parameters()]
    for step in range(3):
        twin, batch, counted = copy.deepcopy(made), feed.batch(step), made.images
        loss = made.observe(batch)
        shown = [twin.augmentation(batch.x, twin.rng["views"]) for _ in range(views)]
        shown += [] if views == 1 else [batch.x]
        logits = twin.network.head(twin.network.encoder(torch.cat(shown)))
        rows = zip(logits, batch.y.tolist() * len(shown), strict=True)
        expected = torch.stack([row.exp().sum().log() - row[label] for row, label in rows]).mean()
        expected.backward()
        assert loss is not None, "every batch is learned from, the first one too"
        assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
        pairs = zip(made.network.parameters(), twin.network.parameters(), strict=True)
        for at, (ours, theirs) in enumerate(pairs):
            assert theirs.grad is not None
            velocity[at] = 0.5 * velocity[at] + theirs.grad + 0.01 * theirs.detach()
            assert torch.allclose(ours, theirs - 0.03 * velocity[at], atol=1e-5)
        assert made.images - counted == 10 * len(shown)
    assert len(made.memory) == 0


def test_our_settings_are_the_defaults() -> None:
    config = METHODS["finetune"].Config()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.03, 0.0)
    assert (config.augmentation, config.head, config.views) == ("full", "mlp", 1)
