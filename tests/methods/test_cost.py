"""The cost that each method declares equals the images that it passes through its network."""

import pytest

from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS
from sterad.methods.base.learner import FORWARD_COST


def step_cost(method: str, **fields: object) -> float:
    cls = METHODS[method]
    return cls.cost(cls.Config(**fields), batch_size=10, memory=100, samples=1000).step


@pytest.mark.parametrize(
    ("method", "trained", "forward"),
    [
        ("agd-fd", 6 * 74, 0),
        ("vmf-fd", 6 * 74, 0),
        ("scr", 2 * 74, 0),
        ("er", 74, 0),
        ("pfc", 74, 0),
        ("er-ace", 10 + 64, 0),
        ("mkd", 2 * 74, 74),
        ("ccl-dc", 2 * 5 * 74, 0),
        ("derpp", 10 + 64 + 64, 0),
        ("agem", 10 + 64, 0),
        ("dvc", 20 + 128, 2 * 128),
        ("ocm", 2368 + 64, 1024 + 64),
        ("gsa", 2 * (32 + 64), 0),
        ("mose", 4 * (32 + 64), 0),
        ("onpro", 2368 + 64, 0),
        ("gdumb", 0, 0),
    ],
)
def test_step_cost_with_tuned_values(method: str, trained: int, forward: int) -> None:
    fields = tuned_values("cifar100", method)
    assert step_cost(method, **fields) == pytest.approx(trained + FORWARD_COST * forward)


def test_step_cost_of_lump_and_finetune_has_no_memory_batch() -> None:
    assert step_cost("lump") == 20
    assert step_cost("lump", views=3) == 30
    assert step_cost("finetune") == 10
    assert step_cost("finetune", views=3) == 40


def test_step_cost_of_iterations_views_and_a_teacher() -> None:
    assert step_cost("er", memory_iterations=3) == 3 * 74
    assert step_cost("er", views=3) == 4 * 74
    assert step_cost("er", views=0) == 74
    # The student passes a view and the raw images once more, the teacher the view.
    assert step_cost("er", teacher="ema") == pytest.approx(74 + (2 + FORWARD_COST) * 74)
    # Or the student passes the view alone, and the teacher both.
    both = step_cost("er", teacher="ema", teacher_inputs="both")
    assert both == pytest.approx(74 + (1 + 2 * FORWARD_COST) * 74)


def test_step_cost_of_a_chain_of_views() -> None:
    assert step_cost("er", chain_views=3) == (1 + 4) * 74


def test_consolidation_cost() -> None:
    def consolidation(method: str, **fields: object) -> float:
        cls = METHODS[method]
        return cls.cost(cls.Config(**fields), 10, memory=100, samples=1000).consolidation

    assert consolidation("er") == 0
    assert consolidation("scr") == pytest.approx(FORWARD_COST * 100)
    assert consolidation("gdumb", epochs=3) == 300
    assert consolidation("joint", epochs=3) == 3000
    assert consolidation("joint", epochs=3, memory_policy="reservoir") == 300
