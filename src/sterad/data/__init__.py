"""Stage 1: datasets, built in, downloaded by name, or from files and arrays of the user."""

from sterad.data.cifar import Cifar10, Cifar100
from sterad.data.core50 import Core50
from sterad.data.dataset import Dataset, held_out
from sterad.data.dataset_config import DATASETS, DatasetConfig, Defaults, Feed, Subset
from sterad.data.digits import Digits
from sterad.data.mnist import FashionMnist, Kmnist, Mnist
from sterad.data.synthetic import Synthetic
from sterad.data.tiny_imagenet import TinyImageNet
from sterad.data.user_files import Folder, Npz

__all__ = [
    "DATASETS",
    "Cifar10",
    "Cifar100",
    "Core50",
    "Dataset",
    "DatasetConfig",
    "Defaults",
    "Digits",
    "FashionMnist",
    "Feed",
    "Folder",
    "Kmnist",
    "Mnist",
    "Npz",
    "Subset",
    "Synthetic",
    "TinyImageNet",
    "held_out",
]
