"""Replay: the base of methods with a memory. `observe` is retrieve → loss → step → remember."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.classifiers import Classifier
from sterad.encoders import Network, build_network
from sterad.encoders.heads import HIDDEN_UNITS
from sterad.engine.passes import Passes
from sterad.errors import SteradError
from sterad.memory.checks import check_size, retrieve_checked
from sterad.methods.base.additions import Addition, add_losses
from sterad.methods.base.boundaries import BoundaryConfig, TaskCounter
from sterad.methods.base.compatibility import check_compatible, check_views
from sterad.methods.base.encoded_memory import EncodedMemory
from sterad.methods.base.interference import loss_rise, ranking_cost
from sterad.methods.base.learner import (
    FORWARD_COST,
    Cost,
    Learner,
    Problem,
    check_batch,
    check_inputs,
)
from sterad.methods.base.parts import ADDITIONS, Parts, ReplayConfig, load_memory, make_parts
from sterad.methods.base.review import review
from sterad.methods.base.teacher import Teacher
from sterad.methods.base.view_passes import ViewPasses
from sterad.saved_state import check_like, tensors_of
from sterad.seeds import generator
from sterad.streams import Batch, Boundary


class Replay(ViewPasses, Learner):
    """A network, a memory and an optimizer; a method overrides one or two of the four steps."""

    Config = ReplayConfig
    config: ReplayConfig
    trains_without_memory: bool = True
    """Whether to step on a stream batch while the memory is still empty."""
    replays: ClassVar[bool] = True
    """Whether steps on the stream use samples of the memory."""
    own_additions: ClassVar[tuple[type[Addition], ...]] = ()
    """Additions whose loss is part of the method's own."""
    supervises_stages: ClassVar[bool] = False
    """Whether `stage_weight` may compute `loss` again on outputs of earlier stages: all outputs are
    from `engine.forward`, and nothing else changes or is drawn but views."""
    draws_per_step: ClassVar[int] = 1
    """How often a step retrieves samples."""
    head_classifier: ClassVar[str | None] = "head"
    """The value of `config.classifier` for predictions by the head; None if its outputs are not
    classes."""

    def __init__(self, config: ReplayConfig, problem: Problem, parts: Parts) -> None:
        """Draw the network from the problem's seed; see `build_learner`."""
        super().__init__(config, problem)
        check_compatible(type(self), config, parts)
        self.parts, self.memory, self.augmentation = parts, parts.memory, parts.augmentation
        self.retrieval, self._capacity = parts.retrieval, parts.memory.capacity
        self.rng = {name: generator(problem.seed, name) for name in ("network", "views")}
        network = self.make_network(problem.classes or 1)
        for one in ADDITIONS:
            if one.is_on(config):
                one.extend_network(self, network)
        self.engine = parts.engine(network, problem.execution, parts.optimizer)
        check_views(self)
        self.encoded_memory = EncodedMemory(self.memory)
        self.fitted: Classifier | None = None
        self.teacher: Teacher | None = None
        """A slow copy of the network, made by the addition that needs it."""
        self.additions = [one(self) for one in ADDITIONS if one.is_on(config)]
        self.tasks: TaskCounter | None = None
        if isinstance(config, BoundaryConfig) or config.review:
            source = config if isinstance(config, BoundaryConfig) else BoundaryConfig()
            self.tasks = TaskCounter(source, problem.announced)
        if config.review:
            self.rng["review"] = generator(problem.seed, "review")

    @classmethod
    def default_parts(cls, config: Any, problem: Problem) -> Parts:
        """Return the parts that the names in `config` and `problem` stand for."""
        return make_parts(config, problem, cls.head_classifier)

    @classmethod
    def cost(cls, config: Any, batch_size: int, memory: int, samples: float) -> Cost:
        """Return the cost of all steps on a stream batch, and of encoding the memory."""
        replayed: int = config.memory_batch
        step = cls.step_cost(config, batch_size, replayed)
        step += sum(
            one.cost(config, batch_size + replayed) for one in ADDITIONS if one.is_on(config)
        )
        step += cls.draws_per_step * ranking_cost(cls, config, batch_size)
        encoded = 0 if config.classifier == cls.head_classifier else FORWARD_COST * memory
        return Cost(step * config.memory_iterations, encoded)

    @classmethod
    def step_cost(cls, config: Any, batch_size: int, replayed: int) -> float:
        """Return the cost of one step's loss: all views of both batches."""
        return float((batch_size + replayed) * sum(cls.count_views(config)))

    @property
    def network(self) -> Network:
        """The network in training."""
        return self.engine.network

    @property
    def images(self) -> int:
        """Images passed through the network in training, all views counted."""
        return self.engine.images

    @property
    def passes(self) -> Sequence[tuple[Network, Passes]]:
        """The passes of the steps; those of copies, such as a teacher, cost as much."""
        return [(self.network, self.engine.passes)]

    def make_network(self, outputs: int) -> Network:
        """Return a new network with weights drawn from the seed and so many outputs of the head."""
        width = None if self.config.head == "none" else outputs
        hidden = self.config.head_width or HIDDEN_UNITS
        head, rng = self.config.head, self.rng["network"]
        return build_network(self.parts.encoder, head, width, rng, hidden)

    def observe(self, batch: Batch) -> Tensor | None:
        """Retrieve, then loss, then step, then remember."""
        self.see(batch)
        loss = None
        for _ in range(self.config.memory_iterations):
            retrieved = self.retrieve(batch)
            if self.trains_without_memory or len(retrieved):
                for addition in self.additions:
                    addition.before_loss(self, retrieved, batch)
                loss = self.loss(retrieved, batch)
                loss = add_losses(self, loss, retrieved, batch)
                self.step(loss)
                for addition in self.additions:
                    addition.after_step(self)
        self.remember(batch)
        check_size(self.memory, self._capacity)
        return None if loss is None else loss.detach()

    def retrieve(self, batch: Batch) -> Batch:
        """Return the images replayed beside `batch`, which is not in memory yet."""
        return self.draw(self.config.memory_batch, batch)

    def draw(self, n: int, batch: Batch) -> Batch:
        """Return at most `n` samples of the memory, chosen by the retrieval."""
        rise = partial(loss_rise, self, batch)
        return retrieve_checked(self.retrieval, self.memory, n, batch, rise)

    def virtual_loss(self, batch: Batch) -> Tensor:
        """Return the loss of the stream batch alone."""
        return self.loss(Batch(torch.empty(0), torch.empty(0, dtype=torch.int64)), batch)

    def candidate_losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each candidate from raw outputs of the head, (n, outputs): (n,)."""
        targets = torch.searchsorted(self.seen, labels)
        scores = self.class_scores(outputs)
        return F.cross_entropy(scores, self.engine.to_device(targets), reduction="none")

    @abstractmethod
    def loss(self, retrieved: Batch, batch: Batch) -> Tensor:
        """Return the loss of the retrieved and the stream batch."""

    def step(self, loss: Tensor) -> None:
        """Take a step on the loss of the retrieved and the stream batch."""
        self.take_step(loss)

    def take_step(self, loss: Tensor) -> None:
        """Backpropagate `loss` and take an optimizer step."""
        self.engine.drop_gradients()
        self.engine.backward(loss)
        for addition in self.additions:
            addition.add_gradients(self)
        self.engine.step(self.config.clip)

    def remember(self, batch: Batch) -> None:
        """Offer the raw stream batch to the memory."""
        self.memory.update(batch)

    def see(self, batch: Batch) -> None:
        """Check a batch, detect a new task, and widen the head for labels beyond it."""
        check_batch(batch, self.problem)
        if self.tasks is not None and self.tasks.detect(batch.y):
            self._finish_task()
        if self._add_classes(batch.y) and self.head_classifier is not None:
            outputs = int(self.seen[-1]) + 1
            if outputs > self.network.outputs:
                self.widen(outputs)

    def boundary(self, event: Boundary) -> None:
        """Handle the announced end of a task."""
        if self.tasks is not None and self.tasks.announce():
            self._finish_task()

    def _finish_task(self) -> None:
        if self.config.review:
            review(self)
        self.end_task()

    def end_task(self) -> None:
        """Handle the end of a task; `seen` holds the classes up to it."""

    def widen(self, outputs: int) -> None:
        """Grow the head to `outputs`; existing rows and their optimizer state stay."""
        self.engine.widen(outputs, self.rng["network"])
        for addition in self.additions:
            addition.widen(self)

    def class_scores(self, outputs: Tensor) -> Tensor:
        """Return scores of the seen classes from raw outputs of the head: (n, outputs)."""
        return (F.normalize(outputs) if self.has_unit_logits else outputs)[:, self.seen]

    def immediate_scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the seen classes from the head, or from a newly fitted classifier."""
        if self.head_classifier is None:
            self.consolidate()
            return self.scores(x)
        return self.evaluate(x, lambda network, x: self.class_scores(network(x).cpu())), self.seen

    def evaluate(self, x: Tensor, function: Callable[[Network, Tensor], Tensor]) -> Tensor:
        """Return `function(network, x)` of the network that predicts, in evaluation mode."""
        check_inputs(x, self.problem)
        return self.engine.evaluate(function, x, self.predictor)

    def consolidate(self) -> None:
        """Fit the classifier, if it needs a fit, to unit-length features of the memory."""
        if (classifier := self.parts.classifier) is not None:
            self.fitted = classifier.fit(self.memory_features())

    def memory_features(self) -> list[tuple[Tensor, Tensor]]:
        """Return unit-length features of the memory and their labels, in batches."""
        pairs = self.encoded_memory.encode(self.engine, self.predictor)
        return [(F.normalize(h), y) for h, y in pairs]

    def features(self, x: Tensor) -> Tensor:
        """Return unit-length features of x on the network's device: (n, features)."""
        return self.evaluate(x, lambda network, x: network.features(x, unit=True))

    def scores(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the fitted classifier, or of the head."""
        if self.parts.classifier is None:
            return self.immediate_scores(x)
        if (fitted := self.fitted) is None:
            raise SteradError("no classifier is fitted yet: call consolidate() before scores()")
        scores = self.evaluate(x, lambda net, x: fitted.scores(net.features(x, unit=True)).cpu())
        return scores, fitted.labels.cpu()

    @property
    def predictor(self) -> Network:
        """The network that predicts: the one in training, its teacher or their average."""
        if self.teacher is None:
            return self.network
        return self.teacher.predictor(self.network, self.config.predict_with)

    def memory_counts(self, classes: int) -> Tensor | None:
        """Return the number of stored images of each class."""
        return self.memory.class_counts(classes) if self.memory.capacity else None

    def state_dict(self) -> dict[str, Any]:
        """Return weights, optimizer, memory, tasks, additions and the states of all generators."""
        return (
            super().state_dict()
            | self.engine.state_dict()
            | {name: one for name, one in self._optional_states() if one}
            | {
                "memory": self.memory.state_dict(),
                "rng": {name: rng.get_state() for name, rng in self.rng.items()},
                "tasks": None if self.tasks is None else self.tasks.state_dict(),
            }
        )

    def _optional_states(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the states of parts that often have none."""
        yield "retrieval", self.retrieval.state_dict()
        for addition in self.additions:
            yield addition.switch, addition.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state, whose head may be wider than this one's."""
        if (outputs := state["outputs"]) > self.network.outputs:
            widths = [len(one) for one in tensors_of(state["network"]) if one.dim()]
            if outputs not in widths:  # a wrong number could take all memory
                raise ValueError(f"no weights have {outputs} outputs")
            self.widen(outputs)
        self.engine.check_state(state)
        states = {name: rng.get_state() for name, rng in self.rng.items()}
        check_like(state["rng"], states, "rng")
        for addition in self.additions:
            addition.check_state(state.get(addition.switch, {}))
        super().load_state_dict(state)
        load_memory(self.memory, state["memory"], self.seen, self.problem.input_shape)
        self.engine.load_state_dict(state)
        for name, rng in self.rng.items():
            rng.set_state(state["rng"][name])
        if self.tasks is not None:
            self.tasks.load_state_dict(state["tasks"])
        for addition in self.additions:
            addition.load_state_dict(state.get(addition.switch, {}))
        if "retrieval" in state:
            self.retrieval.load_state_dict(state["retrieval"])
