from collections.abc import Callable

import numpy as np
import pytest

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.run import prepare
from sterad.experiments.search.plan import SearchPlan

Plans = Callable[..., SearchPlan]


def test_held_out_training_images_and_seeds_that_no_table_reports(plan: Plans) -> None:
    made = plan(seeds=())
    assert made.seeds == (100, 101, 102)
    configs = made.configs({"lr": 0.01})
    assert [c.settings.seed for c in configs] == [100, 101, 102]
    assert {c.settings.validation for c in configs} == {0.1}
    assert {c.method.fields.lr for c in configs} == {0.01}
    assert plan(config={"validation": 0.3}).config.settings.validation == 0.3


def test_the_papers_choice(plan: Plans) -> None:
    made = plan(seeds=(), objective="test")
    assert made.seeds == (0, 1, 2)
    assert made.config.settings.validation == 0
    with pytest.raises(SteradError, match="leave one of the two away"):
        plan(objective="test", config={"validation": 0.1})


def test_what_is_tested_was_never_trained_on(plan: Plans) -> None:
    made = plan()
    whole = made.config.dataset.fields.load()
    (config, *_) = made.configs({"lr": 0.01})
    stream = prepare(config, Execution(threads=1)).stream
    trained = {
        image.tobytes()
        for batch in map(stream.batch, range(len(stream)))
        for image in (batch.x.numpy() * 255).round().astype(np.uint8)
    }
    images = {
        name: {image.tobytes() for image in getattr(whole, f"{name}_images")}
        for name in ("train", "test")
    }
    tested = {image.tobytes() for image in stream.dataset.test_images}
    assert tested
    assert not tested & trained
    assert tested | trained == images["train"]
    assert not tested & images["test"], "the real test images are not looked at"


def test_a_name_for_each_question(plan: Plans) -> None:
    asked = plan()
    assert asked.name == plan(sampler="grid", prune=False).name, "how is not what"
    others = [
        plan(seeds=(1,)),
        plan(objective="test"),
        plan(config={"width": 4}),
        plan(config={"momentum": 0.1}),
        plan("[finetune]\nlr = [0.1]"),
    ]
    assert len({asked.name, *(other.name for other in others)}) == 6


def test_how_many_trials(plan: Plans) -> None:
    assert plan(sampler="grid").trials == 4
    assert plan(sampler="grid", trials=9).trials == 4
    assert plan().trials == 4, "there are no more points"
    assert plan("[finetune]\nlr = { low = 1, high = 2 }").trials == 50
    with pytest.raises(
        SteradError, match=r"has 4 points and 3 trials are allowed: give --trials 4"
    ):
        plan(sampler="grid", trials=3)
    with pytest.raises(SteradError, match="a grid has no points in the range of lr"):
        plan("[finetune]\nlr = { low = 1, high = 2 }", sampler="grid")
    with pytest.raises(SteradError, match="trials 0 is below 1"):
        plan(trials=0)
    with pytest.raises(
        SteradError, match=r"^seed -1 is out of range: give an integer from 0 to 4,294,967,295$"
    ):
        plan(seeds=(-1,))
    many = ", ".join(str(n / 500) for n in range(1, 401))
    with pytest.raises(SteradError, match="the grid has 160000 points"):
        plan(f"[finetune]\nlr = [{many}]\nmomentum = [{many}]", sampler="grid")
