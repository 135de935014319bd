"""Answers: how long an evaluation takes, beside the way that most code answers."""

import numpy as np
import torch

from sterad.bench.interleaved import Timings, interleaved
from sterad.bench.subject import Scene
from sterad.evaluation.evaluate import predict_all
from sterad.experiments.execution import Execution
from sterad.methods.replay import Replay
from sterad.streams.pixels import to_unit

SMALL = 10
"""Images in a batch of the usual way: those of the stream."""


def answer_timings(scene: Scene, execution: Execution, images: int, rounds: int) -> Timings:
    """Return the seconds of `images` answers: ours, and in small batches by the plain network."""
    learner = scene.learner("er", execution)
    assert isinstance(learner, Replay)
    pixels = (scene.batch(images).x * 255).byte().numpy()

    def small() -> None:
        learner.network.eval()
        with torch.no_grad():
            for start in range(0, images, SMALL):
                x = to_unit(torch.from_numpy(pixels[start : start + SMALL]))
                learner.decide(learner.network(learner.place(x)).cpu()).argmax(1)
        learner.network.train()

    acts = {"sterad": lambda: predict_all(learner, pixels, np.arange(images)), "small": small}
    return interleaved(acts, rounds)
