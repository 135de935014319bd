from pathlib import Path

import pytest

from sterad.data import Synthetic
from sterad.errors import SteradError
from sterad.streams import Blurry, LongTail, ReplayFile, save_order


def test_the_saved_stream_comes_whatever_the_seed(tmp_path: Path) -> None:
    data = Synthetic(per_class=12, image_size=1).load()
    stream = Blurry(tasks=5, scale=9.0).open(data, 3)
    path = save_order(stream, tmp_path / "order.npz")
    for seed in (0, 9):
        assert ReplayFile(path).open(data, seed).digest == stream.digest
    assert ReplayFile(path, hash=stream.digest[:8]).open(data, 0).digest == stream.digest
    with pytest.raises(SteradError, match="and not abc: ask for the file of that stream"):
        ReplayFile(path, hash="abc").open(data, 0)


def test_the_hash_of_the_file_can_stand_for_its_place(tmp_path: Path) -> None:
    data = Synthetic(per_class=12, image_size=1).load()
    stream = Blurry(tasks=5, scale=9.0).open(data, 3)
    path = save_order(stream, tmp_path / "order.npz")
    settled = ReplayFile(path).settled()
    assert settled == ReplayFile(path, hash=stream.digest) == settled.settled()
    save_order(Blurry(tasks=5, scale=9.0).open(data, 4), path)
    with pytest.raises(SteradError, match="ask for the file of that stream"):
        settled.open(data, 0)
    with pytest.raises(SteradError, match="there is no order file"):
        ReplayFile(tmp_path / "none.npz").settled()


def test_it_can_be_thinned_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Synthetic(per_class=12, image_size=1).load()
    save_order(Blurry(tasks=5, scale=9.0).open(data, 3), tmp_path / "order.npz")
    monkeypatch.chdir(tmp_path)
    thin = LongTail(base="replay-file").open(data, 3)
    assert thin.digest == Blurry(tasks=5, scale=9.0, imbalance=100).open(data, 3).digest


def test_without_a_file_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SteradError, match=r"no order file 'order\.npz'"):
        ReplayFile().open(Synthetic(per_class=2).load(), 0)
