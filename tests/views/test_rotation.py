"""The sixteenfold rotation against numpy, image by image."""

import numpy as np
import pytest
import torch

from sterad.views.rotation import FOLD, sixteenfold


def literally(
    image: np.ndarray[tuple[int, ...], np.dtype[np.float32]], g: int, j: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    out, half = image.copy(), image.shape[2] // 2 + image.shape[2] % 2
    if j in (1, 2):
        out[:, :, :half] = out[:, ::-1, :half][:, :, ::-1]
    if j in (2, 3):
        out[:, :, half:] = out[:, ::-1, half:][:, :, ::-1]
    return np.rot90(out, (0, 2, 1, 3)[g], axes=(1, 2))


@pytest.mark.parametrize("side", [7, 8])
def test_block_by_block(side: int) -> None:
    x = torch.rand(3, 2, side, side, generator=torch.Generator().manual_seed(0))
    kept = x.clone()
    shown = sixteenfold(x)
    assert shown.shape == (FOLD * 3, 2, side, side)
    for g in range(4):
        for j in range(4):
            for i in range(3):
                expected = literally(x[i].numpy(), g, j)
                assert np.array_equal(shown[(4 * g + j) * 3 + i].numpy(), expected)
    assert torch.equal(x, kept)


def test_no_two_variants_are_the_same_and_each_has_the_same_pixels() -> None:
    x = torch.rand(1, 1, 6, 6, generator=torch.Generator().manual_seed(1))
    rows = sixteenfold(x).flatten(1)
    assert len(rows.unique(dim=0)) == FOLD
    assert torch.equal(rows.sort(dim=1).values, x.flatten(1).sort(dim=1).values.expand(FOLD, -1))
