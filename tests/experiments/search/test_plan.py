from collections.abc import Callable

import numpy as np
import pytest

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.run import prepare
from sterad.experiments.search.plan import SearchPlan

CreatePlan = Callable[..., SearchPlan]


def test_default_seeds_and_held_out_share(create_plan: CreatePlan) -> None:
    plan = create_plan(seeds=())
    assert plan.seeds == (100, 101, 102)
    configs = plan.configs({"lr": 0.01})
    assert [c.settings.seed for c in configs] == [100, 101, 102]
    assert {c.settings.validation for c in configs} == {0.1}
    assert {c.method.fields.lr for c in configs} == {0.01}
    assert create_plan(config={"validation": 0.3}).config.settings.validation == 0.3


def test_tested_on_test_uses_the_seeds_of_the_paper(create_plan: CreatePlan) -> None:
    plan = create_plan(seeds=(), tested_on="test")
    assert plan.seeds == (0, 1, 2)
    assert plan.config.settings.validation == 0
    with pytest.raises(SteradError, match="give one of the two"):
        create_plan(tested_on="test", config={"validation": 0.1})


def test_validation_images_are_neither_trained_on_nor_test_images(create_plan: CreatePlan) -> None:
    plan = create_plan()
    dataset = plan.config.dataset.fields.load()
    (config, *_) = plan.configs({"lr": 0.01})
    stream = prepare(config, Execution(threads=1)).stream
    trained = {
        image.tobytes()
        for batch in map(stream.batch, range(len(stream)))
        for image in (batch.x.numpy() * 255).round().astype(np.uint8)
    }
    images = {
        name: {image.tobytes() for image in getattr(dataset, f"{name}_images")}
        for name in ("train", "test")
    }
    tested = {image.tobytes() for image in stream.dataset.test_images}
    assert tested
    assert not tested & trained
    assert tested | trained == images["train"]
    assert not tested & images["test"]


def test_the_name_depends_on_all_that_affects_the_scores(create_plan: CreatePlan) -> None:
    plan = create_plan()
    assert plan.name == create_plan(sampler="grid", prune=False).name
    others = [
        create_plan(seeds=(1,)),
        create_plan(tested_on="test"),
        create_plan(config={"width": 4}),
        create_plan(config={"momentum": 0.1}),
        create_plan("[finetune]\nlr = [0.1]"),
    ]
    assert len({plan.name, *(other.name for other in others)}) == 6


def test_number_of_trials(create_plan: CreatePlan) -> None:
    assert create_plan(sampler="grid").trials == 4
    assert create_plan(sampler="grid", trials=9).trials == 4
    assert create_plan().trials == 4, "the space has no more points"
    assert create_plan("[finetune]\nlr = { low = 1, high = 2 }").trials == 50
    with pytest.raises(
        SteradError, match=r"has 4 points and 3 trials are allowed: give --trials 4"
    ):
        create_plan(sampler="grid", trials=3)
    with pytest.raises(SteradError, match="a grid cannot cover the range of lr"):
        create_plan("[finetune]\nlr = { low = 1, high = 2 }", sampler="grid")
    many = ", ".join(str(n / 500) for n in range(1, 401))
    with pytest.raises(SteradError, match="the grid has 160000 points"):
        create_plan(f"[finetune]\nlr = [{many}]\nmomentum = [{many}]", sampler="grid")
