"""Predictor: images to scores and class indices as one module, without training code."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from sterad.encoders import ENCODERS
from sterad.encoders.inputs import InputFormat, InputTransform
from sterad.encoders.make import EncoderSource, make_encoder
from sterad.encoders.own_encoder import OwnEncoder
from sterad.errors import SteradError
from sterad.export.card import Card
from sterad.export.layers import build_layers
from sterad.saved_state import check_like


class Predictor(nn.Module):
    """Inputs as `predict` takes them, the transform of an encoder, the encoder, and its layers."""

    def __init__(
        self,
        encoder: nn.Module,
        answer: nn.Sequential,
        input_shape: tuple[int, ...],
        inputs: InputTransform | None = None,
        input_dtype: str = "float32",
    ) -> None:
        """Combine the parts, in evaluation mode."""
        super().__init__()
        self.inputs, self.encoder, self.answer = inputs, encoder, answer
        self.input_shape, self.input_dtype = input_shape, input_dtype
        self.eval().requires_grad_(False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores (n, k) and the column of the highest one (n,), for x: (n, *input_shape)."""
        if self.input_dtype == "uint8":
            x = x.float() / 255
        elif len(self.input_shape) == 3:  # `predict` rounds images to 8 bits
            x = (x * 255).round() / 255
        if self.inputs is not None:
            x = self.inputs(x)
        scores = self.answer(self.encoder(x).flatten(1))
        return scores, scores.argmax(dim=1)


def split_encoder(encoder: nn.Module) -> tuple[InputTransform | None, nn.Module]:
    """Return the transform of the inputs and the module after it."""
    if isinstance(encoder, OwnEncoder):
        return encoder.inputs, encoder.module
    return None, encoder


def rebuild_predictor(
    card: Card, tensors: Mapping[str, Tensor], encoder: EncoderSource | None
) -> Predictor:
    """Return the predictor of a card and its weights; raise ValueError if they do not fit.

    encoder: in place of one that is not registered; its weights are replaced.
    """
    format_ = InputFormat(card.input_mean, card.input_std, card.input_size)
    transforms = InputTransform(format_, card.input_shape)
    module = _build_encoder(card, transforms.output_shape, encoder)
    weights = _below("encoder.", tensors)
    try:
        check_like(weights, dict(module.state_dict()), "encoder")
    except ValueError as error:
        if encoder is None:
            raise
        raise SteradError(
            f"the given encoder {type(module).__name__} does not take the weights of the file "
            f"({error}): give the encoder {card.encoder_type} of the classifier"
        ) from error
    module.load_state_dict(weights)
    answer = build_layers(card.answer, _below("answer.", tensors))
    is_plain = not card.input_mean and transforms.size is None
    predictor = Predictor(
        module, answer, card.input_shape, None if is_plain else transforms, card.input_dtype
    )
    if len(weights) + len(answer.state_dict()) != len(tensors):
        raise ValueError("it has weights that no layer uses")
    _check_outputs(predictor, len(card.labels))
    return predictor


def _build_encoder(card: Card, shape: tuple[int, ...], encoder: EncoderSource | None) -> nn.Module:
    if encoder is not None:
        return split_encoder(make_encoder(encoder, shape, card.width))[1]
    if card.encoder is None or card.encoder not in ENCODERS:
        raise SteradError(
            f"the encoder {card.encoder_type} is not one of sterad's: give it again, as "
            "load_exported(path, encoder=...), with any weights"
        )
    with torch.random.fork_rng(devices=[]):  # its first weights are replaced
        return ENCODERS[card.encoder](shape, card.width)


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): one for n, one in tensors.items() if n.startswith(prefix)}


@torch.inference_mode()
def _check_outputs(predictor: Predictor, labels: int) -> None:
    """Raise ValueError unless a dry run gives a score for each label."""
    dtype = torch.uint8 if predictor.input_dtype == "uint8" else torch.float32
    scores, _ = predictor(torch.zeros(2, *predictor.input_shape, dtype=dtype))
    if tuple(scores.shape) != (2, labels):
        raise ValueError(f"it has {labels} labels and scores of shape {tuple(scores.shape)}")
