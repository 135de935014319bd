"""RunConfig: routing of fields, defaults, ids, round trips and errors."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from sterad.data import DATASETS, Dataset, Defaults
from sterad.data.synthetic import Synthetic
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.methods import METHODS
from sterad.streams import STREAMS

CHANGES: dict[str, Any] = {
    "method": "vmf-fd",
    "dataset": "synthetic",
    "stream": "blurry",
    "seed": 1,
    "memory": 100,
    "encoder": "mlp",
    "width": 8,
    "anytime": 5,
    "test_then_train": True,
    "variance": 3.0,
    "views": 1,
    "projection": 16,
    "lr": 0.01,
    "optimizer": "sgd",
    "momentum": 0.5,
    "weight_decay": 0.1,
    "memory_batch": 8,
    "memory_iterations": 2,
    "clip": 1.0,
    "beta2": 0.9,
    "teacher": "ema",
    "teacher_momentum": 0.5,
    "teacher_weight": 1.0,
    "teacher_temperature": 2.0,
    "teacher_view_loss": 0.5,
    "teacher_inputs": "both",
    "teacher_start": "copy",
    "predict_with": "teacher",
    "chain_views": 3,
    "chain_weight": 2.0,
    "chain_view_loss": 0.25,
    "chain_temperature": 3.0,
    "chain_operations": 1,
    "chain_magnitude": 11,
    "augmentation": "none",
    "head": "linear",
    "classifier": "nearest-direction",
    "objective": "likelihood",
    "norm_all": True,
    "retrain_head": True,
    "directions": "moving",
    "law": "power-spherical",
    "covariance": "shared",
    "covariance_momentum": 0.9,
    "covariance_shrinkage": 0.2,
    "memory_policy": "greedy-balanced",
    "retrieval": "class-balanced",
    "mir_candidates": 100,
    "head_width": 64,
    "review": True,
    "also_evaluate": ("linear-probe",),
    "stage_weight": 1.0,
    "stage_distillation": 0.5,
    "flatten_weight": 1.0,
    "flatten_radius": 0.1,
    "flatten_noise": 0.1,
    "preparatory_classes": 4,
    "preparatory_images": 2,
    "preparatory_weight": 0.5,
    "raw_view": False,
    "view_size": 6,
    "flip_probability": 0.5,
    "min_crop": 0.2,
    "color_jitter": 0.4,
    "hue_jitter": 0.1,
    "jitter_probability": 0.8,
    "gray_probability": 0.2,
    "padding": 4,
    "noise_std": 0.1,
    "feature_dropout": 0.1,
    "validation": 0.2,
    "frozen": True,
    "train_from": "stages.3",
    "encoder_lr": 0.001,
    "input_mean": (0.5,),
    "input_std": (0.5,),
    "input_size": 16,
    "tasks": 2,
    "batch_size": 5,
    "label_order": (9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
    "imbalance": 10.0,
    "classes": 5,
    "per_class": 20,
    "test_per_class": 10,
    "image_size": 16,
    "image_width": 12,
}
NEEDED = {"image_width": {"image_size": 16}}
"""Other fields that a field needs."""


def test_fields_are_routed_to_method_dataset_and_stream() -> None:
    config = RunConfig.of(
        method="VMF_FD", dataset="synthetic", stream="blurry", classes=4, scale=7, views=1, seed=3
    )
    assert config.method.name == "vmf-fd"
    assert config.method.fields.views == 1
    assert config.dataset.fields.classes == 4
    assert config.stream.fields.scale == 7.0
    assert config.settings.seed == 3


def test_the_default_run() -> None:
    config = RunConfig.of()
    assert (config.method.name, config.dataset.name) == ("agd-fd", "digits")
    assert config == RunConfig.of(method="agd-fd", dataset="digits", stream="clear", seed=0)


@pytest.mark.parametrize(
    ("alias", "name", "value"),
    [
        ("mem_size", "memory", 7),
        ("buffer_size", "memory", 7),
        ("mem-size", "memory", 7),
        ("num_tasks", "tasks", 2),
        ("n-tasks", "tasks", 2),
        ("test-then-train", "test_then_train", True),
        ("batch-size", "batch_size", 3),
    ],
)
def test_aliases_and_hyphens_are_accepted(alias: str, name: str, value: Any) -> None:
    assert RunConfig.of(**{alias: value}) == RunConfig.of(**{name: value})


def test_defaults_come_from_the_dataset() -> None:
    digits = RunConfig.of(stream="blurry")
    assert (digits.stream.fields.tasks, digits.stream.fields.scale) == (5, 43.0)
    assert digits.settings.width == 20
    defaults = Synthetic(classes=6, per_class=50).defaults()
    config = RunConfig.of(dataset="synthetic", stream="blurry", classes=6, per_class=50)
    fields = config.stream.fields
    assert (fields.tasks, fields.scale) == (defaults.tasks, defaults.scale)
    assert config.settings.width == defaults.width


def test_given_values_override_the_defaults() -> None:
    config = RunConfig.of(stream="blurry", tasks=2, scale=9.0, width=3)
    assert (config.stream.fields.tasks, config.stream.fields.scale) == (2, 9.0)
    assert config.settings.width == 3


def test_giving_a_default_value_does_not_change_the_id() -> None:
    assert RunConfig.of(width=20, tasks=5, variance=2).id == RunConfig.of().id


@pytest.mark.parametrize("name", CHANGES)
def test_every_field_changes_the_id(name: str) -> None:
    needed = NEEDED.get(name, {})
    changed, before = RunConfig.of(**needed, **{name: CHANGES[name]}), RunConfig.of(**needed)
    assert changed != before
    assert changed.id != before.id


def test_every_field_is_among_the_changes() -> None:
    config = RunConfig.of()
    names = {"method", "dataset", "stream", *vars(config.settings)}
    for component in (config.method, config.dataset, config.stream):
        names |= set(vars(component.fields))
    assert names - {"weights"} == set(CHANGES), "of weights, a file, the digest is in the id"


def test_added_fields_are_in_the_dict_only_if_they_differ_from_their_default() -> None:
    """So the ids of runs that were recorded before the fields existed stay the same."""
    added = {"law": "power-spherical", "memory_policy": "ring", "retrieval": "mir"}
    config = RunConfig.of(law="angular-gaussian", memory_policy="reservoir", retrieval="random")
    assert config.id == RunConfig.of().id
    assert not added.keys() & config.to_dict()["method"].keys()
    changed = RunConfig.of(**added)
    assert added.items() <= changed.to_dict()["method"].items()
    assert RunConfig.from_dict(changed.to_dict()) == changed
    ids = {RunConfig.of(**{name: value}).id for name, value in added.items()}
    assert len(ids | {config.id, changed.id}) == 5


def test_the_id_starts_with_method_dataset_stream_and_seed() -> None:
    config = RunConfig.of(method="finetune", stream="iid", seed=7)
    assert config.id.startswith("finetune-digits-iid-s7-")
    assert len(config.id.rpartition("-")[2]) == 10


def test_the_id_is_the_same_in_another_process() -> None:
    code = (
        "from sterad.experiments.config import RunConfig; order = list(range(9, -1, -1))\n"
        "print(RunConfig.of(stream='blurry', variance=0.1, label_order=order).id)"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    order = tuple(range(9, -1, -1))
    assert (
        process.stdout.strip() == RunConfig.of(stream="blurry", variance=0.1, label_order=order).id
    )


def assert_round_trip(config: RunConfig) -> None:
    values = json.loads(json.dumps(config.to_dict()))
    assert RunConfig.from_dict(values) == config
    assert RunConfig.from_dict(values).id == config.id
    assert hash(RunConfig.from_dict(values)) == hash(config)


@pytest.mark.parametrize("method", list(METHODS))
def test_the_config_of_every_method_survives_json(method: str) -> None:
    values = {"method": method, "seed": 2, "label_order": [1, 0]}
    values |= {"lr": 0.3} if hasattr(METHODS[method].Config, "lr") else {}
    assert_round_trip(RunConfig.of(dataset="synthetic", classes=2, noise=0.1, **values))


# A stream from a file has a path, and paths are not in the dict.
@pytest.mark.parametrize("stream", [name for name in STREAMS if name != "replay-file"])
def test_the_config_of_every_stream_survives_json(stream: str) -> None:
    assert_round_trip(RunConfig.of(dataset="synthetic", stream=stream))


def test_numpy_numbers_are_accepted() -> None:
    config = RunConfig.of(seed=np.int64(3), variance=np.float32(2), memory=np.int32(9))
    assert config == RunConfig.of(seed=3, variance=2.0, memory=9)
    assert config.id == RunConfig.of(seed=3, variance=2.0, memory=9).id


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"memry": 1}, "unknown field 'memry' in a run of agd-fd on clear digits: did you mean "),
        ({"scale": 3.0}, "unknown field 'scale'"),
        ({"method": "agdfd"}, "unknown method 'agdfd': did you mean 'agd-fd'"),
        ({"method": 3}, "method 3 is of type int: give text$"),
        ({"dataset": "digit"}, "unknown dataset 'digit': did you mean 'digits'"),
        ({"stream": "blury"}, "unknown stream 'blury': did you mean 'blurry'"),
        ({"encoder": "resnet19"}, "unknown encoder 'resnet19': did you mean 'resnet18'"),
        ({"memory": -1}, "memory -1 is out of range: give an integer from 0 to 1,000,000,000$"),
        ({"memory": 2.5}, "memory 2.5 is of type float: give an integer from 0 to 1,000,000,000$"),
        ({"anytime": 0}, "anytime 0 is out of range: give an integer from 1 to 1,000,000$"),
        ({"validation": 0.6}, r"validation 0.6 is out of range: give a number in \[0, 0.5\]$"),
        ({"width": 0}, "width 0 is out of range: give an integer from 1 to 4,096$"),
        ({"lr": 0}, r"lr 0.0 is out of range: give a number in \(0, 1e\+06\]$"),
        ({"momentum": 1}, r"momentum 1.0 is out of range: give a number in \[0, 1\)$"),
        ({"batch_size": 0}, "batch_size 0 is out of range: give an integer from 1 to 100,000$"),
        ({"per_class": 0}, "per_class 0 is out of range: give an integer from 1 to 1,000,000$"),
        ({"seed": -1}, "seed -1 is out of range: give an integer from 0 to 4,294,967,295$"),
        ({"seed": 2**32}, "seed 4294967296 is out of range: give an integer from 0 to "),
        ({"views": "many"}, "views 'many' is of type str: give an integer from 0 to 1,000$"),
        (
            {"optimizer": "lion"},
            "optimizer 'lion' is unknown: choose adam, sgd, .* or adadelta$",
        ),
        ({"test_then_train": "yes"}, "test_then_train 'yes' is of type str: give true or false$"),
    ],
)
def test_invalid_values_raise(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SteradError, match=f"^{message}"):
        RunConfig.of(**values)


@pytest.fixture
def register() -> Iterator[Any]:
    """Return the decorator that registers a dataset; the test's datasets are removed again."""
    before = dict(DATASETS._components)
    yield DATASETS.register
    DATASETS._components.clear()
    DATASETS._components.update(before)


@dataclass(frozen=True)
class UserDataset:
    """The base of the datasets that these tests register."""

    def load(self) -> Dataset:
        return Synthetic().load()

    def defaults(self) -> Defaults:
        return Defaults(width=2, tasks=5, scale=1.0)


def test_a_path_to_the_data_does_not_change_the_id(register: Any) -> None:
    @register("placed")
    @dataclass(frozen=True)
    class Placed(UserDataset):
        root: str = field(default="here", metadata={"place": True})
        size: int = 1

    here, there = RunConfig.of(dataset="placed"), RunConfig.of(dataset="placed", root="there")
    assert there.dataset.fields.root == "there"
    assert here.id == there.id
    assert here.to_dict() == there.to_dict()
    assert RunConfig.of(dataset="placed", size=2).id != here.id


def test_a_field_of_both_method_and_dataset_raises(register: Any) -> None:
    @register("twice")
    @dataclass(frozen=True)
    class Twice(UserDataset):
        views: int = 1

    assert RunConfig.of(dataset="twice").settings.width == 2
    with pytest.raises(SteradError, match="'views' belongs to method and dataset: rename it"):
        RunConfig.of(dataset="twice", views=3)


@pytest.mark.parametrize("reserved", ["name", "method", "dataset", "stream", "digests"])
def test_a_field_with_a_reserved_name_raises(register: Any, reserved: str) -> None:
    namespace = {"__annotations__": {reserved: str}, reserved: "x"}
    register("hiding")(dataclass(frozen=True)(type("Hiding", (UserDataset,), namespace)))
    with pytest.raises(SteradError, match=f"the field {reserved!r} of Hiding .*: rename it"):
        RunConfig.of(dataset="hiding")
