from typing import Any

import pytest

from sterad.experiments.config import RunConfig
from sterad.experiments.tuned import tuned_values
from sterad_reproduction.protocol import (
    find_differences,
    load_protocol,
    paper_settings,
    relevant_settings,
)

AGD = {"method": "agd-fd", "dataset": "cifar100", "stream": "clear", "memory": 5000}


def make_config(method: str, **values: Any) -> RunConfig:
    given = {"dataset": "cifar100", "memory": 5000} | values
    return RunConfig.of(**(tuned_values("cifar100-released", method) | {"method": method} | given))


def difference_texts(config: RunConfig, paper: dict[str, Any] = AGD) -> list[str]:
    ours = relevant_settings(config.to_dict())
    return [difference.text for difference in find_differences(ours, paper_settings(paper))]


@pytest.mark.parametrize("method", load_protocol()["method"])
def test_tuned_values_are_those_of_the_paper(method: str) -> None:
    assert difference_texts(make_config(method), AGD | {"method": method}) == []


@pytest.mark.parametrize(
    ("values", "text"),
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
def test_a_difference_is_described(values: dict[str, Any], text: str) -> None:
    assert difference_texts(make_config("agd-fd", **values)) == [text]


@pytest.mark.parametrize(
    "values", [{"image_size": 32}, {"classes": 100, "per_class": 500}, {"seed": 4}, {"anytime": 3}]
)
def test_equivalent_settings_are_no_difference(values: dict[str, Any]) -> None:
    assert difference_texts(make_config("agd-fd", **values)) == []


def test_another_dataset_or_stream_is_named_without_its_fields() -> None:
    assert difference_texts(RunConfig.of(dataset="digits", memory=5000, width=64)) == [
        "dataset digits (paper cifar100)",
        "tasks 5 (paper 10)",
    ]
    assert difference_texts(make_config("agd-fd", stream="blurry")) == [
        "stream blurry (paper clear)"
    ]
    assert difference_texts(
        make_config("agd-fd", stream="blurry", scale=150.0), AGD | {"stream": "blurry"}
    ) == ["scale 150 (paper 1500)"]
