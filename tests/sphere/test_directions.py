import pytest
import torch
from torch.nn.functional import normalize

from sterad.losses import posterior_loss
from sterad.sphere import (
    VonMisesFisher,
    fast_log_kernel,
    moving_means,
    regular_simplex,
)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_simplex_has_equal_cosines(classes: int) -> None:
    vertices = regular_simplex(classes, 128).double()
    cosines = vertices @ vertices.T
    expected = torch.full((classes, classes), -1 / (classes - 1)).double().fill_diagonal_(1)
    assert torch.allclose(cosines, expected, atol=1e-6)


def test_simplex_is_on_the_default_device() -> None:
    with torch.device("meta"):
        assert regular_simplex(3).is_meta


def test_moving_means_with_and_without_unit_length() -> None:
    z = normalize(torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    labels = torch.tensor([0, 0, 0, 2, 2, 0])
    means = moving_means(z, labels, 4, unit=False)
    assert torch.allclose(means[2], z[3:5].mean(0))
    assert torch.allclose(moving_means(z, labels, 4)[2], normalize(z[3:5].mean(0), dim=0))
    assert means[[1, 3]].abs().max() == 0


def test_moving_means_are_differentiable() -> None:
    z = normalize(
        torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=1
    ).requires_grad_()
    labels = torch.tensor([0, 0, 1, 1])

    def loss(z: torch.Tensor) -> torch.Tensor:
        return posterior_loss(
            z, labels, fast_log_kernel(VonMisesFisher, 3.0, 3), moving_means(z, labels, 2)
        )

    assert torch.autograd.gradcheck(loss, (z,))
    detached = posterior_loss(
        z, labels, fast_log_kernel(VonMisesFisher, 3.0, 3), moving_means(z, labels, 2).detach()
    )
    full, partial = (torch.autograd.grad(x, z)[0] for x in (loss(z), detached))
    assert (full - partial).abs().max() > 0.1


def test_invalid_simplex_raises() -> None:
    with pytest.raises(ValueError, match=r"simplex of 5 classes does not fit .* at least 4"):
        regular_simplex(5, 3)
    with pytest.raises(ValueError, match="at least 1 class"):
        regular_simplex(0, 3)
    with pytest.raises(ValueError, match="dimension is 1"):
        regular_simplex(1, 1)
