"""Official sources of the named datasets: URLs, checksums, sizes, counts and licenses."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Remote:
    """One file on an official server."""

    url: str
    size: int
    """Size in bytes; it must match if there is a checksum, else it is approximate."""
    md5: str | None
    path: str
    """Path below the root to which it is downloaded."""
    unpacks: str | None = None
    """Folder that the archive unpacks to; None for a file that is not unpacked."""


@dataclass(frozen=True)
class Source:
    """Official files and properties of one dataset."""

    title: str
    classes: int
    train: int
    test: int
    image: tuple[int, int, int]
    """Channels, height and width."""
    tasks: int
    """Number of tasks in the paper."""
    license: str
    page: str
    choices: tuple[tuple[Remote, ...], ...]
    """Alternative sets of files, each complete; the first one is downloaded."""
    md5: Mapping[str, str] = field(default_factory=dict)
    """Checksums of the unpacked, uncompressed files by path."""

    @property
    def size(self) -> int:
        """Size of the download in bytes."""
        return sum(remote.size for remote in self.choices[0])


CIFAR_URL = "https://www.cs.toronto.edu/~kriz/"
NO_LICENSE = "none stated; cite Krizhevsky (2009)"
IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def _cifar_files(archive: str, size: int, md5: str, folder: str) -> tuple[Remote, ...]:
    return (Remote(CIFAR_URL + archive, size, md5, archive, folder),)


def _idx_files(
    name: str, base: str, sizes: tuple[int, ...], md5: tuple[str, ...]
) -> tuple[Remote, ...]:
    return tuple(
        Remote(f"{base}{file}.gz", size, digest, f"{name}/{file}.gz")
        for file, size, digest in zip(IDX_FILES, sizes, md5, strict=True)
    )


SOURCES: dict[str, Source] = {
    "cifar10": Source(
        title="CIFAR-10: photographs of animals and vehicles",
        classes=10,
        train=50_000,
        test=10_000,
        image=(3, 32, 32),
        tasks=5,
        license=NO_LICENSE,
        page=CIFAR_URL + "cifar.html",
        choices=(
            _cifar_files(
                "cifar-10-python.tar.gz",
                170_498_071,
                "c58f30108f718f92721af3b95e74349a",
                "cifar-10-batches-py",
            ),
            _cifar_files(
                "cifar-10-binary.tar.gz",
                170_052_171,
                "c32a1d4ab5d03f1284b67883e8d87530",
                "cifar-10-batches-bin",
            ),
        ),
        md5={
            "cifar-10-batches-py/data_batch_1": "c99cafc152244af753f735de768cd75f",
            "cifar-10-batches-py/data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "cifar-10-batches-py/data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "cifar-10-batches-py/data_batch_4": "634d18415352ddfa80567beed471001a",
            "cifar-10-batches-py/data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "cifar-10-batches-py/test_batch": "40351d587109b95175f43aff81a1287e",
            "cifar-10-batches-py/batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
            "cifar-10-batches-bin/data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
            "cifar-10-batches-bin/data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
            "cifar-10-batches-bin/data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
            "cifar-10-batches-bin/data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
            "cifar-10-batches-bin/data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
            "cifar-10-batches-bin/test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
        },
    ),
    "cifar100": Source(
        title="CIFAR-100: photographs of 100 classes",
        classes=100,
        train=50_000,
        test=10_000,
        image=(3, 32, 32),
        tasks=10,
        license=NO_LICENSE,
        page=CIFAR_URL + "cifar.html",
        choices=(
            _cifar_files(
                "cifar-100-python.tar.gz",
                169_001_437,
                "eb9058c3a382ffc7106e4002c42a8d85",
                "cifar-100-python",
            ),
            _cifar_files(
                "cifar-100-binary.tar.gz",
                168_513_733,
                "03b5dce01913d631647c71ecec9e9cb8",
                "cifar-100-binary",
            ),
        ),
        md5={
            "cifar-100-python/train": "16019d7e3df5f24257cddd939b257f8d",
            "cifar-100-python/test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
            "cifar-100-python/meta": "7973b15100ade9c7d40fb424638fde48",
        },
    ),
    "tiny-imagenet": Source(
        title="Tiny ImageNet: 200 classes of ImageNet at 64x64; the val split is the test split",
        classes=200,
        train=100_000,
        test=10_000,
        image=(3, 64, 64),
        tasks=100,
        license="ImageNet terms: non-commercial research and education",
        page="http://cs231n.stanford.edu",
        choices=(
            (
                Remote(
                    "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                    248_100_043,
                    "90528d7ca1a48142e341f4ef8d21d0de",
                    "tiny-imagenet-200.zip",
                    "tiny-imagenet-200",
                ),
            ),
        ),
    ),
    "core50": Source(
        title="CORe50 (NI): 50 hand-held objects, 11 sessions; 3, 7 and 10 are the test split",
        classes=50,
        train=119_894,
        test=44_972,
        image=(3, 128, 128),
        tasks=8,
        license="CC BY 4.0",
        page="https://vlomonaco.github.io/core50/",
        choices=(
            (
                Remote(
                    "http://bias.csr.unibo.it/maltoni/download/core50/core50_128x128.zip",
                    5_892_103_007,
                    None,
                    "core50_128x128.zip",
                    "core50_128x128",
                ),
            ),
        ),
    ),
    "mnist": Source(
        title="MNIST: handwritten digits",
        classes=10,
        train=60_000,
        test=10_000,
        image=(1, 28, 28),
        tasks=5,
        license="CC BY-SA 3.0",
        page="http://yann.lecun.com/exdb/mnist/",
        choices=(
            _idx_files(
                "mnist",
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                (9_912_422, 28_881, 1_648_877, 4_542),
                (
                    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                    "d53e105ee54ea40749a09fcbcd1e9432",
                    "9fb629c4189551a2d022fa330f9573f3",
                    "ec29112dd5afa0611ce80d1b7f02629c",
                ),
            ),
        ),
        md5=dict(
            zip(
                (f"mnist/{file}" for file in IDX_FILES),
                (
                    "6bbc9ace898e44ae57da46a324031adb",
                    "a25bea736e30d166cdddb491f175f624",
                    "2646ac647ad5339dbf082846283269ea",
                    "27ae3e4e09519cfbb04c329615203637",
                ),
                strict=True,
            )
        ),
    ),
    "fashion-mnist": Source(
        title="Fashion-MNIST: articles of clothing",
        classes=10,
        train=60_000,
        test=10_000,
        image=(1, 28, 28),
        tasks=5,
        license="MIT",
        page="https://github.com/zalandoresearch/fashion-mnist",
        choices=(
            _idx_files(
                "fashion-mnist",
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                (26_421_880, 29_515, 4_422_102, 5_148),
                (
                    "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
                    "25c81989df183df01b3e8a0aad5dffbe",
                    "bef4ecab320f06d8554ea6380940ec79",
                    "bb300cfdad3c16e7a12a480ee83cd310",
                ),
            ),
        ),
        md5=dict(
            zip(
                (f"fashion-mnist/{file}" for file in IDX_FILES),
                (
                    "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                    "9018921c3c673c538a1fc5bad174d6f9",
                    "8181f5470baa50b63fa0f6fddb340f0a",
                    "15d484375f8d13e6eb1aabb0c3f46965",
                ),
                strict=True,
            )
        ),
    ),
    "kmnist": Source(
        title="Kuzushiji-MNIST: cursive Japanese characters",
        classes=10,
        train=60_000,
        test=10_000,
        image=(1, 28, 28),
        tasks=5,
        license="CC BY-SA 4.0",
        page="http://codh.rois.ac.jp/kmnist/",
        choices=(
            _idx_files(
                "kmnist",
                "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
                (18_165_135, 29_497, 3_041_136, 5_120),
                (
                    "bdb82020997e1d708af4cf47b453dcf7",
                    "e144d726b3acfaa3e44228e80efcd344",
                    "5c965bf0a639b31b8f53240b1b52f4d7",
                    "7320c461ea6c1c855c0b718fb2a4b134",
                ),
            ),
        ),
    ),
}
