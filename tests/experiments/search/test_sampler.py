from collections.abc import Callable

import optuna
import pytest
from optuna import Study
from optuna.trial import TrialState

from sterad.experiments.search.plan import SamplerName, SearchPlan
from sterad.experiments.search.sampler import LastValueMedianPruner, UntriedPointSampler

CreatePlan = Callable[..., SearchPlan]
TWELVE_POINTS = "[finetune]\nlr = [1, 2, 3, 4]\nmomentum = [0.0, 0.5, 0.9]\n"


def sample(plan: SearchPlan, kind: SamplerName, count: int) -> list[tuple[float, float]]:
    """Sample points for an objective with its maximum at lr 3 and momentum 0.5."""
    sampler = UntriedPointSampler(plan.space, kind)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(count):
        trial = study.ask(plan.space.distributions())
        lr, momentum = trial.params["lr"], trial.params["momentum"]
        study.tell(trial, -abs(lr - 3) - abs(momentum - 0.5))
    return [(t.params["lr"], t.params["momentum"]) for t in study.trials]


@pytest.mark.parametrize("kind", ["grid", "tpe"])
def test_each_point_is_sampled_once_and_reproducibly(
    create_plan: CreatePlan, kind: SamplerName
) -> None:
    points = sample(create_plan(TWELVE_POINTS), kind, 12)
    assert len(set(points)) == 12
    assert points == sample(create_plan(TWELVE_POINTS), kind, 12)


def test_tpe_approaches_the_maximum(create_plan: CreatePlan) -> None:
    values = ", ".join(str(n / 100) for n in range(100))
    plan = create_plan(f"[finetune]\nlr = {{ low = 0.001, high = 10 }}\nmomentum = [{values}]")
    points = sample(plan, "tpe", 60)
    distances = [abs(lr - 3) + abs(momentum - 0.5) for lr, momentum in points]
    assert sum(distances[40:]) / 20 < 0.7 * sum(distances[:10]) / 10


def test_failed_points_are_retried_by_the_next_call_only(create_plan: CreatePlan) -> None:
    space = create_plan("[finetune]\nlr = [1, 2]\n").space
    study = optuna.create_study(sampler=UntriedPointSampler(space, "grid"))
    failed = study.tell(study.ask(space.distributions()), state=TrialState.FAIL)
    assert UntriedPointSampler(space, "grid").count_untried(study) == 1
    retried = frozenset({failed.number})
    assert UntriedPointSampler(space, "grid", retried).count_untried(study) == 2


FALLING_CURVES = ([1.0, 0.8, 0.6], [0.9, 0.6, 0.4], [0.9, 0.5, 0.2])


def create_study(pruner: LastValueMedianPruner) -> Study:
    """Return a study with three complete trials."""
    study = optuna.create_study(direction="maximize", pruner=pruner)
    for curve in FALLING_CURVES:
        trial = study.ask()
        for step, value in enumerate(curve):
            trial.report(value, step)
        study.tell(trial, curve[-1])
    return study


def pruned_step(study: Study, curve: list[float]) -> int | None:
    """Return the step at which a trial with this curve is stopped."""
    trial = study.ask()
    for step, value in enumerate(curve):
        trial.report(value, step)
        if trial.should_prune():
            return step
    return None


def test_the_pruner_compares_values_at_the_same_step() -> None:
    study = create_study(LastValueMedianPruner(3))
    assert pruned_step(study, [1.0, 0.7, 0.5]) is None
    assert pruned_step(study, [1.0, 0.7, 0.3]) == 2, "its best value, the first, does not count"
    assert pruned_step(study, [0.1, 0.7, 0.5]) == 0


def test_the_pruner_waits_for_complete_trials_and_warmup_steps() -> None:
    assert pruned_step(create_study(LastValueMedianPruner(4)), [0.0, 0.0, 0.0]) is None
    study = create_study(LastValueMedianPruner(3, n_warmup_steps=2))
    assert pruned_step(study, [0.0, 0.0, 0.0]) == 2
    assert not LastValueMedianPruner(3).prune(study, study.ask()._get_latest_trial())
