"""Runs with an encoder from a user's file: exact resume, and what their ids depend on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sterad import RunConfig, RunRecord, run
from sterad.cli import main
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint
from sterad.experiments.cost import estimate, multiplications
from sterad.experiments.live import live_config
from sterad.experiments.run import prepare
from sterad.methods.base.frozen_encoder import FrozenEncoder
from sterad.results.run_directory import RunDirectory
from sterad.testing.method import same
from tests.experiments.test_resume import InterruptAt, InterruptionError

NET = """
from torch import nn

def backbone(input_shape):
    "Return a network with BatchNorm and dropout."
    layers = nn.Conv2d(input_shape[0], 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())
"""
SMALL = {"dataset": "synthetic", "classes": 4, "per_class": 15, "memory": 10, "memory_batch": 4}


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)


def config(encoder: str = "net.py:backbone", **values: Any) -> RunConfig:
    return RunConfig.of(**(SMALL | {"method": "er", "encoder": encoder} | values))


def start(config: RunConfig, out: Path, *loggers: InterruptAt) -> RunRecord:
    return run(config, out, Execution(threads=1), 1, loggers)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"frozen": True, "augmentation": "none", "test_then_train": True},
        {"frozen": True},
        {"train_from": "0", "encoder_lr": 0.001, "input_mean": (0.5,), "input_size": 12},
        {"method": "agd-fd", "views": 2, "projection": 8, "teacher": "ema"},
    ],
)
def test_a_killed_run_is_resumed_to_the_bit(values: dict[str, Any], tmp_path: Path) -> None:
    chosen = config(**values)
    whole = start(chosen, tmp_path / "whole")
    with pytest.raises(InterruptionError):
        start(chosen, tmp_path / "killed", InterruptAt("checkpoint", 3))
    torch.manual_seed(1234)  # the next process has another global generator
    assert start(chosen, tmp_path / "killed").metrics() == whole.metrics()
    states = [
        load_checkpoint(RunDirectory(tmp_path / name, chosen.id).checkpoint, chosen.id)
        for name in ("whole", "killed")
    ]
    learners = [state["session"]["learner"] for state in states]
    assert same(*learners)


def test_the_id_has_the_code_and_not_the_folder(tmp_path: Path) -> None:
    first = config()
    assert set(dict(first.digests)) == {"encoder code"}
    assert first.to_dict()["encoder"] == "net.py:backbone"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "net.py").write_text(NET)
    moved = config(f"{tmp_path}/other/net.py:backbone")
    assert moved.id == first.id
    assert moved.to_dict(with_paths=True)["encoder"] == f"{tmp_path}/other/net.py:backbone"
    assert RunConfig.from_dict(moved.to_dict(with_paths=True)) == moved
    Path("net.py").write_text(NET.replace("0.2", "0.3"))
    assert config().id != first.id


def test_the_id_has_the_weights_and_not_their_path(tmp_path: Path) -> None:
    def save(name: str, seed: int) -> str:
        torch.manual_seed(seed)
        module = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4))
        torch.save(module.state_dict(), name)
        return name

    first, equal, other = (config(weights=save(f"{n}.pt", n // 2)) for n in range(3))
    assert first.id == equal.id != other.id
    assert "weights" in dict(first.digests)
    assert "weights" not in first.to_dict()
    assert RunConfig.from_dict(first.to_dict(with_paths=True)) == first
    with pytest.raises(SteradError, match=r"the weights 'none.pt' cannot be read"):
        config(weights="none.pt")


def test_weights_are_loaded_before_training() -> None:
    module = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.BatchNorm2d(4))
    torch.save({f"module.{name}": one for name, one in module.state_dict().items()}, "weights.pt")
    chosen = config(weights="weights.pt", frozen=True, augmentation="none")
    learner = prepare(chosen, Execution(threads=1)).learner
    assert isinstance(learner, FrozenEncoder)
    weight = learner.evaluator.network.get_parameter("encoder.module.0.weight")
    assert torch.equal(weight, module.get_parameter("0.weight"))


def test_the_command_line_and_toml(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--encoder", "net.py:backbone", "--frozen", "--augmentation", "none"]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert main(["train", "er", *options, *flags, "--threads", "1", "--out", "runs"]) == 0
    (record,) = Path("runs").glob("*/record.json")
    values = json.loads(record.read_text())["config"]
    assert (values["encoder"], values["frozen"]) == ("net.py:backbone", True)
    Path("run.toml").write_text('encoder = "net.py:backbone"\nfrozen = true\n')
    capsys.readouterr()
    none = ["--augmentation", "none", "--config", "run.toml", "--threads", "1", "--out", "runs"]
    assert main(["train", "er", *options, *none]) == 0
    assert len(list(Path("runs").glob("*"))) == 1, "the same run"


def test_the_cost_of_a_run_is_estimated() -> None:
    convolution = 16 * 4 * 9  # 8 × 8 pixels with stride 2, 4 channels, 3 × 3 weights
    assert multiplications(str(Path("net.py:backbone").resolve()), (1, 8, 8), 2) == convolution
    assert estimate(config(), [])[0] > 0


def test_the_list_says_how_to_bring_your_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "encoders"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "timm:NAME, torchvision:NAME and hf:NAME load pretrained models" in printed
    assert "FILE.py:FUNCTION calls your function" in printed


def test_a_feed_of_vectors_has_an_mlp_only_in_place_of_a_resnet() -> None:
    def encoder_of(**values: Any) -> str:
        feed = iter([(torch.rand(4, 5).numpy(), [0, 1, 2, 3])])
        session = prepare(live_config(method="er", **values), Execution(threads=1), feed)
        return session.learner.problem.encoder

    assert encoder_of() == "mlp"
    assert encoder_of(encoder="flatten") == "flatten"


@pytest.mark.parametrize("name", ["timm:resnet50", "torchvision:resnet18"])
def test_a_library_that_is_missing_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, name.partition(":")[0], None)
    config = RunConfig.of(method="er", dataset="digits", encoder=name)
    with pytest.raises(SteradError, match=f"the encoder '{name}' needs the package"):
        run(config, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
