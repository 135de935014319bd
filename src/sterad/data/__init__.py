"""Stage 1: datasets, built in, downloaded by name, or from files and arrays of the user."""

from sterad.data.cifar import Cifar10, Cifar100
from sterad.data.core50 import Core50
from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS, Defaults, Description, Feed, Subset, held_out
from sterad.data.digits import Digits
from sterad.data.folder import Folder
from sterad.data.idx import FashionMnist, Kmnist, Mnist
from sterad.data.npz import Npz
from sterad.data.synthetic import Synthetic
from sterad.data.tiny_imagenet import TinyImageNet

__all__ = [
    "DATASETS",
    "Cifar10",
    "Cifar100",
    "Core50",
    "Dataset",
    "Defaults",
    "Description",
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
