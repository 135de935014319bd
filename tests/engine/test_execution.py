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
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process have four cores and nobody's word about threads."""
    for module in ("threads", "engine.execution"):
        monkeypatch.setattr(f"sterad.{module}.cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.usefixtures("_four_cores")
def test_nothing_chosen_is_settled_by_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    chosen = Execution.chosen()
    assert (chosen.device, chosen.memory_format) == ("cpu", "channels_last")
    assert chosen.settled((1, 8, 8), 64).threads == 1
    assert chosen.settled((3, 32, 32), 64).threads == 4
    assert Execution.chosen(threads=3).settled((1, 8, 8), 64).threads == 3


@pytest.mark.usefixtures("_four_cores")
def test_views_side_by_side_take_all_threads_of_a_processor() -> None:
    assert Execution().settled((1, 8, 8), 64).view_threads == 4
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
    monkeypatch.setattr("sterad.engine.execution.has_bfloat16_units", lambda: units)
    assert Execution.chosen(device="cpu").settled(shape, 64).precision == precision
    chosen = Execution.chosen(device="cpu", precision="float32")
    assert chosen.settled(shape, 64).precision == "float32"


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="no list of what processors have")
def test_units_for_bfloat16_are_those_that_the_kernel_lists() -> None:
    listed = set(Path("/proc/cpuinfo").read_text().split())
    assert has_bfloat16_units() == bool(listed & {"avx512_bf16", "amx_tile"})


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
    side: int, width: int, steps: int | None, precision: Precision, compiled: bool
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


@pytest.mark.usefixtures("_four_cores")
def test_the_users_word_stands_above() -> None:
    assert Execution.chosen(device="cpu", threads=3) == Execution("cpu", 3)
    said = Execution("cpu", 3, "bfloat16", 2, "contiguous", True, False)
    assert Execution.chosen(**vars(said)) == said
    assert said.settled((3, 32, 32), 64) == said


@pytest.mark.parametrize("device", ["warp", "cuda:99", "cpux"])
def test_a_device_that_is_not_here_is_named(device: str) -> None:
    with pytest.raises(SteradError, match=f"^device {device!r} is not available here .*: use cpu$"):
        Execution.chosen(device=device)


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads_are_refused(threads: int) -> None:
    told = f"{threads} is out of range: give an integer from 1 to 4,096$"
    for name in ("threads", "view_threads"):
        with pytest.raises(SteradError, match=f"^{name} {told}"):
            Execution.chosen(device="cpu", **{name: threads})


@pytest.mark.parametrize("name", ["threads", "view_threads"])
def test_more_threads_than_cores_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    more = cores() + 1
    given: dict[str, Any] = {name: more}
    told = f"{name} {more} is more than the {more - 1} cores that this process may use: give 1 to "
    with pytest.raises(SteradError, match=f"^{told}{more - 1}$"):
        Execution.chosen(device="cpu", **given)
    with pytest.raises(SteradError, match=f"^{told}{more - 1}$"):
        Execution(**given).check_cores()
    assert vars(Execution.chosen(device="cpu", **{name: more - 1}))[name] == more - 1
    monkeypatch.setattr("sterad.engine.execution.cores", lambda: more)
    assert vars(Execution.chosen(device="cpu", **given))[name] == more


def test_unknown_names_are_told_with_the_known() -> None:
    told = "^precision 'int8' is unknown: choose float32, bfloat16 or float16$"
    with pytest.raises(SteradError, match=told):
        Execution.chosen(device="cpu", precision="int8")
    told = "^memory_format 'last' is unknown: choose channels_last or contiguous$"
    with pytest.raises(SteradError, match=told):
        Execution.chosen(device="cpu", memory_format="last")
    with pytest.raises(SteradError, match="unknown field 'thread' in Execution: did you mean"):
        Execution.chosen(thread=1)


@pytest.mark.parametrize(
    ("said", "threads"),
    [
        ("1", 1),
        ("3", 3),
        ("2,1", 2),  # of nested regions, the outermost counts
        ("99", 4),
        ("", 4),
        ("0", 4),
        ("-1", 4),
        ("many", 4),
        ("1.5", 4),
    ],
)
@pytest.mark.usefixtures("_four_cores")
def test_the_default_threads_are_those_of_the_environment_or_the_cores(
    monkeypatch: pytest.MonkeyPatch, said: str, threads: int
) -> None:
    assert default_threads() == 4
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert default_threads() == threads
    assert Execution().settled((3, 32, 32), 64).threads == threads
    assert Execution(threads=4).settled((3, 32, 32), 64).threads == 4


def test_cores_are_those_that_affinity_and_quota_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    for quota, count in ((math.inf, 6), (9.0, 6), (1.5, 2), (3.0, 3), (0.1, 1)):
        monkeypatch.setattr("sterad.threads.cgroup_quota", lambda *_, q=quota: q)
        assert cores() == count


def test_cores_here_are_at_most_those_of_the_affinity() -> None:
    assert 1 <= cores() <= len(os.sched_getaffinity(0))


def written(folder: Path, files: dict[str, str]) -> Path:
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
def test_quotas_of_the_second_version_of_cgroups(
    tmp_path: Path, files: dict[str, str], quota: float
) -> None:
    assert cgroup_quota(written(tmp_path, files), "0::/a/b\n") == quota


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
def test_quotas_of_the_first_version_of_cgroups(
    tmp_path: Path, files: dict[str, str], quota: float
) -> None:
    member = "7:memory:/a\n4:cpu,cpuacct:/a\n3:cpuset:/a\n"
    assert cgroup_quota(written(tmp_path, files), member) == quota


def test_a_process_in_no_cgroup_has_no_quota(tmp_path: Path) -> None:
    assert cgroup_quota(written(tmp_path, {"cpu.max": "1 1"}), "") == math.inf
    assert cgroup_quota(tmp_path, "7:memory:/\n") == math.inf
    assert cgroup_quota(tmp_path, "0::/\n") == 1


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
