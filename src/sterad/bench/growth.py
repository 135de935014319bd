"""Growth: what a step costs when the stream, the memory, the classes or the images get larger.

States of both sizes are made and their steps take turns. But for larger images, the network is a
linear layer, so that nothing hides behind it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sterad.bench.interleaved import Spread, Turns, interleaved
from sterad.bench.subject import Scene
from sterad.engine.execution import Execution
from sterad.methods.base.replay import Replay

TOGETHER = 20
"""Steps of a linear layer that are timed as one, a few milliseconds each."""


@dataclass(frozen=True)
class Growth:
    """One step at a larger size over one at a smaller."""

    what: str
    small: int
    large: int
    ratio: Spread


def growths(scene: Scene, execution: Execution, turns: Turns) -> Iterator[Growth]:
    """Yield how a step of ER grows with the stream, the memory, the classes and the images."""
    thin, execution = replace(scene, encoder="flatten"), replace(execution, compile=False)

    def after(steps: int) -> Replay:
        return thin.after(steps * thin.batch_size, execution)

    def filled(memory: int) -> Replay:
        return replace(thin, memory=memory).after(10 * memory, execution)

    def of_classes(classes: int) -> Replay:
        return replace(thin, classes=classes).after(0, execution)

    def of_side(side: int) -> Replay:
        return replace(scene, image_size=side).after(0, execution)

    yield _growth("steps of the stream", (1_000, 100_000), after, turns)
    yield _growth("images in memory", (1_000, 100_000), filled, turns)
    yield _growth("classes", (10, 1_000), of_classes, turns)
    yield _growth("pixels a side", (16, 32), of_side, turns)
    yield _growth("pixels a side", (16, 64), of_side, turns)


def _growth(
    what: str, sizes: tuple[int, int], made: Callable[[int], Replay], turns: Turns
) -> Growth:
    steps = {str(size): _several(made(size)) for size in sizes}
    small, large = map(str, sizes)
    return Growth(what, *sizes, interleaved(steps, turns).ratio(large, small))


def _several(learner: Replay) -> Callable[[], None]:
    shape, classes = learner.problem.input_shape, learner.problem.classes or 1
    batch = Scene(shape[-1], shape[0], classes).batch(seed=1)
    together = TOGETHER if learner.problem.encoder == "flatten" else 1

    def steps() -> None:
        for _ in range(together):
            learner.observe(batch)

    return steps
