"""OwnEncoder: any torch module from a batch to features as an encoder.

The feature size is found by a dry run. Layers that are not trained stay in evaluation mode, so that
their running statistics and dropout do not change in training either. A module that draws random
numbers, such as dropout, draws them from a seed of the run: torch's global generator is not part of
a checkpoint.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn

from sterad.encoders.encoder import Encoder, no_stages
from sterad.encoders.inputs import InputFormat, InputTransform
from sterad.encoders.options import EncoderOptions
from sterad.encoders.weights import load_weights
from sterad.errors import SteradError

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
MAX_SEED = 2**62
MAX_NAMES = 8
"""Names of layers in an error message."""


class OwnEncoder(Encoder):
    """A module, the transform of its inputs, and which of its weights are trained."""

    def __init__(
        self,
        module: nn.Module,
        input_shape: tuple[int, ...],
        options: EncoderOptions,
        format_: InputFormat,
    ) -> None:
        """Check the module's output, load its weights and freeze what is not trained."""
        super().__init__()
        self.inputs = InputTransform(format_.override(options), input_shape)
        # On the CPU, whose generator shows whether a pass draws random numbers.
        self.module = module.cpu().float()
        self.features = dry_run(self.module, self.inputs.output_shape)
        if options.weights is not None:
            load_weights(self.module, options.weights)
        self.lr = options.encoder_lr
        self.frozen_layers = freeze(self.module, options)
        """Names of layers that stay in evaluation mode."""
        self.train()
        if self.module.training and uses_global_rng(self, example_inputs(input_shape)):
            seed = torch.randint(MAX_SEED, ())
            self.register_buffer("seed_and_passes", torch.stack([seed, torch.zeros_like(seed)]))

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all layers but the frozen ones."""
        super().train(mode)
        for layer in self.constant_layers():
            layer.training = False
        return self

    def constant_layers(self) -> list[nn.Module]:
        """Return the layers whose weights and buffers no pass and no step changes."""
        layers = self.module.named_modules()
        return [self.inputs, *(layer for name, layer in layers if name in self.frozen_layers)]

    def forward(self, x: Tensor) -> Tensor:
        """Return (n, features) for x: (n, c, h, w) or (n, d)."""
        out: Tensor = self._run(self.module, x)
        return _flatten(out)

    def stage_outputs(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return what the module's own method `stage_outputs` returns."""
        if not callable(function := getattr(self.module, "stage_outputs", None)):
            raise no_stages(type(self.module).__name__)
        *earlier, last = self._run(function, x)
        return *earlier, _flatten(last)

    def _run(self, function: Callable[[Tensor], Any], x: Tensor) -> Any:
        """Return a function of the module for inputs in their format."""
        x = self.inputs(x)
        if not self.module.training:
            return function(x)
        with _running_statistics(self.module, len(x)), self._seeded(x.device):
            return function(x)

    @contextmanager
    def _seeded(self, device: torch.device) -> Iterator[None]:
        """Seed torch's generators for one pass, if the module draws from them."""
        state = self._buffers.get("seed_and_passes")
        if state is None:
            yield
            return
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            seed, passes = state.tolist()
            torch.manual_seed((seed + passes) % MAX_SEED)
            state[1] += 1
            yield


def _flatten(out: Tensor) -> Tensor:
    """Return (n, d) for (n, d) or for pooled feature maps, (n, d, 1, 1)."""
    return out.flatten(1) if out.ndim == 4 else out


@contextmanager
def _running_statistics(module: nn.Module, images: int) -> Iterator[None]:
    """Use the running statistics of BatchNorm for a single image: one value has no variance."""
    layers: list[nn.Module] = []
    if images == 1:
        layers = [one for one in module.modules() if isinstance(one, BATCH_NORMS) and one.training]
    for layer in layers:
        layer.training = False
    try:
        yield
    finally:
        for layer in layers:
            layer.training = True


def copy_module(module: nn.Module) -> nn.Module:
    """Return a copy, so that training does not change the user's module."""
    try:
        return deepcopy(module)
    except Exception as error:
        raise SteradError(
            f"the encoder {type(module).__name__} cannot be copied ({type(error).__name__}: "
            f"{error}): give a function that makes it"
        ) from error


def call_factory(factory: Callable[..., Any], input_shape: tuple[int, ...], width: int) -> Any:
    """Return what a factory makes; it takes nothing, or the shape of one input and a width."""
    name = getattr(factory, "__name__", type(factory).__name__)
    values = {"input_shape": input_shape, "width": width}
    try:
        parameters = dict(inspect.signature(factory).parameters)
    except (TypeError, ValueError):  # a builtin
        parameters = {}
    by_name = {key: value for key, value in values.items() if key in parameters}
    required = [
        one.name
        for one in parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if set(required) <= set(by_name):
        made = factory(**by_name)
    elif len(required) == 2:
        made = factory(input_shape, width)
    else:
        raise SteradError(
            f"the function {name} takes {', '.join(required)}: the function of an encoder takes "
            "nothing, or input_shape and width"
        )
    if not isinstance(made, nn.Module):
        raise SteradError(
            f"the function {name} returns a {type(made).__name__}: return a torch module that maps "
            "a batch to features"
        )
    return made


def dry_run(module: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Return the feature size of a module; refuse one whose outputs are not features.

    Two batches of different sizes pass the module in evaluation mode; its buffers and torch's
    generator stay as they are.
    """
    training, buffers = module.training, [one.clone() for one in module.buffers()]
    module.eval()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        sizes = {_feature_size(module, example_inputs(input_shape, rows)) for rows in (2, 3)}
        for buffer, before in zip(module.buffers(), buffers, strict=True):
            buffer.copy_(before)
    module.train(training)
    if len(sizes) > 1:
        raise SteradError(
            f"the encoder {type(module).__name__} returns {' or '.join(map(str, sorted(sizes)))} "
            "features, depending on the batch: return the same number for every batch"
        )
    return sizes.pop()


def example_inputs(input_shape: tuple[int, ...], rows: int = 2) -> Tensor:
    """Return inputs in [0, 1], the same at every call."""
    rng = torch.Generator().manual_seed(0)
    return torch.rand(rows, *input_shape, generator=rng, device="cpu")


def _feature_size(module: nn.Module, x: Tensor) -> int:
    kind = type(module).__name__
    try:
        out = module(x)
    except Exception as error:
        raise SteradError(
            f"the encoder {kind} fails on inputs of shape {tuple(x.shape)} "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]}): it must map a batch to "
            "features; input_size resizes images"
        ) from error
    if not isinstance(out, Tensor):
        raise SteradError(
            f"the encoder {kind} returns a {type(out).__name__}: return one tensor of features"
        )
    flat = _flatten(out) if out.shape[2:] == (1, 1) else out
    if flat.ndim != 2 or len(flat) != len(x) or flat.shape[1] < 1 or not flat.is_floating_point():
        raise SteradError(
            f"the encoder {kind} returns {out.dtype} of shape {tuple(out.shape)} for {len(x)} "
            "inputs: return floats of shape (n, features), for example after pooling"
        )
    if not bool(torch.isfinite(flat).all()):
        raise SteradError(
            f"the encoder {kind} returns NaN or infinite features for inputs in [0, 1]: check its "
            "weights and input_mean and input_std"
        )
    return flat.shape[1]


def freeze(module: nn.Module, options: EncoderOptions) -> frozenset[str]:
    """Freeze the weights that are not trained; return the names of layers without trained ones.

    A layer without weights, such as dropout, is frozen unless its own name is under `train_from`.
    """
    prefixes = options.trained_names
    if not (options.frozen or prefixes):
        return frozenset()
    for name, weight in module.named_parameters():
        weight.requires_grad_(_is_below(name, prefixes))
    trained = {name for name, one in module.named_parameters() if one.requires_grad}
    if prefixes and not trained:
        names = [name for name, _ in module.named_parameters()]
        more = ", ..." if len(names) > MAX_NAMES else ""
        raise SteradError(
            f"train_from {options.train_from!r} matches no weight of the encoder: its weights are "
            f"{', '.join(names[:MAX_NAMES]) or 'none'}{more}"
        )
    return frozenset(
        name
        for name, layer in module.named_modules()
        if not _is_below(name, prefixes) and not any(p.requires_grad for p in layer.parameters())
    )


def _is_below(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def constant_layers(network: nn.Module) -> list[nn.Module]:
    """Return the layers of a network whose weights and buffers no pass and no step changes."""
    encoders = [one for one in network.modules() if isinstance(one, OwnEncoder)]
    return [layer for one in encoders for layer in one.constant_layers()]


@torch.no_grad()
def uses_global_rng(module: nn.Module, x: Tensor) -> bool:
    """Return whether a pass in the current mode draws from torch's global generator."""
    with torch.random.fork_rng(devices=[]):
        before = torch.get_rng_state()
        deepcopy(module)(x)
        return not torch.equal(before, torch.get_rng_state())
