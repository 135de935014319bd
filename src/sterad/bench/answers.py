"""Answers: how long an evaluation takes, beside the way that most code answers."""

from copy import deepcopy

import numpy as np
import torch

from sterad.bench.interleaved import Timings, Turns, interleaved
from sterad.bench.subject import Scene
from sterad.engine.execution import Execution
from sterad.evaluation.evaluate import predict_all
from sterad.methods.base.replay import Replay
from sterad.streams.batch import to_unit

SMALL = 10
"""Images in a batch of the usual way: those of the stream."""


def answer_timings(scene: Scene, execution: Execution, images: int, turns: Turns) -> Timings:
    """Return the seconds of `images` answers: ours, and in small batches by the plain network."""
    learner = scene.learner("er", execution)
    assert isinstance(learner, Replay)
    pixels = (scene.batch(images).x * 255).byte().numpy()
    bare = deepcopy(learner.network).eval()
    bare.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]

    @torch.no_grad()
    def small() -> None:
        for some in to_unit(torch.from_numpy(pixels)).to(learner.engine.device).split(SMALL):
            bare(some).argmax(1).cpu()

    acts = {"sterad": lambda: predict_all(learner, pixels, np.arange(images)), "small": small}
    return interleaved(acts, turns)
