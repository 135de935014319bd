"""Augmentations of a method: fields by name, functions of the user, and noise for vectors."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.encoders import MLP
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.methods import METHODS
from sterad.testing.method import same
from sterad.views import Full, NoAugmentation, Noise, Partial, Transform
from tests.methods.scaffold import assert_resumes, build, open_stream, random_images, train


def test_fields_reach_the_augmentation() -> None:
    fields: dict[str, Any] = {"min_crop": 0.5, "color_jitter": 0.1, "hue_jitter": 0.2}
    fields |= {"jitter_probability": 0.3, "gray_probability": 0.0}
    assert build("er", **fields).augmentation == Full(flip=False, **fields)
    assert build("er", augmentation="partial", padding=1).augmentation == Partial(False, padding=1)
    noise = build("er", augmentation="noise", noise_std=0.5, feature_dropout=0.0)
    assert noise.augmentation == Noise(flip=False, noise_std=0.5, feature_dropout=0.0)
    flipped = build("er", flip_probability=0.25)
    assert flipped.augmentation == Full(flip=True, flip_probability=0.25)
    problem = {"flip": True}
    assert build("er", problem=problem).augmentation == Full(flip=True)
    assert build("er", problem=problem, flip_probability=0.0).augmentation.flip is False


def test_fields_of_another_augmentation_or_out_of_range_raise() -> None:
    with pytest.raises(SteradError, match="'partial' has no field 'min_crop'"):
        build("er", augmentation="partial", min_crop=0.5)
    with pytest.raises(SteradError, match="min_crop"):
        build("er", min_crop=0.0)
    with pytest.raises(SteradError, match="feature_dropout"):
        Noise(feature_dropout=1.0)


def test_new_fields_change_the_id_only_when_they_are_given() -> None:
    plain = RunConfig.of(method="er")
    names = {"min_crop", "padding", "noise_std", "retrieval", "mir_candidates"}
    assert not names & set(plain.to_dict()["method"])
    assert RunConfig.of(method="er", retrieval="random").id == plain.id
    for given in ({"min_crop": 0.2}, {"retrieval": "mir"}, {"optimizer": "adamw"}):
        assert RunConfig.of(method="er", **given).id != plain.id


def brighter(x: Tensor) -> Tensor:
    """Scale each batch by a random factor, in place."""
    return x.mul_(torch.rand(1)).clamp_(0, 1)


def test_a_function_is_used_with_the_seed_of_the_run() -> None:
    learner, again, other = (
        build("er", problem={"seed": seed}, parts={"augmentation": brighter}) for seed in (3, 3, 4)
    )
    x = random_images(4)
    original, state = x.clone(), torch.get_rng_state()
    views = [one.view(x) for one in (learner, again, other)]
    assert torch.equal(views[0], views[1])
    assert not torch.equal(views[0], views[2])
    assert not torch.equal(learner.view(x), views[0]), "each view draws anew"
    assert torch.equal(x, original)
    assert torch.equal(torch.get_rng_state(), state)
    stream = open_stream()
    train(learner, stream, 3)
    fresh = build("er", parts={"augmentation": brighter})
    assert_resumes(learner, fresh, stream.batch(3))


@pytest.mark.parametrize("method", ["agd-fd", "scr", "lump", "dvc"])
def test_a_function_works_with_methods_of_several_views(method: str) -> None:
    learner = build(method, parts={"augmentation": brighter}, memory_batch=4)
    train(learner, open_stream(), 2)
    assert learner.images > 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, :, 1:], r"<lambda> made torch.float32 of shape \(4, 1, 7, 8\) from"),
        (lambda x: x.double(), r"made torch.float64 of shape .*keep the shape and the dtype"),
        (lambda x: x / 0 - x / 0, "returned NaN or infinite values"),
        (lambda x: x.tolist(), "returned list: return a tensor"),
    ],
)
def test_wrong_functions_raise_at_the_first_call(function: Any, message: str) -> None:
    learner = build("er", parts={"augmentation": function})
    with pytest.raises(SteradError, match=message):
        learner.view(random_images(4))


def test_objects_and_classes_are_taken() -> None:
    assert build("er", parts={"augmentation": Partial(padding=2)}).augmentation.padding == 2  # type: ignore[attr-defined]
    assert build("er", parts={"augmentation": NoAugmentation}).augmentation == NoAugmentation(False)
    assert isinstance(build("er", parts={"augmentation": torch.clone}).augmentation, Transform)
    with pytest.raises(SteradError, match="the augmentation is int: give an Augmentation"):
        build("er", parts={"augmentation": 5})
    with pytest.raises(SteradError, match="the classifier str does not define fit and scores"):
        build("er", parts={"classifier": "head"})
    with pytest.raises(SteradError, match="the retrieval is str: give an object"):
        build("er", parts={"retrieval": "mir"})
    with pytest.raises(SteradError, match="the memory int does not define __len__, update"):
        build("er", parts={"memory": 5000})


def test_noise_changes_vectors_as_declared() -> None:
    x, rng = torch.full((200, 500), 3.0), torch.Generator().manual_seed(0)
    view = Noise(noise_std=0.2, feature_dropout=0.25)(x, rng)
    kept = view[view != 0]
    assert 1 - len(kept) / x.numel() == pytest.approx(0.25, abs=0.01)
    assert float(view.mean()) == pytest.approx(3.0, abs=0.02)
    assert float(kept.std()) == pytest.approx(0.2 / 0.75, rel=0.02)
    assert torch.equal(Noise(noise_std=0.0, feature_dropout=0.0)(x, rng), x)


def test_vectors_are_augmented_only_by_noise_or_a_function() -> None:
    parts = {"encoder": lambda: MLP((5,), 4)}
    problem = {"input_shape": (5,)}
    x = random_images(6, shape=(5,))
    full = build("er", problem=problem, parts=parts)
    assert full.views_of(x)[0] is x
    noise, again = (
        build("er", problem=problem, parts=parts, augmentation="noise") for _ in range(2)
    )
    views = [noise.views_of(x), again.views_of(x)]
    assert same(*views)
    assert not torch.equal(views[0][0], x)


def test_every_optimizer_and_augmentation_field_is_an_option_of_every_replay_method() -> None:
    for method in METHODS:
        config = METHODS[method].Config
        if "augmentation" in config.__dataclass_fields__:
            assert config.__dataclass_fields__["min_crop"].metadata["omit_default_from_id"]
