from collections.abc import Callable

import optuna
import pytest
from optuna.trial import TrialState

from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.sampler import Kind, Untried, failed

Plans = Callable[..., SearchPlan]
PAIRS = "[finetune]\nlr = [1, 2, 3, 4]\nmomentum = [0.0, 0.5, 0.9]\n"


def drawn(plan: SearchPlan, kind: Kind, count: int) -> list[tuple[float, float]]:
    """Draw points whose value is highest at lr 3 and momentum 0.5."""
    study = optuna.create_study(direction="maximize", sampler=Untried(plan.space, kind))
    for _ in range(count):
        trial = study.ask(plan.space.distributions())
        lr, momentum = trial.params["lr"], trial.params["momentum"]
        study.tell(trial, -abs(lr - 3) - abs(momentum - 0.5))
    return [(t.params["lr"], t.params["momentum"]) for t in study.trials]


@pytest.mark.parametrize("kind", ["grid", "tpe"])
def test_every_point_once(plan: Plans, kind: Kind) -> None:
    points = drawn(plan(PAIRS), kind, 12)
    assert len(set(points)) == 12
    assert points == drawn(plan(PAIRS), kind, 12), "chance is the number of the trial"


def test_tpe_goes_where_it_is_good(plan: Plans) -> None:
    values = ", ".join(str(n / 100) for n in range(100))
    made = plan(f"[finetune]\nlr = {{ low = 0.001, high = 10 }}\nmomentum = [{values}]")
    points = drawn(made, "tpe", 60)
    distances = [abs(lr - 3) + abs(momentum - 0.5) for lr, momentum in points]
    assert sum(distances[40:]) / 20 < 0.7 * sum(distances[:10]) / 10


def test_failed_points_are_tried_again_in_the_next_call_only(plan: Plans) -> None:
    space = plan("[finetune]\nlr = [1, 2]\n").space
    study = optuna.create_study(sampler=Untried(space, "grid"))
    study.tell(study.ask(space.distributions()), state=TrialState.FAIL)
    assert Untried(space, "grid").left(study) == 1
    assert Untried(space, "grid", failed(study)).left(study) == 2
