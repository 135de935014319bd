"""Checks of a saved state against the object that it is loaded into.

Optimizers in torch take a state of any shape, and their fused kernels then write outside of it.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


def tensors_of(value: Any) -> Iterator[Tensor]:
    """Yield all tensors in nested dictionaries, lists and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from tensors_of(one)


def bytes_of(value: Any) -> int:
    """Return the bytes of all tensors in nested dictionaries, lists and tuples.

    >>> bytes_of({"weights": [torch.zeros(3)], "labels": torch.zeros(2, dtype=torch.uint8)})
    14
    """
    return sum(one.numel() * one.element_size() for one in tensors_of(value))


def check_like(value: Any, like: Any, name: str) -> None:
    """Raise ValueError unless `value` has the structure of `like`.

    Keys, lengths, types of numbers, shapes and dtypes of tensors must be equal.

    >>> check_like({"weight": torch.zeros(2)}, {"weight": torch.ones(3)}, "network")
    Traceback (most recent call last):
    ValueError: network.weight is float32 (2,) and must be float32 (3,)
    """
    if isinstance(like, dict) and isinstance(value, dict):
        if different := set(map(str, value)) ^ set(map(str, like)):
            raise ValueError(f"{name} lacks or should not have {', '.join(sorted(different))}")
        for key in like:
            check_like(value[key], like[key], f"{name}.{key}")
    elif isinstance(like, list | tuple) and isinstance(value, list | tuple):
        if len(value) != len(like):
            raise ValueError(f"{name} has {len(value)} entries and must have {len(like)}")
        for index, (one, other) in enumerate(zip(value, like, strict=True)):
            check_like(one, other, f"{name}.{index}")
    elif _kind(value) != _kind(like):
        raise ValueError(f"{name} is {_kind(value)} and must be {_kind(like)}")


def check_labels(value: Any, name: str) -> None:
    """Raise ValueError unless `value` lists distinct labels in ascending order."""
    if not (isinstance(value, Tensor) and value.dtype == torch.int64 and value.dim() == 1):
        raise ValueError(f"{name} is {_kind(value)} and must be int64 with one dimension")
    if len(value) and (int(value[0]) < 0 or bool((value.diff() <= 0).any())):
        raise ValueError(f"{name} must be ascending labels from 0")


def check_count(value: Any, name: str) -> None:
    """Raise ValueError unless `value` is an integer from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value!r} and must be an integer from 0")


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "a number" if is_number else type(value).__name__
