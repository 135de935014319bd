import io
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from sterad.data.archive import unpack
from sterad.errors import SteradError


def tar_of(path: Path, *members: tuple[str, bytes], **special: bytes) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, kind in special.items():
            info = tarfile.TarInfo(f"data/{name}")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    return path


def zip_of(path: Path, *members: tuple[str, bytes], link: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members:
            packed.writestr(name, content)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            packed.writestr(info, "/etc/passwd")
    return path


def left(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if not one.name.startswith("a."))


@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_folder_appears_only_when_complete(tmp_path: Path, make: object) -> None:
    members = (("data/one", b"1" * 3_000_000), ("data/deep/two", b"2"), ("readme", b"3"))
    archive = tmp_path / "a.archive"
    tar_of(archive, *members) if make is tar_of else zip_of(archive, *members)
    unpack(archive, tmp_path, "data")
    assert (tmp_path / "data" / "one").read_bytes() == b"1" * 3_000_000
    assert (tmp_path / "data" / "deep" / "two").read_bytes() == b"2"
    assert left(tmp_path) == ["data"]


ODD_NAMES = ["/etc/evil", "../evil", "data/../../evil", "data\\..\\evil", "c:evil"]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_paths_outside_the_folder_raise(tmp_path: Path, name: str, make: object) -> None:
    folder = tmp_path / "in" / "to"
    folder.mkdir(parents=True)
    archive = folder / "a.archive"
    members = (("data/one", b"1"), (name, b"evil"))
    tar_of(archive, *members) if make is tar_of else zip_of(archive, *members)
    with pytest.raises(SteradError, match=r"leads outside the folder: it is not the official"):
        unpack(archive, folder, "data")
    assert left(folder) == []
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE]
)
def test_links_and_devices_in_tar_raise(tmp_path: Path, kind: bytes) -> None:
    archive = tar_of(tmp_path / "a.tar.gz", ("data/one", b"1"), evil=kind)
    with pytest.raises(SteradError, match="'data/evil', a link or a device: it is not the"):
        unpack(archive, tmp_path, "data")
    assert left(tmp_path) == []


def test_links_in_zip_raise(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", ("data/one", b"1"), link="data/evil")
    with pytest.raises(SteradError, match="'data/evil', a link or a device"):
        unpack(archive, tmp_path, "data")
    assert left(tmp_path) == []


@pytest.mark.parametrize("make", [tar_of, zip_of])
def test_decompression_bombs_raise(
    tmp_path: Path, make: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "a.archive"
    members = (("data/one", bytes(50_000_000)),)
    tar_of(archive, *members) if make is tar_of else zip_of(archive, *members)
    assert archive.stat().st_size < 100_000
    with pytest.raises(
        SteradError, match=r"more than [0-9,]+ unpacked bytes: it is not the official"
    ):
        unpack(archive, tmp_path, "data")
    many = (("data/one", b"1"), ("data/two", b"2"), ("data/three", b"3"))
    tar_of(archive, *many) if make is tar_of else zip_of(archive, *many)
    monkeypatch.setattr("sterad.data.archive.MAX_BYTES", 2)
    with pytest.raises(SteradError, match="more than 2 unpacked bytes"):
        unpack(archive, tmp_path, "data")
    monkeypatch.setattr("sterad.data.archive.MAX_MEMBERS", 2)
    with pytest.raises(SteradError, match="more than 2 files"):
        unpack(archive, tmp_path, "data")
    assert left(tmp_path) == []


@pytest.mark.parametrize("make", [tar_of, zip_of])
@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_truncated_archives_raise(tmp_path: Path, make: object, keep: float) -> None:
    archive = tmp_path / "a.archive"
    noise = random.Random(0).randbytes(200_000)
    members = (("data/one", noise), ("data/two", noise[::-1]))
    tar_of(archive, *members) if make is tar_of else zip_of(archive, *members)
    content = archive.read_bytes()
    archive.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(SteradError, match="is damaged or truncated"):
        unpack(archive, tmp_path, "data")
    assert left(tmp_path) == []


def test_damaged_zip_raises(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "a.zip", ("data/one", bytes(range(256)) * 50))
    content = bytearray(archive.read_bytes())
    content[200] ^= 16
    archive.write_bytes(content)
    with pytest.raises(SteradError, match="is damaged or truncated"):
        unpack(archive, tmp_path, "data")
    assert left(tmp_path) == []


def test_other_files_raise(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(b"<html>Not found</html>")
    with pytest.raises(SteradError, match="is damaged or truncated"):
        unpack(archive, tmp_path, "data")
    tar_of(archive, ("other/one", b"1"))
    with pytest.raises(SteradError, match="has no folder 'data'"):
        unpack(archive, tmp_path, "data")
    tar_of(archive, ("data/one", b"1"), ("data/one", b"2"))
    with pytest.raises(SteradError, match="twice"):
        unpack(archive, tmp_path, "data")
    assert left(tmp_path) == []
