import kornia
import pytest
import torch
from torch import Tensor

from sterad.errors import SteradError
from sterad.streams.domain_transforms import (
    TRANSFORMS,
    Brightness,
    Color,
    DomainTransform,
    Permutation,
    Rotation,
    from_dict,
)

ALL = [Rotation(30.0), Rotation(270.0), Permutation(3), Brightness(1.7), Color(0.4)]


def images(n: int = 4, channels: int = 3, size: int = 9) -> Tensor:
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("transform", ALL)
def test_shape_range_and_input_do_not_change_and_images_do_not_mix(
    transform: DomainTransform,
) -> None:
    x = images()
    before = x.clone()
    y = transform(x)
    assert y.shape == x.shape
    assert y.min() >= 0
    assert y.max() <= 1
    assert torch.equal(x, before)
    assert not torch.allclose(y, x)
    torch.testing.assert_close(transform(x[1:2]), y[1:2])


@pytest.mark.parametrize("transform", [Rotation(0), Permutation(0), Brightness(1), Color(0)])
def test_the_first_of_each_kind_is_the_identity(transform: DomainTransform) -> None:
    torch.testing.assert_close(transform(images()), images())


def test_rotation_agrees_with_kornia_and_with_quarters() -> None:
    x = images(size=16)
    turned = kornia.geometry.transform.rotate(x, torch.full((4,), 36.0))
    torch.testing.assert_close(Rotation(36.0)(x), turned, atol=1e-4, rtol=0)
    torch.testing.assert_close(Rotation(90 - 1e-4)(x), Rotation(90)(x), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("height", "width"), [(12, 20), (17, 9)])
@pytest.mark.parametrize("degrees", [36.0, 90.0, 144.0, 180.0, 270.0])
def test_rectangles_are_rotated_without_distortion(height: int, width: int, degrees: float) -> None:
    x = torch.rand(4, 3, height, width, generator=torch.Generator().manual_seed(0))
    turned = kornia.geometry.transform.rotate(x, torch.full((4,), degrees))
    torch.testing.assert_close(Rotation(degrees)(x), turned, atol=1e-4, rtol=0)


@pytest.mark.parametrize("transform", ALL)
def test_rectangles_keep_their_shape(transform: DomainTransform) -> None:
    x = images()[..., :5]
    assert transform(x).shape == x.shape


def test_a_permutation_is_the_same_in_all_images_and_channels() -> None:
    x = images(2, 3, 4)
    y = Permutation(5)(x)
    assert torch.equal(y.flatten(2).sort().values, x.flatten(2).sort().values)
    index = torch.arange(16.0).reshape(1, 1, 4, 4).expand(2, 3, 4, 4)
    places = Permutation(5)(index)
    assert (places == places[:1, :1]).all()
    assert not torch.equal(Permutation(6)(x), y)
    vectors = torch.arange(6.0)[None]
    assert Permutation(5)(vectors).sort().values.tolist() == vectors.tolist()


def test_brightness_saturates_at_white() -> None:
    x = torch.tensor([0.2, 0.8]).reshape(1, 1, 1, 2)
    torch.testing.assert_close(Brightness(2.0)(x).flatten(), torch.tensor([0.4, 1.0]))


def test_a_third_of_a_turn_rotates_the_channels_and_keeps_grays() -> None:
    x = images()
    torch.testing.assert_close(Color(1 / 3)(x), x[:, [2, 0, 1]])
    gray = images(channels=1).expand(-1, 3, -1, -1)
    torch.testing.assert_close(Color(0.17)(gray), gray)


@pytest.mark.parametrize("transform", ALL)
def test_from_dict_inverts_to_dict(transform: DomainTransform) -> None:
    assert from_dict(transform.to_dict()) == transform
    assert transform.to_dict()["name"] in TRANSFORMS


def test_an_unknown_name_raises() -> None:
    with pytest.raises(SteradError, match="unknown transformation 'twirl'"):
        from_dict({"name": "twirl"})
