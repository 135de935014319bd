"""A saved state is checked against the object that it is loaded into, tensor by tensor."""

import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from sterad import METHODS, OnlineClassifier
from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint, save_checkpoint
from sterad.saved_state import check_count, check_labels, check_like

X = np.random.default_rng(0).random((40, 1, 8, 8))
Y = np.arange(40) // 10
FIELDS: dict[str, dict[str, Any]] = {
    "gdumb": {"epochs": 1},
    "joint": {"epochs": 1},
    "randumb": {"projection": 20},
}
CAN_LEARN = sorted(set(METHODS) - {"pfc"})  # pfc needs the number of classes


def tensor_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, Tensor):
        yield path
    elif isinstance(value, dict | list | tuple):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensor_paths(one, (*path, key))


def tensor_at(state: Any, path: tuple[Any, ...]) -> Tensor:
    value = state["learner"]
    for key in path:
        value = value[key]
    assert isinstance(value, Tensor)
    return value


def replace_at(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    """Return a copy of nested containers with one tensor changed."""
    if not path:
        return change(value)
    copy = list(value) if isinstance(value, list | tuple) else dict(value)
    copy[path[0]] = replace_at(copy[path[0]], path[1:], change)
    return copy


@pytest.mark.parametrize("method", CAN_LEARN)
def test_a_tensor_of_another_shape_or_dtype_is_refused(method: str, tmp_path: Path) -> None:
    file = tmp_path / "feed.sterad"
    fields = FIELDS.get(method, {})
    classifier = OnlineClassifier(method, 20, width=4, encoder="mlp", **fields)
    classifier.partial_fit(X, Y).save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    learner = classifier._state().recipe.build()
    learner.load_state_dict(state["learner"])
    changes = {
        "longer": lambda t: torch.cat([t.reshape(-1), t.reshape(-1)[:1]]),
        "one more dimension": lambda t: t[None],
        "another dtype": lambda t: t.to(torch.float16 if t.dtype != torch.float16 else torch.int8),
    }
    paths = [path for path in tensor_paths(state["learner"]) if tensor_at(state, path).numel()]
    assert len(paths) > 3
    for path in paths:
        for change in changes.values():
            with pytest.raises(ValueError, match=r"is|not|must"):  # no TypeError of torch
                learner.load_state_dict(replace_at(state["learner"], path, change))


def test_moments_of_another_size_are_refused_before_they_are_used(tmp_path: Path) -> None:
    file = tmp_path / "feed.sterad"
    OnlineClassifier("agd-fd", 20, width=4).partial_fit(X, Y).save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    for moment in state["learner"]["optimizer"]["state"].values():
        moment["exp_avg"] = moment["exp_avg_sq"] = torch.zeros(1)
    save_checkpoint(file, "OnlineClassifier", state)
    with pytest.raises(SteradError, match=r"optimizer\.\d+\.exp_avg is float32 \(1,\) and must be"):
        OnlineClassifier.load(file)


@pytest.mark.parametrize(
    ("method", "claims"),
    [
        ("er", {"width": 4096}),
        ("er", {"encoder": "mlp", "width": 4096}),
        ("slda", {"encoder": "resnet18", "width": 4096}),
    ],
)
def test_an_impossible_encoder_is_refused_before_memory_is_taken(
    method: str, claims: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "feed.sterad"
    OnlineClassifier(method, 20, width=2).partial_fit(X, Y).save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    state["params"] |= claims
    save_checkpoint(file, "OnlineClassifier", state)
    with pytest.raises(SteradError, match=r"its encoder needs [\d,]+ weights, more than"):
        OnlineClassifier.load(file)


@pytest.mark.parametrize("number", [-1, 0, 99])
def test_weights_of_the_optimizer_that_are_mixed_up_are_refused(
    number: int, tmp_path: Path
) -> None:
    file = tmp_path / "feed.sterad"
    OnlineClassifier("er", 20, width=4).partial_fit(X, Y).save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    state["learner"]["optimizer"]["param_groups"][0]["params"][1] = number
    save_checkpoint(file, "OnlineClassifier", state)
    with pytest.raises(SteradError, match="numbers of the weights in the optimizer are mixed up"):
        OnlineClassifier.load(file)


def test_a_file_does_not_choose_the_code_that_load_runs(tmp_path: Path) -> None:
    file, code, trace = (tmp_path / name for name in ("feed.sterad", "mine.py", "trace"))
    code.write_text(
        "from pathlib import Path\nfrom torch import nn\n"
        f"Path({str(trace)!r}).touch()\n"
        "def mine():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 5))\n"
    )
    encoder = f"{code}:mine"
    classifier = OnlineClassifier("er", 20, encoder=encoder).partial_fit(X, Y)
    classifier.save(file)
    trace.unlink()
    sys.modules.pop(next(name for name in sys.modules if "plugin_mine" in name))
    with pytest.raises(SteradError, match=r"a Python file that load would run: .* give it again"):
        OnlineClassifier.load(file)
    assert not trace.exists()
    loaded = OnlineClassifier.load(file, encoder=encoder)
    assert trace.exists()
    assert np.array_equal(loaded.predict_proba(X), classifier.predict_proba(X))


def test_every_flipped_bit_of_a_saved_classifier_is_noticed(tmp_path: Path) -> None:
    file, rng = tmp_path / "feed.sterad", np.random.default_rng(1)
    OnlineClassifier("er", 20, width=4).partial_fit(X, Y).save(file)
    content = file.read_bytes()
    for position in rng.integers(8 * len(content), size=200).tolist():
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        file.write_bytes(damaged)
        with pytest.raises(SteradError, match="does not match its SHA-256"):
            OnlineClassifier.load(file)


def test_impossible_outputs_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "feed.sterad"
    OnlineClassifier("er", 20, width=4).partial_fit(X, Y).save(file)
    state = load_checkpoint(file, "OnlineClassifier")
    state["learner"]["outputs"] = 10**12
    save_checkpoint(file, "OnlineClassifier", state)
    with pytest.raises(SteradError, match="no weights have 1000000000000 outputs"):
        OnlineClassifier.load(file)


def test_check_like_compares_keys_lengths_and_types() -> None:
    like = {"a": [torch.zeros(2, 3), 1.0], "b": None}
    check_like(deepcopy(like), like, "state")
    check_like({"a": (torch.ones(2, 3), 2), "b": None}, like, "state")
    wrong: list[tuple[Any, str]] = [
        ({"a": like["a"]}, "state lacks or should not have b"),
        ({**like, "c": 1}, "state lacks or should not have c"),
        ({**like, "a": [torch.zeros(2, 3)]}, "state.a has 1 entries and must have 2"),
        ({**like, "a": [torch.zeros(3, 2), 1.0]}, r"state.a.0 is float32 \(3, 2\)"),
        ({**like, "b": 1}, "state.b is a number and must be NoneType"),
        ([], "state is list and must be dict"),
    ]
    for value, message in wrong:
        with pytest.raises(ValueError, match=message):
            check_like(value, like, "state")


def test_labels_and_counts() -> None:
    check_labels(torch.tensor([0, 3, 7]), "seen")
    check_count(0, "step")
    for labels in (torch.tensor([1, 1]), torch.tensor([-1]), torch.tensor([0.0]), [0], None):
        with pytest.raises(ValueError, match="seen"):
            check_labels(labels, "seen")
    for count in (-1, 1.0, True, None, "1"):
        with pytest.raises(ValueError, match=r"step is .+ and must be an integer from 0"):
            check_count(count, "step")
