import math

import mpmath as mp
import pytest
import torch

from sterad.sphere import Uniform, log_area


def test_density_entropy_and_mean() -> None:
    law = Uniform(3, dtype=torch.float64)
    points = law.sample(torch.Size([50_000]), generator=torch.Generator().manual_seed(0))
    assert law.log_prob(points[:2]).tolist() == pytest.approx([-math.log(4 * math.pi)] * 2)
    assert law.entropy().item() == pytest.approx(log_area(3))
    assert law.mean.tolist() == [0, 0, 0]
    assert law.mean_resultant_length.item() == 0
    assert points.mean(0).norm() < 0.02
    # In three dimensions a coordinate of a uniform point is itself uniform (Archimedes).
    ranks = (points[:, 2].sort().values + 1) / 2
    steps = (torch.arange(50_000, dtype=torch.float64) + 0.5) / 50_000
    assert (ranks - steps).abs().max() * 50_000**0.5 < 2.2


@pytest.mark.parametrize("dimension", [2, 3, 17, 512])
def test_distribution_of_a_cosine(dimension: int) -> None:
    law = Uniform(dimension, (2,), dtype=torch.float64)
    cosines = torch.tensor([[-1.2, 0.0], [0.1, 0.7]], dtype=torch.float64) / dimension**0.5
    half = (dimension - 1) / 2
    with mp.workdps(30):
        expected = [
            [float(mp.betainc(half, half, 0, (1 + t) / 2, regularized=True)) for t in row]
            for row in cosines.tolist()
        ]
    below = law.cdf(cosines)
    torch.testing.assert_close(
        below, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-30
    )
    torch.testing.assert_close(law.sf(-cosines), below, rtol=1e-9, atol=0)
    torch.testing.assert_close(law.icdf(below), cosines, rtol=0, atol=1e-9)


def test_batch_and_sample_shapes() -> None:
    law = Uniform(4, (2,)).expand(torch.Size([3, 2]))
    assert law.batch_shape == (3, 2)
    assert law.rsample(torch.Size([5])).shape == (5, 3, 2, 4)
    assert law.log_prob(torch.eye(4)[0]).shape == (3, 2)


def test_invalid_input_raises() -> None:
    with pytest.raises(ValueError, match="dimension is 1"):
        Uniform(1)
    with pytest.raises(ValueError, match="value has length 2, but must lie on the unit sphere"):
        Uniform(2).log_prob(torch.tensor([2.0, 0.0]))
