"""Pretrained encoders of other libraries: `timm:NAME`, `torchvision:NAME` and `hf:NAME`.

Each library gives a module without its classification layer, and the mean, standard deviation and
size of the images that its weights were trained with. The adapters use the public functions of
these libraries; they are tested with small modules of the same interface, because the libraries
themselves cannot be installed beside every version of torch.
"""

import importlib
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from sterad.encoders.inputs import InputFormat
from sterad.errors import SteradError

CLASSIFICATION_LAYERS = ("fc", "classifier", "head", "heads")
"""Attributes of the models of torchvision with their last layers."""


def load_pretrained(name: str, pretrained: bool = True) -> tuple[nn.Module, InputFormat]:
    """Return the module `LIBRARY:NAME` and the inputs it expects.

    pretrained: whether to load the library's weights, which may download them.
    """
    library, _, model = name.partition(":")
    package, load = LIBRARIES[library]
    try:
        imported = importlib.import_module(package)
    except (ImportError, RuntimeError) as error:  # RuntimeError: built for another torch
        raise SteradError(
            f"the encoder {name!r} needs the package {package}, which cannot be imported "
            f"({error}): pip install {package}"
        ) from error
    try:
        return load(imported, model, pretrained)
    except SteradError:
        raise
    except Exception as error:
        raise SteradError(
            f"{package} cannot load {model!r} ({type(error).__name__}: "
            f"{str(error).partition(chr(10))[0]}): give the name of one of its image models"
        ) from error


def _load_timm(timm: Any, name: str, pretrained: bool) -> tuple[nn.Module, InputFormat]:
    """Load a model of timm, whose data config is beside its weights."""
    model = timm.create_model(name, pretrained=pretrained, num_classes=0)
    config = importlib.import_module("timm.data").resolve_model_data_config(model)
    _, height, width = config["input_size"]
    return model, InputFormat(tuple(config["mean"]), tuple(config["std"]), (height, width))


def _load_torchvision(
    torchvision: Any, name: str, pretrained: bool
) -> tuple[nn.Module, InputFormat]:
    """Load a classifier of torchvision; the transforms of its weights have the input format."""
    models = importlib.import_module("torchvision.models")
    weights = models.get_model_weights(name).DEFAULT
    model = models.get_model(name, weights=weights if pretrained else None)
    preset = weights.transforms()
    (side,) = preset.crop_size
    _remove_classification(model, name)
    return model, InputFormat(tuple(preset.mean), tuple(preset.std), (side, side))


def _remove_classification(model: nn.Module, name: str) -> None:
    """Replace the last linear layer of a classifier by the identity."""
    layers = [
        path
        for path, layer in model.named_modules()
        if isinstance(layer, nn.Linear) and path.partition(".")[0] in CLASSIFICATION_LAYERS
    ]
    if not layers:
        raise SteradError(
            f"torchvision's {name!r} has no linear classification layer: give a function that "
            "returns a module from images to features"
        )
    parent, _, last = layers[-1].rpartition(".")
    setattr(model.get_submodule(parent), last, nn.Identity())


def _load_hf(transformers: Any, name: str, pretrained: bool) -> tuple[nn.Module, InputFormat]:
    """Load a model of Hugging Face; its image processor has the input format."""
    processor = transformers.AutoImageProcessor.from_pretrained(name)
    if pretrained:
        model = transformers.AutoModel.from_pretrained(name)
    else:
        model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(name))
    crops = getattr(processor, "do_center_crop", False)
    size = processor.crop_size if crops else processor.size
    edge = size.get("shortest_edge")
    shape = (size.get("height", edge), size.get("width", edge))
    format_ = InputFormat(tuple(processor.image_mean), tuple(processor.image_std), shape)
    return PooledOutput(model), format_


class PooledOutput(nn.Module):
    """The pooled output of a model of Hugging Face, or the mean of its last hidden state."""

    def __init__(self, model: nn.Module) -> None:
        """Take a model from `pixel_values` to an output with named tensors."""
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) or (n, features, 1, 1) for x: (n, c, h, w)."""
        out = self.model(pixel_values=x)
        pooled: Tensor | None = getattr(out, "pooler_output", None)
        if pooled is not None:
            return pooled
        hidden: Tensor = out.last_hidden_state  # (n, tokens, features) or (n, features, h, w)
        return hidden.mean(dim=1) if hidden.ndim == 3 else hidden.mean(dim=(2, 3))


Load = Callable[[Any, str, bool], tuple[nn.Module, InputFormat]]
LIBRARIES: dict[str, tuple[str, Load]] = {
    "timm": ("timm", _load_timm),
    "torchvision": ("torchvision", _load_torchvision),
    "hf": ("transformers", _load_hf),
}
"""Package and loader of each library by its prefix."""
