import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sterad.errors import SteradError
from sterad.experiments.execution import Execution, has_compiler, multiplies_bfloat16


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_nothing_chosen_is_settled_by_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    chosen = Execution.chosen()
    assert (chosen.device, chosen.memory_format) == ("cpu", "channels_last")
    assert chosen.settled((1, 8, 8), 64).threads == 1
    assert chosen.settled((3, 32, 32), 64).threads == len(os.sched_getaffinity(0))
    assert Execution.chosen(threads=3).settled((1, 8, 8), 64).threads == 3


def test_views_side_by_side_take_all_threads_of_a_processor() -> None:
    cores = len(os.sched_getaffinity(0))
    assert Execution().settled((1, 8, 8), 64).view_threads == cores
    assert Execution(threads=3).settled((3, 32, 32), 64).view_threads == 3
    assert Execution(threads=3, view_threads=1).settled((3, 32, 32), 64).view_threads == 1
    assert Execution(device="cuda").settled((3, 32, 32), 64).view_threads == 1


@pytest.mark.parametrize(
    ("units", "shape", "precision"),
    [
        (True, (3, 32, 32), "bfloat16"),
        (False, (3, 32, 32), "float32"),
        (True, (1, 8, 8), "float32"),
        (True, (3, 16, 16), "float32"),
        (True, (512,), "float32"),
    ],
)
def test_a_processor_with_units_for_it_computes_large_images_in_bfloat16(
    monkeypatch: pytest.MonkeyPatch, units: bool, shape: tuple[int, ...], precision: str
) -> None:
    monkeypatch.setattr("sterad.experiments.execution.multiplies_bfloat16", lambda: units)
    assert Execution.chosen("cpu").settled(shape, 64).precision == precision
    assert Execution.chosen("cpu", precision="float32").settled(shape, 64).precision == "float32"


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="no list of what processors have")
def test_units_for_bfloat16_are_those_that_the_kernel_lists() -> None:
    listed = set(Path("/proc/cpuinfo").read_text().split())
    assert multiplies_bfloat16() == bool(listed & {"avx512_bf16", "amx_tile"})


@pytest.mark.parametrize(
    ("side", "width", "steps", "precision", "compiled"),
    [
        (32, 20, 10_000, "bfloat16", True),
        (32, 20, 5_000, "bfloat16", False),  # would hardly earn what it takes
        (64, 20, 5_000, "bfloat16", True),
        (64, 20, None, "bfloat16", False),  # may end any time
        (32, 20, 10_000, "float32", False),
        (32, 16, 10_000, "bfloat16", False),
        (32, 64, 10_000, "bfloat16", False),
    ],
)
def test_a_processor_compiles_where_a_run_saves_more_than_that_takes(
    side: int, width: int, steps: int | None, precision: str, compiled: bool
) -> None:
    execution = Execution(precision=precision)
    assert execution.settled((3, side, side), width, steps).compile == (compiled and has_compiler())


def test_without_a_compiler_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not Execution(precision="bfloat16").settled((3, 32, 32), 20, 10_000).compile


def test_a_graphics_card_compiles_long_runs() -> None:
    chosen = [
        Execution("cuda", precision="bfloat16").settled((3, 32, 32), 64, n) for n in (99, None)
    ]
    assert [one.compile for one in chosen] == [False, True]


def test_the_users_word_stands_above() -> None:
    assert Execution.chosen("cpu", 3) == Execution(device="cpu", threads=3)
    said = Execution("cpu", 3, 2, "contiguous", "bfloat16", True, False)
    assert Execution.chosen("cpu", 3, "bfloat16", True, 2, "contiguous", False) == said
    assert said.settled((3, 32, 32), 64) == said


@pytest.mark.parametrize("device", ["warp", "cuda:99", "cpux"])
def test_a_device_that_is_not_here_is_named(device: str) -> None:
    with pytest.raises(SteradError, match=f"device {device!r} is not to be had here .*: use cpu"):
        Execution.chosen(device)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads_are_refused(threads: int) -> None:
    with pytest.raises(SteradError, match=f"threads {threads} is below 1: give the number"):
        Execution.chosen("cpu", threads)


def test_unknown_names_are_told_with_the_known() -> None:
    with pytest.raises(SteradError, match="unknown precision 'int8': known are float32, bfloat16"):
        Execution.chosen("cpu", precision="int8")
    with pytest.raises(SteradError, match="unknown memory_format 'last': known are channels_last"):
        Execution.chosen("cpu", memory_format="last")


@pytest.mark.usefixtures("_threads")
def test_apply_sets_the_threads_of_torch() -> None:
    Execution(threads=2).apply()
    assert torch.get_num_threads() == 2
    Execution(threads=1).apply()
    assert torch.get_num_threads() == 1


def test_it_is_plain_and_frozen() -> None:
    execution: Any = Execution(threads=1)
    with pytest.raises(AttributeError):
        execution.threads = 5
    settled = execution.settled((1, 8, 8), 64)
    assert {type(value) for value in vars(settled).values()} == {str, int, bool}
