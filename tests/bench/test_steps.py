"""What a step costs, over the best that the bare network can do."""

import pytest
import torch._dynamo.utils

from sterad.bench.interleaved import Turns
from sterad.bench.steps import step_costs
from sterad.bench.subject import Scene
from sterad.engine.execution import Execution

SCENE = Scene(image_size=8, channels=1, classes=5, memory=300, width=16)


@pytest.mark.slow
@pytest.mark.usefixtures("_compiler")
@pytest.mark.filterwarnings("ignore")  # torch's own, about its own internals
def test_a_step_that_is_compiled_has_a_compiled_limit() -> None:
    execution = Execution(threads=1, view_threads=2, compile=True)
    together, alone = step_costs(SCENE, ["agd-fd", "er"], execution, Turns(1))
    assert together.limit in ("in turn", "side by side"), "nothing goes alone"
    assert alone.limit in ("in turn", "compiled")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1
