"""GDumb and joint: store, then train from scratch, again and again with the same answer."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from sterad.data.synthetic import Synthetic
from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.methods import METHODS, Problem, build_learner
from sterad.methods.base.from_scratch import FromScratch
from sterad.methods.gdumb import GDumbConfig
from sterad.methods.joint import JointConfig
from sterad.seeds import generator
from sterad.streams import Batch, Clear, Stream
from sterad.testing.method import same

BOTH = pytest.mark.parametrize("name", ["gdumb", "joint"])


def stream() -> Stream:
    data = Synthetic(classes=6, per_class=10, test_per_class=4).load()
    return Clear(tasks=2, batch_size=10).open(data, seed=0)


def learner(name: str, classes: int | None = 6, **fields: Any) -> FromScratch:
    cls = METHODS[name]
    given = {"epochs": 3, "memory_batch": 8} | fields
    made = build_learner(
        cls, cls.Config(**given), Problem((1, 8, 8), classes, memory=20, width=2, seed=3)
    )
    assert isinstance(made, FromScratch)
    return made


def fed(made: FromScratch, start: int = 0, stop: int = 4) -> FromScratch:
    for step in range(start, stop):
        made.observe(stream().batch(step))
    return made


@BOTH
def test_the_training_is_the_literal_loop(name: str) -> None:
    # Batches of eight make training on maps of one pixel so chaotic that rounding would show.
    made = fed(learner(name, memory_batch=12))
    made.consolidate()
    kept = next(made.memory.everything())
    rng = {purpose: generator(3, f"{purpose} 40") for purpose in ("network", "views", "order")}
    twin = fed(learner(name, memory_batch=12))
    twin.rng = rng
    network = twin.make_network()
    rates = [0.005, 0.05, 0.05] if name == "gdumb" else [0.03, 0.03 * 0.75, 0.03 * 0.25]
    decay = 1e-6 if name == "gdumb" else 5e-4
    optimizer = torch.optim.SGD(network.parameters(), momentum=0.9, weight_decay=decay)
    for rate in rates:
        order = torch.randperm(len(kept), generator=rng["order"])
        for at in range(len(kept) // 12):  # the last partial batch is left out
            slots = order[12 * at : 12 * at + 12]
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad()
            view = twin.augmentation(kept.x[slots], rng["views"])
            F.cross_entropy(network(view), kept.y[slots]).backward()
            if name == "gdumb":
                torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimizer.step()
    assert len(kept) == (20 if name == "gdumb" else 40)
    for ours, theirs in zip(made.network.parameters(), network.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert made.consolidation_images == 3 * (len(kept) // 12 * 12)
    assert made.images == 0


@BOTH
def test_observing_stores_and_learns_nothing(name: str) -> None:
    made = learner(name)
    before = [p.clone() for p in made.network.parameters()]
    assert made.observe(stream().batch(0)) is None  # type: ignore[func-returns-value]
    assert len(made.memory) == 10
    assert all(torch.equal(a, b) for a, b in zip(before, made.network.parameters(), strict=True))
    assert made.images == made.consolidation_images == 0


@BOTH
def test_asking_twice_asks_for_no_second_training(name: str) -> None:
    made = fed(learner(name))
    made.consolidate()
    first, cost = made.scores(stream().batch(0).x)[0], made.consolidation_images
    made.consolidate()
    assert made.consolidation_images == cost
    assert torch.equal(first, made.scores(stream().batch(0).x)[0])


@BOTH
def test_earlier_questions_change_no_later_answer(name: str) -> None:
    asked, silent = fed(learner(name), 0, 2), fed(learner(name), 0, 2)
    asked.consolidate()
    for made in (asked, silent):
        fed(made, 2, 4).consolidate()
    x = stream().batch(0).x
    assert torch.equal(asked.scores(x)[0], silent.scores(x)[0])
    assert same(asked.state_dict(), silent.state_dict())
    resumed = learner(name)
    resumed.load_state_dict(asked.state_dict())
    resumed.consolidate()
    assert torch.equal(asked.scores(x)[0], resumed.scores(x)[0])


@BOTH
def test_a_batch_since_the_training_is_not_passed_over(name: str) -> None:
    made, x = fed(learner(name), 0, 1), stream().batch(0).x
    with pytest.raises(SteradError, match="call it before you predict"):
        made.predict(x)
    made.consolidate()
    made.predict(x)
    fed(made, 1, 2)
    for ask in (made.predict, made.scores, made.immediate_scores):
        with pytest.raises(SteradError, match="test_then_train"):
            ask(x)
    made.consolidate()
    made.load_state_dict(fed(learner(name), 2, 4).state_dict())  # as many images, but others
    with pytest.raises(SteradError, match="call it before you predict"):
        made.predict(x)


@BOTH
def test_new_classes_widen_the_next_network(name: str) -> None:
    made = learner(name, classes=None)
    x = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made.observe(Batch(x, torch.tensor([0, 1, 0, 1])))
    made.consolidate()
    assert made.scores(x)[0].shape == (4, 2)
    made.observe(Batch(x, torch.tensor([7, 1, 7, 1])))
    made.consolidate()
    assert (made.network.outputs, made.scores(x)[1].tolist()) == (8, [0, 1, 7])


@BOTH
def test_a_memory_smaller_than_a_batch_is_one_batch(name: str) -> None:
    made = fed(learner(name, memory_batch=64), 0, 1)
    made.consolidate()
    assert made.consolidation_images == 3 * 10


def test_fitted_classifiers_use_the_trained_features() -> None:
    made = fed(learner("gdumb", classifier="nearest-mean"))
    made.consolidate()
    assert made.fitted is not None
    assert set(made.predict(stream().batch(0).x).tolist()) <= set(made.seen.tolist())


def test_the_released_settings_of_gdumb_are_the_defaults() -> None:
    config = GDumbConfig()
    assert (config.optimizer, config.lr, config.momentum) == ("sgd", 0.05, 0.9)
    assert (config.weight_decay, config.clip, config.epochs) == (1e-6, 10.0, 30)
    assert (config.memory_batch, config.augmentation, config.head) == (16, "partial", "mlp")


def test_joint_keeps_everything_and_is_for_the_end() -> None:
    made = fed(learner("joint"), 0, 6)
    assert len(made.memory) == 60 > made.problem.memory
    assert made.memory_counts(6) is None
    assert (made.final_only, METHODS["gdumb"].final_only) == (True, False)
    config = JointConfig()
    assert (config.epochs, config.memory_batch, config.augmentation) == (20, 64, "full")


@BOTH
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"epochs": 0}, "epochs 0 is out of range: give an integer from 1 to 1,000,000$"),
        ({"teacher": "ema"}, "teacher=none"),
        ({"memory_iterations": 2}, "memory_iterations=1"),
        ({"memory_batch": 0}, "memory_batch 0 is out of range: give an integer from 1 to 100,000$"),
    ],
)
def test_bad_numbers_are_refused_in_words(name: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(SteradError, match=said):
        learner(name, **fields)


@BOTH
def test_asking_before_learning(name: str) -> None:
    with pytest.raises(SteradError, match="observe a batch"):
        learner(name).consolidate()


@pytest.mark.filterwarnings("ignore:.*float16.*")
def test_the_scale_of_an_earlier_training_is_forgotten() -> None:
    """In float16 the scaler adapts its scale; a training must not depend on those before it."""
    problem = Problem(
        (1, 8, 8), 6, memory=20, width=2, seed=3, execution=Execution(precision="float16")
    )
    config = GDumbConfig(epochs=2, memory_batch=8)
    asked, silent = (build_learner(METHODS["gdumb"], config, problem) for _ in range(2))
    assert isinstance(asked, FromScratch)
    for step in range(4):
        asked.observe(stream().batch(step))
        silent.observe(stream().batch(step))
        asked.consolidate()
        asked.engine.scaler.update(2.0**5)  # as if gradients had overflowed
    asked.trained_after = None
    for made in (asked, silent):
        made.consolidate()
    x = stream().batch(0).x
    assert torch.equal(asked.scores(x)[0], silent.scores(x)[0])
