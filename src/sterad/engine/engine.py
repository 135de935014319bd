"""Engine: forward, backward and steps of one network, so that methods need no devices or dtypes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from sterad.encoders import Network, carry_over, grow
from sterad.engine.evaluator import Evaluator
from sterad.engine.execution import Execution
from sterad.engine.passes import Passes
from sterad.errors import SteradError
from sterad.saved_state import check_count, check_like

MakeOptimizer = Callable[[Any, bool], torch.optim.Optimizer]
"""Makes an optimizer of trainable weights: a list of them, or a list of parameter groups if the
encoder has its own learning rate. The flag says whether their gradients are scaled."""
MAX_GRADIENT_GROWTH = 100.0
"""A gradient that exceeds all earlier ones by this factor comes from an outlier in the data: one
of 1e5 among values around 1 gives 1e5 times their gradient, a new class about 10 times."""
MAX_FIRST_GRADIENT = 1e6
"""Largest norm of the first gradient."""
MIN_GRADIENT = 1e-6
"""Smaller norms are rounding errors, as those of a contrastive loss on a single class, and say
nothing about later gradients."""

MAX_ROW_GROWTH = 1000.0
"""A row of features that exceeds all earlier ones by this factor is an outlier: it would move the
mean of a class of some hundred rows by more than the distance between classes."""
MIN_ROWS_BEFORE_REFUSAL = 100
"""The first rows of a feed may all be small, so that a normal one seems to be an outlier."""


def flatten_groups(parameters: Iterable[Any]) -> list[nn.Parameter]:
    """Return the weights of what an optimizer is made of: weights, or parameter groups."""
    parts = [one["params"] if isinstance(one, dict) else [one] for one in parameters]
    return [weight for part in parts for weight in part]


class DivergenceError(SteradError):
    """A loss or gradient that would destroy the network; no step was taken with it."""


class GradientGuard:
    """Refuses a step whose gradient is infinite, or far larger than all before."""

    def __init__(self, largest: float = 0.0) -> None:
        """Continue with the largest norm so far."""
        self.largest = largest

    def check(self, weights: list[nn.Parameter]) -> None:
        """Raise DivergenceError before a step that would destroy the network."""
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients))
        limit = MAX_GRADIENT_GROWTH * self.largest or MAX_FIRST_GRADIENT
        if not norm < limit:
            raise DivergenceError(
                f"the norm of the gradient is {norm:.3g}"
                + (f", and the largest one before was {self.largest:.3g}" if self.largest else "")
            )
        if norm >= MIN_GRADIENT:
            self.largest = max(self.largest, norm)


class RowGuard:
    """Refuses rows that are far larger than all before: running statistics never forget them."""

    def __init__(self, largest: float = 0.0) -> None:
        """Continue with the largest norm so far."""
        self.largest = largest

    def check(self, rows: Tensor, rows_before: int) -> None:
        """Raise DivergenceError before rows (n, d) that would destroy the statistics are added."""
        norm = float(rows.norm(dim=1).max())
        is_known = rows_before >= MIN_ROWS_BEFORE_REFUSAL and self.largest > 0
        if is_known and not norm < MAX_ROW_GROWTH * self.largest:
            raise DivergenceError(
                f"the norm of a row is {norm:.3g}, and the largest one before was "
                f"{self.largest:.3g}"
            )
        self.largest = max(self.largest, norm)


class StagePasses:
    """The outputs of all stages in the passes of a loss, which is then computed on each stage.

    At first, passes are computed and the last stage's outputs returned; after `select`, the same
    passes return those of an earlier stage, and nothing is computed.
    """

    def __init__(self) -> None:
        """Record from now on."""
        self.outputs: list[list[Tensor]] = []
        """For each pass, the outputs of the last stage, then of the first, second and so on."""
        self._replayed: Iterator[Tensor] | None = None

    def forward(self, engine: "Engine", views: Sequence[Tensor], unit: bool) -> Tensor:
        """Return the outputs of the last stage, or of the selected one."""
        if self._replayed is not None:
            return next(self._replayed)
        engine.stage_passes = None
        joined = engine.forward(views, unit, stages=True)
        engine.stage_passes = self
        self.outputs.append([*joined.split(engine.network.outputs, dim=1)])
        return self.outputs[-1][0]

    def select(self, stage: int) -> None:
        """Return the outputs of a stage, from 1, in the passes that follow."""
        self._replayed = iter([one[stage] for one in self.outputs])


class Engine(Evaluator):
    """A network, its optimizer and everything that decides how both are computed."""

    def __init__(
        self, network: Network, execution: Execution, make_optimizer: MakeOptimizer
    ) -> None:
        """Bring a network to its device, memory format and precision."""
        super().__init__(network, execution)
        half = execution.precision == "float16"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=half)
        if not self.trainable:
            raise SteradError(
                "nothing can be trained: the encoder has no weights that require gradients and "
                "there is no head: use head=linear, for example"
            )
        self.make_optimizer = make_optimizer
        self.optimizer = make_optimizer(self._grouped(self.trainable), half)
        self.images = 0
        """Images passed through the network in training, all views counted."""
        self.passes = Passes()
        """The same images by their shape."""
        self.guard: GradientGuard | None = None
        """Refuses steps on gradients that are far too large; None: no step is refused."""
        self.stage_passes: StagePasses | None = None
        """Keeps the outputs of earlier stages while a loss is computed; None: there are none."""

    def forward(self, views: Sequence[Tensor], unit: bool = False, stages: bool = False) -> Tensor:
        """Return the outputs of several batches, concatenated: (sum of n, outputs).

        Each batch is a separate pass with its own batch statistics. Passes run in parallel where
        that is faster; buffers are updated in the order of the batches. stages: append the outputs
        of the earlier stages as columns.
        """
        if self.stage_passes is not None:
            return self.stage_passes.forward(self, views, unit)
        for x in views:
            self.count(x, backward=torch.is_grad_enabled())
        # A user's network without stages has no argument `stages`.
        options = {"stages": True} if stages else {}
        if len(views) == 1:
            out: Tensor = self.network(views[0], unit=unit, **options)
            return out
        return self.parallel(self.network, views, unit, **options)

    def count(self, x: Tensor, backward: bool = True, times: int = 1) -> None:
        """Count passes of x: (n, ...) through the network or a copy of it, for the cost.

        `forward` counts its own passes; call this for others, such as those of a teacher.
        """
        times *= self.network.members
        self.images += times * len(x)
        self.passes.count(x, backward, times)

    def backward(self, loss: Tensor) -> None:
        """Backpropagate the scaled loss; gradients accumulate."""
        if not (isinstance(loss, Tensor) and loss.ndim == 0 and loss.requires_grad):
            kind = f"of type {type(loss).__name__}"
            if isinstance(loss, Tensor):
                kind = f"of shape {tuple(loss.shape)}, requires_grad={loss.requires_grad}"
            raise SteradError(f"the loss is {kind}: return a scalar tensor with a gradient")
        self.scaler.scale(loss).backward()

    def gradients(self, loss: Tensor) -> list[Tensor]:
        """Return the gradients of the scaled loss; zeros for weights that do not affect it."""
        weights = self.trainable
        gradients = torch.autograd.grad(self.scaler.scale(loss), weights, allow_unused=True)
        return [
            torch.zeros_like(weight) if grad is None else grad
            for weight, grad in zip(weights, gradients, strict=True)
        ]

    @property
    def trainable(self) -> list[nn.Parameter]:
        """Weights that require gradients."""
        return [one for one in self.network.parameters() if one.requires_grad]

    def _grouped(self, weights: list[nn.Parameter]) -> Any:
        """Return what an optimizer is made of: weights, or groups if the encoder has its own lr.

        weights: those of `trainable`, or copies in the same order.
        """
        if (lr := getattr(self.network.encoder, "lr", None)) is None:
            return weights
        own = {id(one) for one in self.network.encoder.parameters()}
        pairs = list(zip(self.trainable, weights, strict=True))
        groups = [
            {"params": [copy for one, copy in pairs if id(one) not in own]},
            {"params": [copy for one, copy in pairs if id(one) in own], "lr": lr},
        ]
        return [group for group in groups if group["params"]]

    def step(self, clip: float | None = None) -> None:
        """Clip the gradients to the norm `clip`, take an optimizer step and drop the gradients."""
        if self.guard is not None:
            self.guard.check(self.trainable)
        if clip is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.drop_gradients()  # now, so that the next batch reuses their memory while it is cached

    def drop_gradients(self) -> None:
        """Set all gradients to None.

        `Optimizer.zero_grad` also calls profilers, which takes a tenth of a small network's step.
        """
        for group in self.optimizer.param_groups:
            for weight in group["params"]:
                weight.grad = None

    def widen(self, outputs: int, rng: torch.Generator) -> None:
        """Grow the heads to `outputs`; existing rows and their optimizer state stay."""
        carry_over(self.optimizer, grow(self.network.head, outputs, rng))
        for head in self.network.stage_heads:
            carry_over(self.optimizer, grow(head, outputs, rng))

    def state_dict(self) -> dict[str, Any]:
        """Return weights, buffers, optimizer, scaler and the counts that decide on compiling."""
        return {
            "images": self.images,
            "passes": self.passes.state_dict(),
            "outputs": self.network.outputs,
            "network": self.network.state_dict(),
            "sizes": dict(self.network.sizes),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "largest_gradient": self.guard.largest if self.guard is not None else 0.0,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state whose head is as wide as this one's."""
        self.check_state(state)
        self.images = state["images"]
        self.passes.load_state_dict(state.get("passes"))
        self.network.load_state_dict(state["network"])
        self.network.sizes = Counter(state["sizes"])
        if self.guard is not None:
            self.guard.largest = state["largest_gradient"]
        # Copied, because torch shares the tensors of the loaded state with the optimizer.
        self.optimizer.load_state_dict(deepcopy(state["optimizer"]))
        if state["scaler"]:  # empty if the loss is not scaled
            self.scaler.load_state_dict(state["scaler"])

    def check_state(self, state: dict[str, Any]) -> None:
        """Raise ValueError unless every tensor of a state fits this network and its optimizer."""
        check_count(state["images"], "images")
        Passes().load_state_dict(state.get("passes"))
        check_like(state["network"], self.network.state_dict(), "network")
        for size, count in state["sizes"].items():
            check_count(size, "a batch size")
            check_count(count, "a number of batches")
        check_like(state["largest_gradient"], 0.0, "largest_gradient")
        if state["scaler"]:
            check_like(state["scaler"], self.scaler.state_dict(), "scaler")
        expected = self._stepped_optimizer().state_dict()
        saved = state["optimizer"]
        check_like(saved["param_groups"], expected["param_groups"], "optimizer")
        for group, other in zip(saved["param_groups"], expected["param_groups"], strict=True):
            if group["params"] != other["params"]:  # state of one weight would go to another
                raise ValueError("the numbers of the weights in the optimizer are mixed up")
        if "scheduler" in {*saved, *expected}:
            check_like(saved.get("scheduler"), expected.get("scheduler"), "scheduler")
        for index, values in saved["state"].items():  # none before the first step
            check_like(values, expected["state"][index], f"optimizer.{index}")

    def _stepped_optimizer(self) -> torch.optim.Optimizer:
        """Return an optimizer after a step on copies of the weights, which creates its state."""
        weights = [nn.Parameter(one.detach().clone()) for one in self.trainable]
        for weight in weights:
            weight.grad = torch.zeros_like(weight)
        optimizer = self.make_optimizer(self._grouped(weights), self.scaler.is_enabled())
        optimizer.step()
        return optimizer
