import pytest

from sterad.experiments.pushed import FORWARD, images_per_step
from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS


@pytest.mark.parametrize(
    ("method", "back", "forward"),
    [
        ("agd-fd", 6 * 74, 0),
        ("vmf-fd", 6 * 74, 0),
        ("scr", 2 * 74, 0),
        ("er", 74, 0),
        ("pfc", 74, 0),
        ("er-ace", 10 + 64, 0),
        ("derpp", 10 + 64 + 64, 0),
        ("agem", 10 + 64, 0),
        ("dvc", 20 + 128, 2 * 128),
        ("ocm", 2368 + 64, 1024 + 64),
        ("gdumb", 0, 0),
    ],
)
def test_the_table_of_costs(method: str, back: int, forward: int) -> None:
    fields = METHODS[method].Config(**tuned_values("cifar100", method))
    assert images_per_step(method, fields, 10) == pytest.approx(back + FORWARD * forward)


def test_lump_and_finetune_have_no_memory_batch_to_push() -> None:
    assert images_per_step("lump", METHODS["lump"].Config(), 10) == 20
    assert images_per_step("lump", METHODS["lump"].Config(views=3), 10) == 30
    assert images_per_step("finetune", METHODS["finetune"].Config(), 10) == 10
    assert images_per_step("finetune", METHODS["finetune"].Config(views=3), 10) == 40


def test_iterations_views_and_a_teacher_cost() -> None:
    config = METHODS["er"].Config
    assert images_per_step("er", config(memory_iterations=3), 10) == 3 * 74
    assert images_per_step("er", config(views=3), 10) == 4 * 74
    assert images_per_step("er", config(views=0), 10) == 74
    taught = 74 + (2 + FORWARD) * 74  # the student sees a view and the images, its teacher the view
    assert images_per_step("er", config(teacher="ema"), 10) == pytest.approx(taught)
