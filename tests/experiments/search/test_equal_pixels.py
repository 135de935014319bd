"""Searches in which each point passes the same number of pixels through its networks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.search.equal_pixels import RejectedError, step_pixels
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.space import find_space, read_space
from sterad.methods import METHODS

SMALL: dict[str, Any] = {
    "method": "er", "dataset": "synthetic", "classes": 4, "per_class": 20, "image_size": 6,
    "tasks": 2, "memory": 60, "encoder": "mlp", "width": 2, "anytime": 5,
}  # fmt: skip
EQUAL = 'equal-pixels = { field = "memory-batch", low = 2, high = 40 }\n'
SPACE = f'[er]\n{EQUAL}teacher = ["none", "ema"]\nviews = [1, 2]\nmemory-iterations = [1, 5]\n'
OCM = {"method": "ocm", "memory_batch": 4, "encoder": "resnet18", "image_size": 8}
CreatePlan = Callable[..., SearchPlan]


def pixels_of(**fields: Any) -> float:
    config = RunConfig.of(**SMALL | fields)
    side: int = config.dataset.fields.image_size
    return step_pixels(config) / side**2


@pytest.mark.parametrize(
    ("fields", "images"),
    [
        ({"memory_batch": 7}, 17),
        ({"memory_batch": 7, "views": 2, "memory_iterations": 2}, 2 * 3 * 17),
        ({"memory_batch": 7, "teacher": "ema"}, 17 + (2 + 1 / 3) * 17),
        ({"memory_batch": 4, "retrieval": "mir"}, 14 + 10 + 2 * 20 / 3),
        (OCM, 32 * 14 + 4 + 17 * 4 / 3),
    ],
)
def test_a_dry_run_counts_a_step_with_a_full_memory(fields: dict[str, Any], images: float) -> None:
    assert pixels_of(**fields) == pytest.approx(images)


@pytest.mark.parametrize("method", ["gdumb", "slda"])
def test_methods_without_replay_steps_are_refused(method: str) -> None:
    with pytest.raises(SteradError, match=f"{method} takes no steps with a memory on the stream"):
        pixels_of(method=method)


@pytest.fixture
def plan(create_plan: CreatePlan) -> SearchPlan:
    """Return a plan whose points take 3 · (10 + 22) images of 36 pixels."""
    return create_plan(SPACE, SMALL | {"memory_batch": 22, "views": 2}, sampler="grid")


def test_each_point_takes_the_pixels_of_the_search(plan: SearchPlan) -> None:
    assert plan.budget is not None
    assert plan.budget.pixels == 96 * 36
    point = {"teacher": "ema", "views": 1, "memory_iterations": 1}
    assert plan.values(point) == point | {"memory_batch": 18}  # 3 1/3 · (10 + 18) = 93 1/3
    for teacher, views in (("none", 2), ("ema", 1), ("ema", 2)):
        values = {"teacher": teacher, "views": views, "memory_iterations": 1}
        config = replace(plan.config, method=plan.build_method(values))
        assert 0.9 < step_pixels(config) / plan.budget.pixels <= 1


def test_points_of_other_cost_are_rejected_in_words(plan: SearchPlan) -> None:
    expensive = {"teacher": "ema", "views": 2, "memory_iterations": 5}
    with pytest.raises(RejectedError, match=r"takes 11.5 k pixels .* more than the 3.46 k"):
        plan.build_method(expensive)
    cheap = {"teacher": "none", "views": 1, "memory_iterations": 1}
    with pytest.raises(RejectedError, match=r"only 1.8 k pixels per batch with memory_batch=40, l"):
        plan.build_method(cheap)


def test_parts_that_exclude_each_other_are_rejected(create_plan: CreatePlan) -> None:
    text = f'[dvc]\n{EQUAL}candidates = [6, 30]\nretrieval = ["random", "mir"]\n'
    plan = create_plan(text, SMALL | {"method": "dvc"}, pixels=36 * 60)
    with pytest.raises(RejectedError, match="dvc selects the most interfered candidates"):
        plan.build_method({"candidates": 30, "retrieval": "mir"})
    with pytest.raises(RejectedError, match="candidates 6 for memory_batch 18 leave nothing"):
        plan.build_method({"candidates": 6, "retrieval": "random"})
    assert plan.values({"candidates": 30, "retrieval": "random"})["memory_batch"] == 10


def test_rejected_points_are_neither_trained_nor_counted(
    plan: SearchPlan, run_search: Callable[..., Any]
) -> None:
    search, launcher = run_search(replace(plan, seeds=(100,)))
    trials = search.study.get_trials()
    rejected = [trial for trial in trials if "rejected" in trial.user_attrs]
    assert len(trials) == 8
    assert len(launcher.launched) == 8 - len(rejected) == search.count_ended()[0] == 4
    assert {trial.state for trial in rejected} == {TrialState.PRUNED}
    trained = {job.config.method.fields.memory_batch for job in launcher.launched}
    assert {plan.values(t.params)["memory_batch"] for t in search.ranked_trials()} == trained
    again, launcher = run_search(replace(plan, seeds=(100,)))
    assert not launcher.launched
    assert len(again.study.get_trials()) == 8


def test_the_cost_is_part_of_the_name(create_plan: CreatePlan) -> None:
    plans = [create_plan(SPACE, SMALL, pixels=pixels) for pixels in (3000, 4000)]
    plain = create_plan(SPACE.replace(EQUAL, ""), SMALL)
    assert len({plan.name for plan in (*plans, plain)}) == 3
    assert plain.budget is None


def test_pixels_without_a_budget_are_refused(create_plan: CreatePlan) -> None:
    with pytest.raises(SteradError, match="have no effect on a space without equal-pixels"):
        create_plan(config=SMALL | {"method": "finetune"}, pixels=3000)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('{ field = "lr2", low = 1, high = 2 }', "lr2"),
        ('{ field = "memory-batch", low = 2, high = 2 }', "give 0 < low < high"),
        ('{ field = "memory-batch", low = 2 }', "high"),
        ('{ field = "memory-batch", low = 2, high = 4, step = 1 }', "step"),
        ('{ field = "views", low = 1, high = 4 }', "views is searched and chosen"),
        ("3", "equal-pixels"),
    ],
)
def test_invalid_tables_are_errors(create_plan: CreatePlan, table: str, message: str) -> None:
    with pytest.raises(SteradError, match=message):
        create_plan(f"[er]\nviews = [1, 2]\nequal-pixels = {table}\n", SMALL)


def test_the_space_of_combinations_is_valid() -> None:
    for name in ("agd-fd",):
        config = RunConfig.of(method=name)
        space = read_space(config.method, Path("combinations"))
        assert space.adapted is not None
        first = {d.name: d.values[0] if d.values else d.low for d in space.dimensions}
        last = {d.name: d.values[-1] if d.values else d.high for d in space.dimensions}
        for point in (first, last):
            assert isinstance(space.build_method(point).fields, METHODS[name].Config)


def test_an_unknown_space_is_an_error() -> None:
    with pytest.raises(SteradError, match="unknown space 'combination': did you mean"):
        find_space("combination")
