import pytest
import torch
from torch.nn.functional import normalize

from sterad.losses import posterior_loss
from sterad.sphere import (
    LearnedDirections,
    VonMisesFisher,
    kernel,
    moving_means,
    random_orthonormal,
    regular_simplex,
    standard_basis,
)


def test_standard_basis_of_more_classes_extends_the_smaller_one() -> None:
    assert torch.equal(standard_basis(3), torch.eye(3))
    assert torch.equal(standard_basis(5)[:3, :3], standard_basis(3))


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_simplex_has_equal_cosines(classes: int) -> None:
    vertices = regular_simplex(classes, 128).double()
    cosines = vertices @ vertices.T
    expected = torch.full((classes, classes), -1 / (classes - 1)).double().fill_diagonal_(1)
    assert torch.allclose(cosines, expected, atol=1e-6)


def test_random_orthonormal_rows_depend_on_the_generator_only() -> None:
    rows = [random_orthonormal(4, 9, torch.Generator().manual_seed(s)) for s in (1, 1, 2)]
    assert torch.equal(rows[0], rows[1])
    assert not torch.equal(rows[0], rows[2])
    assert torch.allclose(rows[0] @ rows[0].T, torch.eye(4), atol=1e-6)


def test_directions_are_on_the_default_device() -> None:
    with torch.device("meta"):
        assert standard_basis(3).is_meta
        assert regular_simplex(3).is_meta
        assert random_orthonormal(3, 4, torch.Generator("cpu")).is_meta


def test_three_forms_of_moving_means() -> None:
    z = normalize(torch.randn(6, 5, generator=torch.Generator().manual_seed(0)), dim=1)
    labels = torch.tensor([0, 0, 0, 2, 2, 0])
    means = moving_means(z, labels, 4, "mean")
    assert torch.allclose(means[2], z[3:5].mean(0))
    assert torch.allclose(moving_means(z, labels, 4)[2], normalize(z[3:5].mean(0), dim=0))
    assert torch.allclose(moving_means(z, labels, 4, "share")[2], z[3:5].sum(0) / 6)
    assert means[[1, 3]].abs().max() == 0


def test_moving_means_are_differentiable() -> None:
    z = normalize(
        torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=1
    ).requires_grad_()
    labels = torch.tensor([0, 0, 1, 1])

    def loss(z: torch.Tensor) -> torch.Tensor:
        return posterior_loss(z, labels, kernel(VonMisesFisher, 3.0, 3), moving_means(z, labels, 2))

    assert torch.autograd.gradcheck(loss, (z,))
    detached = posterior_loss(
        z, labels, kernel(VonMisesFisher, 3.0, 3), moving_means(z, labels, 2).detach()
    )
    full, partial = (torch.autograd.grad(x, z)[0] for x in (loss(z), detached))
    assert (full - partial).abs().max() > 0.1


def test_learned_directions_reduce_the_loss() -> None:
    directions = LearnedDirections(2, 3, torch.Generator().manual_seed(0))
    z = normalize(torch.tensor([[1.0, 0, 0], [0, 1.0, 0]]), dim=1)
    labels = torch.tensor([0, 1])
    log_kernel = kernel(VonMisesFisher, 5.0, 3)
    optimizer = torch.optim.SGD(directions.parameters(), lr=0.5)
    first = posterior_loss(z, labels, log_kernel, directions()).item()
    for _ in range(20):
        loss = posterior_loss(z, labels, log_kernel, directions())
        directions.weight.grad = torch.autograd.grad(loss, directions.weight)[0]
        optimizer.step()
    assert loss.item() < first / 2
    assert torch.allclose(directions().norm(dim=1), torch.ones(2))


def test_invalid_input_raises() -> None:
    with pytest.raises(
        ValueError, match="standard basis of 4 classes does not fit in 3 dimensions"
    ):
        standard_basis(4, 3)
    with pytest.raises(ValueError, match="at least 4 dimensions"):
        regular_simplex(5, 3)
    with pytest.raises(ValueError, match="dimension is 1"):
        random_orthonormal(1, 1, torch.Generator())
