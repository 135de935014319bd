"""Execution: defaults, limits and how open choices are resolved; cores and cgroup quotas."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sterad.engine.execution import (
    Execution,
    Precision,
    has_compiler,
)
from sterad.errors import SteradError
from sterad.threads import cgroup_quota, cores, default_threads
from sterad.torch_private import has_bfloat16_units


@pytest.fixture
def _restore_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the process has four cores and that OMP_NUM_THREADS is not set."""
    for module in ("threads", "engine.execution"):
        monkeypatch.setattr(f"sterad.{module}.cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.usefixtures("_four_cores")
def test_default_threads_depend_on_the_image_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    chosen = Execution.from_options()
    assert (chosen.device, chosen.memory_format) == ("cpu", "channels_last")
    assert chosen.resolve((1, 8, 8), 64).threads == 1
    assert chosen.resolve((3, 32, 32), 64).threads == 4
    assert Execution.from_options(threads=3).resolve((1, 8, 8), 64).threads == 3


@pytest.mark.usefixtures("_four_cores")
def test_view_threads_are_all_threads_on_the_cpu_and_one_on_cuda() -> None:
    assert Execution().resolve((1, 8, 8), 64).view_threads == 4
    assert Execution(threads=3).resolve((3, 32, 32), 64).view_threads == 3
    assert Execution(threads=3, view_threads=1).resolve((3, 32, 32), 64).view_threads == 1
    assert Execution(device="cuda").resolve((3, 32, 32), 64).view_threads == 1


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
def test_large_images_use_bfloat16_on_a_cpu_with_bfloat16_units(
    monkeypatch: pytest.MonkeyPatch, units: bool, shape: tuple[int, ...], precision: str
) -> None:
    monkeypatch.setattr("sterad.engine.execution.has_bfloat16_units", lambda: units)
    assert Execution.from_options(device="cpu").resolve(shape, 64).precision == precision
    chosen = Execution.from_options(device="cpu", precision="float32")
    assert chosen.resolve(shape, 64).precision == "float32"


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="/proc/cpuinfo does not exist")
def test_bfloat16_units_are_those_in_proc_cpuinfo() -> None:
    listed = set(Path("/proc/cpuinfo").read_text().split())
    assert has_bfloat16_units() == bool(listed & {"avx512_bf16", "amx_tile"})


@pytest.mark.parametrize(
    ("side", "width", "steps", "precision", "compiled"),
    [
        (32, 20, 10_000, "bfloat16", True),
        (32, 20, 5_000, "bfloat16", False),  # compilation takes longer than it saves
        (64, 20, 5_000, "bfloat16", True),
        (64, 20, None, "bfloat16", False),  # the length is unknown
        (32, 20, 10_000, "float32", False),
        (32, 16, 10_000, "bfloat16", False),
        (32, 64, 10_000, "bfloat16", False),
    ],
)
def test_the_cpu_compiles_if_that_saves_more_time_than_it_takes(
    side: int, width: int, steps: int | None, precision: Precision, compiled: bool
) -> None:
    execution = Execution(precision=precision)
    assert execution.resolve((3, side, side), width, steps).compile == (compiled and has_compiler())


def test_nothing_is_compiled_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not Execution(precision="bfloat16").resolve((3, 32, 32), 20, 10_000).compile


def test_cuda_compiles_long_runs() -> None:
    execution = Execution("cuda", precision="bfloat16")
    resolved = [execution.resolve((3, 32, 32), 64, steps) for steps in (99, None)]
    assert [execution.compile for execution in resolved] == [False, True]


@pytest.mark.usefixtures("_four_cores")
def test_given_values_override_the_defaults() -> None:
    assert Execution.from_options(device="cpu", threads=3) == Execution("cpu", 3)
    given = Execution("cpu", 3, "bfloat16", 2, "contiguous", True, False)
    assert Execution.from_options(**vars(given)) == given
    assert given.resolve((3, 32, 32), 64) == given


@pytest.mark.parametrize("device", ["warp", "cuda:99", "cpux"])
def test_an_unavailable_device_raises(device: str) -> None:
    with pytest.raises(SteradError, match=f"^device {device!r} is not available here .*: use cpu$"):
        Execution.from_options(device=device)


@pytest.mark.parametrize("threads", [0, -1])
def test_fewer_threads_than_one_raise(threads: int) -> None:
    message = f"{threads} is out of range: give an integer from 1 to 4,096$"
    for name in ("threads", "view_threads"):
        with pytest.raises(SteradError, match=f"^{name} {message}"):
            Execution.from_options(device="cpu", **{name: threads})


@pytest.mark.parametrize("name", ["threads", "view_threads"])
def test_more_threads_than_cores_raise(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    limit = cores()
    fields: dict[str, Any] = {name: limit + 1}
    rule = f"is more than the {limit} cores that this process may use: give 1 to {limit}"
    with pytest.raises(SteradError, match=f"^{name} {limit + 1} {rule}$"):
        Execution.from_options(device="cpu", **fields)
    with pytest.raises(SteradError, match=f"^{name} {limit + 1} {rule}$"):
        Execution(**fields).check_cores()
    assert vars(Execution.from_options(device="cpu", **{name: limit}))[name] == limit
    monkeypatch.setattr("sterad.engine.execution.cores", lambda: limit + 1)
    assert vars(Execution.from_options(device="cpu", **fields))[name] == limit + 1


def test_unknown_names_raise_with_the_known_ones() -> None:
    message = "^precision 'int8' is unknown: choose float32, bfloat16 or float16$"
    with pytest.raises(SteradError, match=message):
        Execution.from_options(device="cpu", precision="int8")
    message = "^memory_format 'last' is unknown: choose channels_last or contiguous$"
    with pytest.raises(SteradError, match=message):
        Execution.from_options(device="cpu", memory_format="last")
    with pytest.raises(SteradError, match="unknown field 'thread' in Execution: did you mean"):
        Execution.from_options(thread=1)


@pytest.mark.parametrize(
    ("variable", "threads"),
    [
        ("1", 1),
        ("3", 3),
        ("2,1", 2),  # the first value is for the outermost parallel region
        ("99", 4),
        ("", 4),
        ("0", 4),
        ("-1", 4),
        ("many", 4),
        ("1.5", 4),
    ],
)
@pytest.mark.usefixtures("_four_cores")
def test_default_threads_come_from_omp_num_threads_or_the_cores(
    monkeypatch: pytest.MonkeyPatch, variable: str, threads: int
) -> None:
    assert default_threads() == 4
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert default_threads() == threads
    assert Execution().resolve((3, 32, 32), 64).threads == threads
    assert Execution(threads=4).resolve((3, 32, 32), 64).threads == 4


def test_cores_are_limited_by_affinity_and_cgroup_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    for quota, count in ((math.inf, 6), (9.0, 6), (1.5, 2), (3.0, 3), (0.1, 1)):
        monkeypatch.setattr("sterad.threads.cgroup_quota", lambda *_, q=quota: q)
        assert cores() == count


def test_cores_of_this_process_are_at_most_its_affinity() -> None:
    assert 1 <= cores() <= len(os.sched_getaffinity(0))


def write_files(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"a/b/cpu.max": "50000 100000\n"}, 0.5),
        ({"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "max 100000\n"}, 2.0),
        ({"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "800000 100000\n"}, 2.0),
        ({"a/cpu.max": "800000 100000\n", "a/b/cpu.max": "200000 50000\n"}, 4.0),
        ({"other/cpu.max": "50000 100000\n"}, math.inf),
        ({}, math.inf),
        ({"cpu.max": "plenty"}, math.inf),
        ({"cpu.max": "a b c"}, math.inf),
        ({"cpu.max": "100000 0"}, math.inf),
        ({"cpu.max": ""}, math.inf),
        ({"cpu.max": "no 100000", "a/cpu.max": "300000 100000"}, 3.0),
    ],
)
def test_quota_of_cgroups_v2(tmp_path: Path, files: dict[str, str], quota: float) -> None:
    assert cgroup_quota(write_files(tmp_path, files), "0::/a/b\n") == quota


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu/a/cpu.cfs_quota_us": "250000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 2.5),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1.0),
        ({"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({"cpu/a/cpu.cfs_quota_us": "250000\n"}, math.inf),
        ({"cpu/a/cpu.cfs_quota_us": "?", "cpu/a/cpu.cfs_period_us": "100000"}, math.inf),
        ({"memory/a/cpu.cfs_quota_us": "1\n", "memory/a/cpu.cfs_period_us": "1\n"}, math.inf),
        ({}, math.inf),
    ],
)
def test_quota_of_cgroups_v1(tmp_path: Path, files: dict[str, str], quota: float) -> None:
    member = "7:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/a\n"
    assert cgroup_quota(write_files(tmp_path, files), member) == quota


def test_a_process_outside_of_cgroups_has_no_quota(tmp_path: Path) -> None:
    assert cgroup_quota(write_files(tmp_path, {"cpu.max": "1 1"}), "") == math.inf
    assert cgroup_quota(tmp_path, "7:memory:/\n") == math.inf
    assert cgroup_quota(tmp_path, "0::/\n") == 1


@pytest.mark.usefixtures("_restore_threads")
def test_apply_sets_the_threads_of_torch() -> None:
    Execution(threads=2).apply()
    assert torch.get_num_threads() == 2
    Execution(threads=1).apply()
    assert torch.get_num_threads() == 1


def test_an_execution_is_frozen_and_holds_plain_values() -> None:
    execution: Any = Execution(threads=1)
    with pytest.raises(AttributeError):
        execution.threads = 5
    resolved = execution.resolve((1, 8, 8), 64)
    assert {type(value) for value in vars(resolved).values()} == {str, int, bool}
