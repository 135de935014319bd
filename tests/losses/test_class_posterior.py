import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from sterad.losses import likelihood_loss, posterior_loss, posterior_loss_of_scores
from sterad.sphere import (
    AngularGaussian,
    FastLogKernel,
    GeneralAngularGaussian,
    PowerSpherical,
    ProjectedStudentT,
    SphericalCauchy,
    VonMisesFisher,
    fast_log_kernel,
    log_area,
)

KERNELS = [
    fast_log_kernel(AngularGaussian, 0.5**0.5, 16),
    fast_log_kernel(VonMisesFisher, 7.0, 16),
    fast_log_kernel(PowerSpherical, 9.0, 16),
    fast_log_kernel(SphericalCauchy, 5.0, 16),
    fast_log_kernel(ProjectedStudentT, 2.0, 16, df=3.0),
]


def batch(n: int = 30, d: int = 16, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    z = normalize(torch.randn(n, d, generator=generator, dtype=dtype), dim=1)
    return z, torch.tensor([1, 4, 7])[torch.arange(n) % 3]


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-13), (torch.float32, 1e-6)])
@pytest.mark.parametrize("variance", [0.05, 0.14, 1.0])
def test_von_mises_fisher_is_cross_entropy(
    dtype: torch.dtype, rtol: float, variance: float
) -> None:
    z, labels = batch(444, 512, dtype)
    z.requires_grad_()
    log_kernel = fast_log_kernel(VonMisesFisher, VonMisesFisher.concentration_of(variance), 512)
    found = posterior_loss(z, labels, log_kernel)
    targets = torch.searchsorted(torch.tensor([1, 4, 7]), labels)
    expected = cross_entropy(z[:, [1, 4, 7]] / variance, targets, reduction="sum")
    assert torch.allclose(found, expected, rtol=rtol)
    gradient, expected_gradient = (torch.autograd.grad(x, z)[0] for x in (found, expected))
    assert torch.allclose(gradient, expected_gradient, rtol=10 * rtol, atol=10 * rtol)


def test_angular_gaussian_is_close_to_a_softmax() -> None:
    z, labels = batch(444, 512)
    angular = posterior_loss(z, labels, fast_log_kernel(AngularGaussian, 0.5**0.5, 512))
    softmax = posterior_loss(z, labels, fast_log_kernel(VonMisesFisher, 15.992, 512))
    assert angular.item() == pytest.approx(softmax.item(), rel=1e-3)


@pytest.mark.parametrize("log_kernel", KERNELS, ids=str)
def test_against_the_definition(log_kernel: FastLogKernel) -> None:
    z, labels = batch()
    classes, priors = torch.tensor([0, 1, 4, 7]), torch.tensor([0.1, 0.2, 0.3, 0.4]).double()
    generator = torch.Generator().manual_seed(3)
    noise = torch.randn(9, 16, generator=generator, dtype=torch.float64)
    directions = normalize(noise, dim=1)
    densities = torch.stack([log_kernel(z @ directions[c]).exp() for c in classes], 1) * priors
    posterior = densities / densities.sum(1, keepdim=True)
    expected = -posterior[torch.arange(30), torch.searchsorted(classes, labels)].log()
    for reduction, value in (
        ("none", expected),
        ("sum", expected.sum()),
        ("mean", expected.mean()),
    ):
        found = posterior_loss(
            z,
            labels,
            log_kernel,
            directions,
            classes,
            priors.log(),
            reduction,  # type: ignore[arg-type]
        )
        assert torch.allclose(found, value, rtol=1e-10)


@pytest.mark.parametrize("log_kernel", KERNELS, ids=str)
def test_gradient_descent_lowers_the_loss(log_kernel: FastLogKernel) -> None:
    z, labels = batch()
    losses = []
    for _ in range(10):
        z = z.detach().requires_grad_()
        loss = posterior_loss(z, labels, log_kernel, reduction="mean")
        losses.append(loss.item())
        z = normalize(z - 0.5 * torch.autograd.grad(loss, z)[0], dim=1)
    assert losses == sorted(losses, reverse=True)


def test_default_directions_are_the_standard_basis() -> None:
    z, labels = batch()
    log_kernel = KERNELS[0]
    basis = torch.eye(16).double()
    gathered, multiplied = (posterior_loss(z, labels, log_kernel, x) for x in (None, basis))
    assert torch.allclose(gathered, multiplied, rtol=1e-12)
    gathered, multiplied = (likelihood_loss(z, labels, log_kernel, x) for x in (None, basis))
    assert torch.allclose(gathered, multiplied, rtol=1e-12)


def test_first_and_second_derivatives() -> None:
    z, labels = batch(6)
    z.requires_grad_()
    for loss in (posterior_loss, likelihood_loss):
        assert torch.autograd.gradcheck(lambda z, f=loss: f(z, labels, KERNELS[0]), (z,))
        assert torch.autograd.gradgradcheck(lambda z, f=loss: f(z, labels, KERNELS[0]), (z,))


def test_gradient_with_respect_to_the_concentration() -> None:
    z, labels = batch()
    kappa = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    law = AngularGaussian(torch.eye(16, dtype=torch.float64)[0], kappa)
    loss = posterior_loss(z, labels, law.log_kernel)
    assert torch.allclose(
        loss, posterior_loss(z, labels, fast_log_kernel(AngularGaussian, 1.0, 16))
    )
    assert torch.autograd.grad(loss, kappa)[0].abs() > 0


def test_likelihood_loss_is_minus_the_sum_of_log_densities() -> None:
    z, labels = batch()
    law = VonMisesFisher(torch.eye(16).double(), 7.0)
    expected = -law.log_prob(z.unsqueeze(1)).gather(1, labels.unsqueeze(1)).sum()
    found = likelihood_loss(z, labels, KERNELS[1]) + len(z) * log_area(16)
    assert torch.allclose(found, expected)


def test_posterior_loss_of_scores() -> None:
    z, labels = batch()
    eye = torch.eye(16, dtype=torch.float64)
    general = GeneralAngularGaussian(2 * eye, covariance_matrix=4 * eye)
    found = posterior_loss_of_scores(general.log_prob(z.unsqueeze(1)), labels)
    assert torch.allclose(
        found, posterior_loss(z, labels, fast_log_kernel(AngularGaussian, 1.0, 16))
    )


def test_float32_and_autocast_are_close_to_float64() -> None:
    z, labels = batch(444, 512)
    log_kernel = fast_log_kernel(AngularGaussian, 20.0**0.5, 512)
    exact = posterior_loss(z, labels, log_kernel).item()
    assert posterior_loss(z.float(), labels, log_kernel).item() == pytest.approx(exact, rel=1e-6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = posterior_loss(z.bfloat16(), labels, log_kernel)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(exact, rel=2e-2)


def test_invalid_labels_raise() -> None:
    z, labels = batch()
    with pytest.raises(ValueError, match=r"label 16 has no direction, as there are 16 \(0 to 15\)"):
        posterior_loss(z, labels + 9, KERNELS[0])
    with pytest.raises(ValueError, match="label 7 has no direction, as there are 5"):
        posterior_loss(z, labels, KERNELS[0], torch.eye(5, 16).double())
    with pytest.raises(ValueError, match="label -1 has no direction"):
        likelihood_loss(z, labels - 2, KERNELS[0])
    with pytest.raises(ValueError, match="label 7 is not among the 2 classes"):
        posterior_loss(z, labels, KERNELS[0], classes=torch.tensor([1, 4]))
    with pytest.raises(ValueError, match="label 7 has no direction, as there are 6"):
        posterior_loss_of_scores(torch.zeros(30, 6), labels)
