from typing import Any

import pytest

from sterad.experiments.config import RunConfig
from sterad.experiments.tuned import tuned_values
from sterad.paper.protocol import differences, essential, expected, raw_protocol

AGD = {"method": "agd-fd", "dataset": "cifar100", "stream": "clear", "memory": 5000}


def config(method: str, **values: Any) -> RunConfig:
    given = {"dataset": "cifar100", "memory": 5000} | values
    return RunConfig.of(**(tuned_values("cifar100", method) | {"method": method} | given))


def told(made: RunConfig, paper: dict[str, Any] = AGD) -> list[str]:
    return [one.text for one in differences(essential(made.to_dict()), expected(paper))]


@pytest.mark.parametrize("method", raw_protocol()["method"])
def test_the_released_values_are_those_of_the_paper(method: str) -> None:
    assert told(config(method), AGD | {"method": method}) == []


@pytest.mark.parametrize(
    ("differs", "said"),
    [
        ({"image_size": 16}, "image size 16 (paper 32)"),
        ({"per_class": 50}, "per class 50 (paper 500)"),
        ({"width": 20}, "width 20 (paper 64)"),
        ({"memory": 500}, "memory 500 (paper 5000)"),
        ({"tasks": 20}, "tasks 20 (paper 10)"),
        ({"views": 3}, "views 3 (paper 5)"),
        ({"lr": 0.001}, "lr 0.001 (paper 0.0005)"),
        ({"variance": 5.0}, "variance 5 (paper 2)"),
        ({"teacher": "ema"}, "teacher ema (paper off)"),
        ({"norm_all": True}, "norm all yes (paper off)"),
        ({"directions": "moving"}, "directions moving (paper off)"),
        ({"validation": 0.1}, "validation 0.1 (paper off)"),
        ({"imbalance": 10.0}, "imbalance 10 (paper off)"),
        ({"batch_size": 20}, "batch size 20 (paper 10)"),
        ({"weight_decay": 0.1}, "weight decay 0.1 (paper off)"),
        ({"encoder": "preact-resnet18"}, "encoder preact-resnet18 (paper resnet18)"),
    ],
)
def test_what_differs_is_told(differs: dict[str, Any], said: str) -> None:
    assert told(config("agd-fd", **differs)) == [said]


@pytest.mark.parametrize(
    "same", [{"image_size": 32}, {"classes": 100, "per_class": 500}, {"seed": 4}, {"anytime": 3}]
)
def test_what_changes_nothing_is_no_difference(same: dict[str, Any]) -> None:
    assert told(config("agd-fd", **same)) == []


def test_another_dataset_or_stream_is_named_and_its_fields_are_not() -> None:
    assert told(RunConfig.of(dataset="digits", memory=5000, width=64)) == [
        "dataset digits (paper cifar100)",
        "tasks 5 (paper 10)",
    ]
    assert told(config("agd-fd", stream="blurry")) == ["stream blurry (paper clear)"]
    assert told(config("agd-fd", stream="blurry", scale=150.0), AGD | {"stream": "blurry"}) == [
        "scale 150 (paper 1500)"
    ]
