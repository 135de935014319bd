"""Laws, losses, views and classifiers run on a device without float64, such as MPS.

`Mps` is a stand-in for a tensor on an MPS device: its data is on the CPU, but it reports the device
"mps", rejects float64 with the error of torch, and rejects operations that mix both devices.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from sterad.classifiers import CLASSIFIERS
from sterad.devices import to_double
from sterad.losses import likelihood_loss, posterior_loss
from sterad.sphere import (
    LAWS,
    AngularGaussian,
    GeneralAngularGaussian,
    VonMisesFisher,
    fast_log_kernel,
)
from sterad.views import AUGMENTATIONS

MPS, CPU = torch.device("mps"), torch.device("cpu")
COPIES = (Tensor.copy_, Tensor.to, Tensor.__getitem__, Tensor.__setitem__)
"""Functions that accept tensors of two devices; indices may be on the CPU."""


class Mps(Tensor):
    """A tensor that reports the device "mps"."""

    device = MPS

    @staticmethod
    def __new__(cls, data: Tensor) -> "Mps":
        if data.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return data.as_subclass(cls)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return run(func, args, kwargs or {})


class MpsFactories(TorchFunctionMode):
    """Makes functions such as torch.zeros create stand-ins on the device "mps"."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a function on the CPU and return its tensors on the device that torch would use."""
    with torch._C.DisableTorchFunction():
        leaves = tree_leaves((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        is_mixed = len({isinstance(x, Mps) for x in tensors if x.ndim}) > 1
        if is_mixed and func not in COPIES:
            raise RuntimeError(f"Expected all tensors to be on the same device, in {func}")
        targets = [x for x in leaves if isinstance(x, torch.device)]
        if func is Tensor.to and isinstance(args[1], Tensor):
            targets = [args[1].device]
        on_mps = targets == [MPS] if targets else any(isinstance(x, Mps) for x in tensors)
        on_mps = on_mps and func is not Tensor.cpu

        def to_cpu(x: Any) -> Any:
            return CPU if isinstance(x, torch.device) else x

        def wrap(x: Any) -> Any:
            if not isinstance(x, Tensor) or isinstance(x, Mps) == on_mps:
                return x
            return Mps(x) if on_mps else x.as_subclass(Tensor)

        return tree_map(wrap, func(*tree_map(to_cpu, args), **tree_map(to_cpu, kwargs)))


def unit_rows(n: int, d: int) -> Tensor:
    return normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(0)), dim=1)


def on_cpu(x: Tensor) -> Tensor:
    assert isinstance(x, Mps), "the result is on the device of the input"
    return x.cpu()


def test_stand_in_rejects_float64() -> None:
    x = Mps(torch.ones(2))
    assert x.device.type == "mps"
    with pytest.raises(TypeError, match="float64"):
        x.double()
    assert to_double(x).dtype == torch.float64
    with MpsFactories(), pytest.raises(TypeError, match="float64"):
        torch.zeros(2, dtype=torch.float64, device=MPS)


@pytest.mark.parametrize("name", list(LAWS))
def test_laws(name: str) -> None:
    make: Any = LAWS[name]
    rows = unit_rows(3, 6)
    parameters = [rows, torch.full((3,), 4.0)]
    if name == "projected-student-t":
        parameters.append(torch.full((3,), 2.5))
    expected = make(*parameters)
    with MpsFactories():
        law = make(*map(Mps, parameters))
        points = law.sample((5,), generator=torch.Generator().manual_seed(1))
        log_prob, cosine = law.log_prob(points), law.log_kernel(Mps(rows[:, 0]))
        length, entropy = law.mean_resultant_length, law.entropy()
    same = expected.sample((5,), generator=torch.Generator().manual_seed(1))
    assert torch.equal(on_cpu(points), same)
    assert torch.equal(on_cpu(log_prob), expected.log_prob(same))
    assert torch.equal(on_cpu(cosine), expected.log_kernel(rows[:, 0]))
    assert torch.equal(on_cpu(length), expected.mean_resultant_length)
    assert torch.equal(on_cpu(entropy), expected.entropy())


def test_general_angular_gaussian() -> None:
    mean, covariance, points = unit_rows(1, 4)[0], 2 * torch.eye(4) + 0.5, unit_rows(5, 4)
    expected = GeneralAngularGaussian(mean, covariance).log_prob(points)
    with MpsFactories():
        law = GeneralAngularGaussian(Mps(mean), Mps(covariance))
        found = law.log_prob(Mps(points))
    assert torch.equal(on_cpu(found), expected)


def test_kl_divergence() -> None:
    rows, kappa = unit_rows(2, 4), torch.tensor([3.0, 5.0])
    p, q = VonMisesFisher(rows, kappa), VonMisesFisher(rows.flip(0), kappa)
    with MpsFactories():
        p_mps = VonMisesFisher(Mps(rows), Mps(kappa))
        q_mps = VonMisesFisher(Mps(rows.flip(0)), Mps(kappa))
        found = torch.distributions.kl_divergence(p_mps, q_mps)
    assert torch.equal(on_cpu(found), torch.distributions.kl_divergence(p, q))


@pytest.mark.parametrize("concentration", [0.7, 100.0], ids=["polynomial", "direct"])
@pytest.mark.parametrize("loss", [posterior_loss, likelihood_loss])
def test_losses(loss: Any, concentration: float) -> None:
    z, labels = unit_rows(6, 3), torch.tensor([0, 1, 2, 2, 1, 0])
    log_kernel = fast_log_kernel(AngularGaussian, concentration, 3)
    assert (log_kernel.degree(torch.float32) is None) == (concentration == 100)
    with MpsFactories():
        found = loss(Mps(z), Mps(labels), log_kernel)
        with_directions = loss(Mps(z), Mps(labels), log_kernel, Mps(torch.eye(3)))
    assert torch.equal(on_cpu(found), loss(z, labels, log_kernel))
    assert torch.equal(on_cpu(with_directions), loss(z, labels, log_kernel, torch.eye(3)))


def test_kernel_that_needs_float64_for_float32_input() -> None:
    log_kernel = fast_log_kernel(VonMisesFisher, 200.0, 16)
    cosine = torch.linspace(-1, 1, 9)
    with MpsFactories():
        found = log_kernel(Mps(cosine))
    assert torch.equal(on_cpu(found), log_kernel(cosine.double()).float())


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_classifiers(name: str) -> None:
    features, labels = unit_rows(12, 4), torch.arange(12) % 3
    expected = CLASSIFIERS[name].fit([(features, labels)])
    with MpsFactories():
        fitted = CLASSIFIERS[name].fit([(Mps(features), Mps(labels))])
        scores = fitted.scores(Mps(features))
    assert torch.equal(on_cpu(scores), expected.scores(features))


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_augmentations(name: str) -> None:
    x = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    augment = AUGMENTATIONS[name]()
    with MpsFactories():
        found = augment(Mps(x), torch.Generator().manual_seed(1))
    assert torch.allclose(on_cpu(found), augment(x, torch.Generator().manual_seed(1)), atol=1e-6)
