import optuna
from optuna import Study

from sterad.experiments.search.pruner import BelowMedian


def study_of(*curves: list[float], pruner: BelowMedian) -> Study:
    study = optuna.create_study(direction="maximize", pruner=pruner)
    for curve in curves:
        trial = study.ask()
        for step, value in enumerate(curve):
            trial.report(value, step)
        study.tell(trial, curve[-1])
    return study


def fate(study: Study, curve: list[float]) -> int | None:
    """Return the step at which a trial with this curve is stopped."""
    trial = study.ask()
    for step, value in enumerate(curve):
        trial.report(value, step)
        if trial.should_prune():
            return step
    return None


FALLING = ([1.0, 0.8, 0.6], [0.9, 0.6, 0.4], [0.9, 0.5, 0.2])


def test_a_moment_is_held_against_the_same_moment() -> None:
    study = study_of(*FALLING, pruner=BelowMedian(3))
    assert fate(study, [1.0, 0.7, 0.5]) is None
    assert fate(study, [1.0, 0.7, 0.3]) == 2, "its first moment was the best of all and is past"
    assert fate(study, [0.1, 0.7, 0.5]) == 0


def test_not_before_there_is_something_to_compare_with() -> None:
    assert fate(study_of(*FALLING, pruner=BelowMedian(4)), [0.0, 0.0, 0.0]) is None
    late = study_of(*FALLING, pruner=BelowMedian(3, n_warmup_steps=2))
    assert fate(late, [0.0, 0.0, 0.0]) == 2
    assert not BelowMedian(3).prune(late, late.ask()._get_latest_trial())
