import mpmath as mp
import pytest
import torch
from torch import Tensor

from sterad.sphere import AngularGaussian, GeneralAngularGaussian

MEAN = torch.tensor([0.7, -0.4, 1.1], dtype=torch.float64)
COVARIANCE = torch.tensor(
    [[1.4, 0.3, -0.2], [0.3, 0.8, 0.1], [-0.2, 0.1, 2.0]], dtype=torch.float64
)


def points(count: int, dimension: int = 3) -> Tensor:
    noise = torch.randn(count, dimension, generator=torch.Generator().manual_seed(0))
    return torch.nn.functional.normalize(noise.double(), dim=1)


def radial_integral(u: Tensor) -> float:
    """Return ∫ r² N(ru; m, Σ) dr by mpmath's quadrature."""
    with mp.workdps(30):
        inverse = mp.matrix(COVARIANCE.tolist()) ** -1
        m, direction = mp.matrix(MEAN.tolist()), mp.matrix(u.tolist())
        scale = mp.sqrt((2 * mp.pi) ** 3 * mp.det(mp.matrix(COVARIANCE.tolist())))

        def term(r: mp.mpf) -> mp.mpf:
            x = direction * r - m
            return r * r * mp.exp(-(x.T * inverse * x)[0] / 2) / scale

        return float(mp.quad(term, [0, 1, 2, 4, 8, 20]))


def test_against_the_radial_integral() -> None:
    law = GeneralAngularGaussian(MEAN, covariance_matrix=COVARIANCE)
    for u in points(6):
        assert law.log_prob(u).exp().item() == pytest.approx(radial_integral(u), rel=1e-12)


def test_against_projected_gaussian_draws() -> None:
    law = GeneralAngularGaussian(MEAN, covariance_matrix=COVARIANCE)
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(200_000, 3, generator=generator, dtype=torch.float64)
    draws = MEAN + noise @ torch.linalg.cholesky(COVARIANCE).T
    draws = torch.nn.functional.normalize(draws, dim=1)
    grid = points(200_000)  # uniform points, for Monte Carlo integration of the density
    for pole in points(5):
        inside = grid @ pole > 0.6
        expected = law.log_prob(grid[inside]).exp().sum() * 4 * torch.pi / len(grid)
        share = (draws @ pole > 0.6).double().mean()
        assert abs(expected - share) < 0.01
    sampled = law.sample(torch.Size([200_000]), generator=torch.Generator().manual_seed(2))
    assert (sampled.mean(0) - draws.mean(0)).norm() < 0.01


@pytest.mark.parametrize("dimension", [2, 5, 300])
def test_isotropic_covariance_gives_the_angular_gaussian(dimension: int) -> None:
    pole = points(1, dimension)[0]
    eye = torch.eye(dimension, dtype=torch.float64)
    general = GeneralAngularGaussian(3 * pole, covariance_matrix=4 * eye)
    isotropic = AngularGaussian(pole, 1.5)
    at = points(7, dimension)
    assert torch.allclose(general.log_prob(at), isotropic.log_prob(at), rtol=1e-12, atol=1e-11)


def test_covariance_cholesky_factor_and_precision_agree() -> None:
    at = points(4)
    laws = [
        GeneralAngularGaussian(MEAN, covariance_matrix=COVARIANCE),
        GeneralAngularGaussian(MEAN, scale_tril=torch.linalg.cholesky(COVARIANCE)),
        GeneralAngularGaussian(MEAN, precision_matrix=torch.linalg.inv(COVARIANCE)),
    ]
    for law in laws:
        assert torch.allclose(law.log_prob(at), laws[0].log_prob(at), rtol=1e-12)
        assert torch.allclose(law.covariance_matrix, COVARIANCE)
        assert torch.allclose(law.precision_matrix @ COVARIANCE, torch.eye(3).double(), atol=1e-12)


def test_derivatives_vmap_and_shapes() -> None:
    def log_prob(at: Tensor, mean: Tensor, root: Tensor) -> Tensor:
        covariance = root @ root.mT + torch.eye(3, dtype=torch.float64)
        law = GeneralAngularGaussian(mean, covariance_matrix=covariance, validate_args=False)
        return law.log_prob(torch.nn.functional.normalize(at, dim=-1))

    tensors = (points(2), MEAN.expand(2, 3).clone(), COVARIANCE.expand(2, 3, 3).clone())
    inputs = tuple(x.requires_grad_() for x in tensors)
    assert torch.autograd.gradcheck(log_prob, inputs)
    assert torch.autograd.gradgradcheck(log_prob, inputs)
    assert torch.allclose(torch.func.vmap(log_prob)(*inputs), log_prob(*inputs))
    law = GeneralAngularGaussian(MEAN.expand(4, 3), covariance_matrix=COVARIANCE)
    assert law.log_prob(points(5).unsqueeze(1)).shape == (5, 4)
    assert law.expand(torch.Size([2, 4])).sample(torch.Size([6])).shape == (6, 2, 4, 3)


def test_invalid_input_raises() -> None:
    eye = torch.eye(3, dtype=torch.float64)
    with pytest.raises(ValueError, match="not positive definite"):
        GeneralAngularGaussian(MEAN, covariance_matrix=eye - 2 * torch.diag(eye[0]))
    with pytest.raises(ValueError, match="not positive definite"):
        GeneralAngularGaussian(MEAN, precision_matrix=-eye)
    with pytest.raises(ValueError, match="2 matrices are given: give exactly one"):
        GeneralAngularGaussian(MEAN, covariance_matrix=eye, scale_tril=eye)
    with pytest.raises(ValueError, match="0 matrices are given"):
        GeneralAngularGaussian(MEAN)
    with pytest.raises(ValueError, match="give a 3 × 3 matrix"):
        GeneralAngularGaussian(MEAN, covariance_matrix=torch.eye(2))
    with pytest.raises(ValueError, match="dimension is 1"):
        GeneralAngularGaussian(torch.ones(1), covariance_matrix=torch.eye(1))
    with pytest.raises(ValueError, match="must lie on the unit sphere"):
        GeneralAngularGaussian(MEAN, covariance_matrix=eye).log_prob(MEAN)


def test_against_projnormal() -> None:
    reason = "projnormal, a second reference besides mpmath, is not installed"
    projnormal = pytest.importorskip("projnormal.formulas.projected_normal", reason=reason)
    law = GeneralAngularGaussian(MEAN, covariance_matrix=COVARIANCE)
    at = points(20)
    expected = projnormal.log_pdf(mean_x=MEAN, covariance_x=COVARIANCE, y=at)
    assert torch.allclose(law.log_prob(at), expected, rtol=1e-6)


def test_the_highest_of_two_modes() -> None:
    narrow = torch.diag(torch.tensor([4.0, 0.3, 0.2], dtype=torch.float64))
    for sign in (-1.0, 1.0):
        law = GeneralAngularGaussian([0.4 * sign, 0.1, 0.0], covariance_matrix=narrow)
        mode = law.mode
        assert mode[0] * sign > 0.9, "the mode at the other end of the longest axis is lower"
        assert law.log_prob(mode) >= law.log_prob(points(20_000)).max()
        turned = mode.clone().requires_grad_()
        (slope,) = torch.autograd.grad(law.log_prob(turned / turned.norm()), turned)
        assert slope.norm() < 1e-5


def test_the_mode_of_a_batch_in_many_dimensions() -> None:
    axes = torch.eye(40, dtype=torch.float64)[:2]
    spread = torch.stack([torch.eye(40), 3 * torch.eye(40)]).double()
    law = GeneralAngularGaussian(5 * axes, covariance_matrix=spread)
    assert torch.allclose(law.mode, axes, atol=1e-7)
    central = GeneralAngularGaussian(torch.zeros(3), covariance_matrix=torch.diag(MEAN.abs()))
    assert central.mode.abs().tolist() == pytest.approx([0, 0, 1], abs=1e-6)


def test_a_law_without_an_axis_names_what_to_do() -> None:
    law = GeneralAngularGaussian(MEAN, covariance_matrix=COVARIANCE)
    for function in (law.cdf, law.icdf):
        with pytest.raises(NotImplementedError, match=r"not a function of the cosine.*samples"):
            function(torch.tensor(0.5))
