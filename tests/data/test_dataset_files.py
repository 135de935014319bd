import dataclasses
import fcntl
import hashlib
import http.server
import shutil
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from sterad.data import Cifar100, Kmnist
from sterad.data.dataset_files import check, get
from sterad.data.sources import SOURCES, Remote
from sterad.errors import SteradError

Made = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sterad.data.download.STALL_TIMEOUT_S", 1.0)
    monkeypatch.setattr("sterad.data.download.MAX_TRIES", 1)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Serve a folder on loopback: (folder, address)."""
    folder = tmp_path_factory.mktemp("web")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def publish(
    monkeypatch: pytest.MonkeyPatch, name: str, web: tuple[Path, str], counts: tuple[int, ...]
) -> None:
    """Replace the URLs of the sources by those of the local server."""
    folder, address = web
    choices = tuple(
        tuple(
            dataclasses.replace(
                remote,
                url=address + Path(remote.path).name,
                size=(folder / Path(remote.path).name).stat().st_size,
                md5=hashlib.md5((folder / Path(remote.path).name).read_bytes()).hexdigest(),
            )
            for remote in choice
        )
        for choice in SOURCES[name].choices[:1]
    )
    classes, train, test = counts
    changed = dataclasses.replace(
        SOURCES[name], choices=choices, classes=classes, train=train, test=test, md5={}
    )
    monkeypatch.setitem(SOURCES, name, changed)


@pytest.fixture
def cifar_web(
    make_cifar: Made, web: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, str]:
    root = make_cifar("cifar100", "python")
    with tarfile.open(web[0] / "cifar-100-python.tar.gz", "w:gz") as tar:
        tar.add(root / "cifar-100-python", "cifar-100-python")
    shutil.rmtree(root / "cifar-100-python")
    publish(monkeypatch, "cifar100", web, (4, 4, 2))
    return web


def test_get_downloads_and_unpacks_an_archive(cifar_web: tuple[Path, str], tmp_path: Path) -> None:
    root = tmp_path / "DATA"
    assert get("cifar100", root).startswith("cifar100 is complete: 4 classes, 4 training")
    assert len(Cifar100(root=root).load().train_labels) == 4
    assert "already exists" in get("cifar100", root)
    assert sorted(one.name for one in root.iterdir()) == [
        ".get-cifar100.lock",
        "cifar-100-python",
        "cifar-100-python.tar.gz",
    ]


def test_get_uses_an_existing_archive_without_a_network(
    cifar_web: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = cifar_web[0] / "cifar-100-python.tar.gz"
    content = archive.read_bytes()
    archive.unlink()
    with pytest.raises(SteradError, match=r"put cifar-100-python.tar.gz \(.* bytes, md5 .*\) at"):
        get("cifar100", tmp_path)
    (tmp_path / archive.name).write_bytes(content[:-1])
    with pytest.raises(SteradError, match=r"is not the official file: its checksum is"):
        get("cifar100", tmp_path)
    assert not (tmp_path / "cifar-100-python").exists()
    (tmp_path / archive.name).write_bytes(content)
    assert "cifar100 is complete" in get("cifar100", tmp_path)


def test_get_downloads_four_files(
    make_idx: Made, web: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_idx("made", packed=True) / "made"
    for file in made.iterdir():
        shutil.copy(file, web[0])
    shutil.rmtree(made)
    publish(monkeypatch, "kmnist", web, (10, 20, 10))
    missing = web[0] / "t10k-labels-idx1-ubyte.gz"
    missing.rename(web[0] / "away")
    with pytest.raises(SteradError, match="the server returned 404"):
        get("kmnist", tmp_path)
    with pytest.raises(SteradError, match="lacks t10k-labels-idx1-ubyte"):
        Kmnist(root=tmp_path).load()
    (web[0] / "away").rename(missing)
    assert "kmnist is complete" in get("kmnist", tmp_path)
    assert check("kmnist", tmp_path, checksums=True).is_complete


def test_get_without_a_checksum_verifies_size_and_counts(
    make_core50: Made,
    web: tuple[Path, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = make_core50(objects=(1, 2), frames=1)
    shutil.make_archive(str(web[0] / "core50_128x128"), "zip", made, "core50_128x128")
    shutil.rmtree(made / "core50_128x128")
    publish(monkeypatch, "core50", web, (2, 16, 6))
    ((remote,),) = SOURCES["core50"].choices
    official = dataclasses.replace(SOURCES["core50"], choices=((_without_md5(remote),),))
    monkeypatch.setitem(SOURCES, "core50", official)
    message = get("core50", tmp_path)
    assert message.startswith("core50 is complete: 2 classes, 16 training and 6 test images; their")
    assert message.endswith("content is not verified: no checksum of it is published")
    assert "is downloaded without encryption" in capsys.readouterr().err
    assert "content is not verified" in check("core50", tmp_path, checksums=True).message
    shutil.rmtree(tmp_path / "core50_128x128")
    monkeypatch.setitem(SOURCES, "core50", dataclasses.replace(official, train=17))
    with pytest.raises(SteradError, match=r"core50 is incomplete: .* 16 .*of 2, 17 and 6"):
        get("core50", tmp_path)


def _without_md5(remote: Remote) -> Remote:
    return dataclasses.replace(remote, md5=None)


def test_get_never_overwrites_an_incomplete_folder(
    cifar_web: tuple[Path, str], tmp_path: Path
) -> None:
    (tmp_path / "cifar-100-python").mkdir()
    (tmp_path / "cifar-100-python" / "train").write_text("mine")
    with pytest.raises(SteradError, match="exists but is incomplete: move it"):
        get("cifar100", tmp_path)
    assert not (tmp_path / "cifar-100-python.tar.gz").exists(), "nothing is fetched in vain"
    assert (tmp_path / "cifar-100-python" / "train").read_text() == "mine"


def test_second_download_at_the_same_time_raises(
    cifar_web: tuple[Path, str], tmp_path: Path
) -> None:
    with open(tmp_path / ".get-cifar100.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(SteradError, match="another process is downloading cifar100"):
            get("cifar100", tmp_path)
    assert "complete" in get("cifar100", tmp_path)


def test_unwritable_root_and_unknown_name_raise(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SteradError, match="cannot write to"):
        get("mnist", tmp_path / "file")
    with pytest.raises(SteradError, match="'digits' has no official files: choose one of"):
        get("digits", tmp_path)


def test_check_of_missing_incomplete_and_damaged_files(make_cifar: Made, tmp_path: Path) -> None:
    found = check("cifar100", tmp_path)
    assert not found.is_readable
    assert "sterad data get cifar100" in found.message
    found = check("cifar100", make_cifar("cifar100", "python"))
    assert found.is_readable
    assert not found.is_complete
    assert "incomplete: 4 classes, 4 training and 2 test images, of 100, 50,000" in found.message
    (tmp_path / "cifar-100-python" / "meta").unlink()
    assert "lacks meta" in check("cifar100", tmp_path).message


def test_check_of_user_files_raises(tmp_path: Path) -> None:
    for name in ("digits", "folder"):
        with pytest.raises(SteradError, match="has no official files: choose one of"):
            check(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("cifar100", "cifar-100-python"),
        ("cifar10", "cifar-10-batches-bin"),
        ("mnist", "mnist"),
        ("fashion-mnist", "fashion-mnist"),
    ],
)
def test_real_files_have_the_official_checksums(
    real_data: Callable[[str], Path], name: str, folder: str
) -> None:
    found = check(name, real_data(folder), checksums=True)
    assert found.is_complete, found.message


def test_changed_byte_is_detected_by_the_checksum(
    real_data: Callable[[str], Path], tmp_path: Path
) -> None:
    source = real_data("mnist") / "mnist"
    (tmp_path / "mnist").mkdir()
    for file in source.iterdir():
        (tmp_path / "mnist" / file.name).write_bytes(file.read_bytes())
    labels = tmp_path / "mnist" / "t10k-labels-idx1-ubyte"
    content = bytearray(labels.read_bytes())
    content[-1] ^= 1
    labels.write_bytes(content)
    found = check("mnist", tmp_path, checksums=True)
    assert found.is_readable
    assert not found.is_complete
    assert "t10k-labels-idx1-ubyte' is not the official one" in found.message
