"""A simulated second device: computes on the CPU, but refuses tensors of two devices in one call.

Inside `simulated_device()` the device "meta:1" holds numbers. Copies to and from it work, and every
operation runs on the CPU, so results can be compared with those of the CPU. An operation that mixes
its tensors with those of the CPU raises, as on a GPU: scalars, and indices of an indexing
operation, may come from the CPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("meta", 1)
"""Not "meta" itself: tensors that are cached per device must not be mixed up."""
INDEXING = ("index", "index_put", "index_put_", "_unsafe_index")


def _dispatch(_: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run an operation on the CPU if it has to do with the device, and wrap its results."""
    kwargs = dict(kwargs or {})
    moves = kwargs.get("device") is not None
    target = torch.device(kwargs["device"]) if moves else DEVICE
    inside = any(isinstance(leaf, DeviceTensor) for leaf in tree_leaves((args, kwargs)))
    if not inside and not (moves and target == DEVICE):
        return func(*args, **kwargs)
    name = func.overloadpacket.__name__
    copies = moves or name in ("copy_", "_local_scalar_dense")
    if not copies:
        _refuse_mixed(name, (args[:1] if name in INDEXING else args, kwargs))
    inner_args, inner_kwargs = tree_map_only(
        DeviceTensor, lambda tensor: tensor.data_on_cpu, (args, kwargs)
    )
    if moves:
        inner_kwargs["device"] = torch.device("cpu")
    out = func(*inner_args, **inner_kwargs)
    if target != DEVICE:
        return out
    if name == "copy_" and not isinstance(args[0], DeviceTensor):
        return args[0]
    wrapped = tree_map_only(Tensor, DeviceTensor, out)
    return wrapped if moves else return_and_correct_aliasing(func, args, kwargs, wrapped)


def _refuse_mixed(name: str, arguments: Any) -> None:
    for leaf in tree_leaves(arguments):
        if isinstance(leaf, Tensor) and not isinstance(leaf, DeviceTensor) and leaf.ndim > 0:
            raise RuntimeError(
                f"{name} mixes tensors of the simulated device with a tensor of shape "
                f"{tuple(leaf.shape)} on the CPU"
            )


class DeviceTensor(Tensor):
    """A tensor that reports the simulated device and keeps its numbers in a CPU tensor."""

    __torch_dispatch__ = classmethod(_dispatch)  # type: ignore[assignment]
    data_on_cpu: Tensor

    @staticmethod
    def __new__(cls, data: Tensor) -> "DeviceTensor":
        """Wrap a CPU tensor."""
        made: DeviceTensor = Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            device=DEVICE,
        )
        made.data_on_cpu = data
        return made


class _Mode(TorchDispatchMode):
    """Also catches what creates or copies tensors without an argument on the device."""

    __torch_dispatch__ = _dispatch


@contextmanager
def simulated_device() -> Iterator[str]:
    """Make the device "meta:1" hold numbers within the block; yield its name."""
    make_tensor = torch.tensor

    def tensor(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        return make_tensor(data, **kwargs).to(device or "cpu")

    # Wrapped tensors cannot be created in inference mode, and torch.tensor is not dispatched.
    inference = patch.object(torch, "inference_mode", torch.no_grad)
    mode = _Mode()  # type: ignore[no-untyped-call]
    with mode, inference, patch.object(torch, "tensor", tensor):
        yield str(DEVICE)
