"""make_encoder: an encoder from a registered name, a library, a file, a module or a factory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sterad.encoders.encoder import ENCODERS, Encoder
from sterad.encoders.inputs import InputFormat
from sterad.encoders.libraries import LIBRARIES, load_pretrained
from sterad.encoders.options import DEFAULT_OPTIONS, EncoderOptions
from sterad.encoders.own_encoder import (
    OwnEncoder,
    call_factory,
    copy_module,
    example_inputs,
    uses_global_rng,
)
from sterad.errors import SteradError
from sterad.plugins import load_plugin

EncoderSource = str | nn.Module | Callable[..., nn.Module]
"""A name, a module, or a function that takes nothing or (input_shape, width)."""
HOW_TO_BRING_YOUR_OWN = (
    "timm:NAME, torchvision:NAME and hf:NAME load pretrained models of these libraries; "
    "FILE.py:FUNCTION calls your function, which returns a torch module; in Python, encoder= also "
    "takes a module or a function"
)


def is_registered(source: EncoderSource) -> bool:
    """Return whether an encoder is given by its registered name."""
    return isinstance(source, str) and source in ENCODERS


def is_file_function(source: object) -> bool:
    """Return whether an encoder is given as `FILE.py:FUNCTION`, whose code has to be run."""
    return isinstance(source, str) and _split_file(source) is not None


def resolve_encoder(name: str) -> tuple[str, Any]:
    """Return the spelling of a name for the config of a run, and the code that it stands for.

    The code is None for the models of a library.
    """
    library, _, model = name.partition(":")
    if library in LIBRARIES and model:
        return name, None
    if (split := _split_file(name)) is not None:
        return name, _load_function(*split)
    try:
        return ENCODERS.resolve(name), ENCODERS[name]
    except SteradError as error:
        raise SteradError(f"{error}; {HOW_TO_BRING_YOUR_OWN}") from None


def name_without_folder(name: str) -> str:
    """Return the name of an encoder without the folder of its file, for the id of a run.

    >>> name_without_folder("nets/mine.py:backbone"), name_without_folder("timm:resnet50")
    ('mine.py:backbone', 'timm:resnet50')
    """
    split = _split_file(name)
    return name if split is None else f"{Path(split[0]).name}:{split[1]}"


def make_encoder(
    source: EncoderSource,
    input_shape: tuple[int, ...],
    width: int,
    options: EncoderOptions = DEFAULT_OPTIONS,
) -> Encoder:
    """Return a new encoder for inputs of a shape; raise if it is not a valid one.

    A module is copied, so that training does not change it.
    """
    shape = InputFormat().override(options).shape_for(input_shape)
    if isinstance(source, str) and source.partition(":")[0] in LIBRARIES:
        module, format_ = load_pretrained(source, pretrained=options.weights is None)
        return OwnEncoder(module, input_shape, options, format_)
    if is_registered(source):
        module = _make_registered(str(source), shape, width)
    elif isinstance(source, nn.Module):
        module = copy_module(source)
    else:
        function = resolve_encoder(source)[1] if isinstance(source, str) else source
        if not callable(function):
            raise SteradError(
                f"the encoder is a {type(function).__name__}: give a name, a torch module or a "
                "function that returns one"
            )
        module = call_factory(function, shape, width)
    if isinstance(module, Encoder) and options == DEFAULT_OPTIONS:
        is_ours = type(module).__module__.startswith("sterad.")
        if is_ours or not uses_global_rng(module, example_inputs(input_shape)):
            return module
    return OwnEncoder(module, input_shape, options, InputFormat())


def count_weights(
    source: EncoderSource, input_shape: tuple[int, ...], width: int, options: EncoderOptions
) -> int | None:
    """Return the number of weights of a registered encoder without memory for them, else None."""
    if not is_registered(source):
        return None
    shape = InputFormat().override(options).shape_for(input_shape)
    try:
        with torch.device("meta"):
            return sum(
                one.numel() for one in _make_registered(str(source), shape, width).parameters()
            )
    except (RuntimeError, NotImplementedError):  # a user's encoder that reads values of its weights
        return None


def _make_registered(name: str, input_shape: tuple[int, ...], width: int) -> Encoder:
    """Return a registered encoder; raise if it is not a valid one."""
    try:
        encoder = ENCODERS[name](input_shape, width)
    except TypeError as error:
        raise SteradError(
            f"the encoder {name!r} cannot be created ({error}): it must accept the shape of one "
            "input and a width"
        ) from error
    features = getattr(encoder, "features", None)
    if not isinstance(encoder, nn.Module) or not isinstance(features, int) or features < 1:
        raise SteradError(
            f"the encoder {name!r} has features = {features!r}: it must be a torch module whose "
            "attribute `features` is the size of its output"
        )
    return encoder


def _split_file(name: str) -> tuple[str, str] | None:
    """Return file and function of `FILE.py:FUNCTION`; None for other names."""
    file, _, function = name.rpartition(":")
    return (file, function) if file.endswith(".py") and function else None


def _load_function(file: str, function: str) -> Any:
    module = load_plugin(file)
    found = getattr(module, function, None)
    if not callable(found):
        names = [name for name, one in vars(module).items() if callable(one) and name[0] != "_"]
        raise SteradError(
            f"{file!r} has no function {function!r}: it has {', '.join(names) or 'none'}"
        )
    return found
