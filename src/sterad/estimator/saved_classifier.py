"""The saved form of a classifier: plain values and tensors, without the user's objects."""

import dataclasses
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sterad.encoders import count_weights, is_file_function
from sterad.errors import SteradError
from sterad.estimator.finished import FinishedState
from sterad.estimator.inputs import InputFormat
from sterad.estimator.recipe import Recipe, digest_of
from sterad.experiments.checkpoint import load_checkpoint
from sterad.files import reading
from sterad.labels import LabelIndex, to_python_labels
from sterad.methods.base.prediction_copy import refresh
from sterad.methods.base.rollback import replay_of
from sterad.saved_state import check_count, tensors_of

MAX_INPUT_VALUES = 1 << 26
"""Values of one input in a saved classifier; a damaged shape may need any amount of memory."""
MAX_FROZEN_WEIGHTS = 1 << 28
"""Weights of a frozen encoder, which a saved classifier does not contain."""


def state_of(finished: FinishedState) -> dict[str, Any]:
    """Return everything that `restore_state` needs beside the user's objects."""
    learner, recipe = finished.learner(), finished.recipe
    replay = replay_of(learner)
    cache = None if replay is None else replay.encoded_memory.rolling
    digests = recipe.digests()
    plain = {name: _plain(one) for name, one in recipe.params.items() if name not in digests}
    return {
        "params": plain,
        "objects": digests,
        "precision": recipe.execution.precision,
        "labels": list(finished.labels),
        "declared": None if finished.declared is None else list(finished.declared),
        "input_shape": finished.format.shape,
        "feature_names": None if finished.format.names is None else list(finished.format.names),
        "learner": learner.state_dict(),
        "features": None if cache is None else cache.state_dict(),
        "skipped_batches": finished.skipped_batches,
    }


def to_bytes(state: dict[str, Any]) -> bytes:
    """Return a state as bytes, equal ones for equal states: pickled tensors contain addresses."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def from_bytes(content: bytes) -> dict[str, Any]:
    """Return the state that `to_bytes` wrote."""
    state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
    return state


def _plain(value: Any) -> Any:
    """Return a value that is read back without running code."""
    if isinstance(value, Path):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def restore_state(state: dict[str, Any], params: dict[str, Any]) -> FinishedState:
    """Return the state that `state_of` described; `params` contain the user's objects."""
    shape = tuple(state["input_shape"])
    if math.prod(shape) > MAX_INPUT_VALUES:
        raise ValueError(f"its inputs have the shape {shape}")
    recipe = Recipe.of(params | {"precision": state["precision"]}, shape)
    recipe = dataclasses.replace(recipe, params=params)
    check_encoder_size(recipe, state["learner"])
    learner, labels = recipe.build(), to_python_labels(state["labels"])
    learner.load_state_dict(state["learner"])
    if len(learner.seen) and learner.seen[-1] >= len(labels):
        raise ValueError("it knows fewer labels than classes")
    replay = replay_of(learner)
    if replay is not None and (cache := replay.encoded_memory.rolling) is not None:
        if state["features"] is None:
            refresh(learner)
        else:
            cache.load_state_dict(state["features"], replay.network.encoder.features)
    declared, names = state["declared"], state["feature_names"]
    if declared is not None:
        declared = LabelIndex(labels).check(declared)  # refuses another type
    check_count(state["skipped_batches"], "the number of skipped batches")
    return FinishedState(
        recipe,
        learner,
        labels,
        declared,
        InputFormat(shape, None if names is None else tuple(names)),
        state["skipped_batches"],
    )


def check_encoder_size(recipe: Recipe, learner: dict[str, Any]) -> None:
    """Refuse an encoder of more weights than are saved, before it takes memory."""
    problem = recipe.problem
    source = recipe.parts.get("encoder", problem.encoder)
    needed = count_weights(source, problem.input_shape, problem.width, problem.encoder_options)
    storages = {one.untyped_storage().data_ptr(): one for one in tensors_of(learner)}
    saved = sum(one.untyped_storage().nbytes() // one.element_size() for one in storages.values())
    limit = saved if "network" in learner else MAX_FROZEN_WEIGHTS
    if needed is not None and needed > limit:
        raise ValueError(f"its encoder needs {needed:,} weights, more than {limit:,}")


def read_classifier(
    path: str | Path, owner: str, device: str, objects: dict[str, Any]
) -> tuple[dict[str, Any], FinishedState]:
    """Return the arguments and the state of a classifier in a file."""
    if not Path(path).is_file():
        raise SteradError(f"there is no file {str(path)!r}: give the path that save() wrote")
    state = load_checkpoint(Path(path), owner, "give the path of a file that save() wrote")
    with reading(path, "load it with the version of sterad that wrote it, or train again"):
        params = state["params"] | {"device": device}
        digests = dict(state["objects"])
    try:
        others = check_file_function(params.get("encoder"), objects)
        check_objects(digests, others, bool(params.get("frozen")))
    except SteradError as error:
        raise SteradError(f"{path}: {error}") from error
    with reading(path, "load it with the version of sterad that wrote it, or train again"):
        return params | objects, restore_state(state, params | objects)


def check_file_function(saved: Any, objects: dict[str, Any]) -> dict[str, Any]:
    """Return the objects beside an encoder `FILE.py:FUNCTION`, which must be given again.

    Otherwise whoever writes a classifier would choose the file whose code `load` runs.
    """
    if not is_file_function(saved):
        return objects
    if not is_file_function(objects.get("encoder")):
        raise SteradError(
            f"the classifier was made with the encoder {saved!r}, a Python file that load would "
            "run: if you trust it, give it again, as load(path, encoder='FILE.py:FUNCTION')"
        )
    return {name: one for name, one in objects.items() if name != "encoder"}


def check_objects(digests: dict[str, str], objects: dict[str, Any], frozen: bool) -> None:
    """Refuse objects that are missing, not needed, or not those that were saved."""
    if missing := sorted(set(digests) - set(objects)):
        raise SteradError(
            f"the classifier was made with an object as {missing[0]}, which a file cannot contain: "
            f"give it again, as load(path, {missing[0]}=...)"
        )
    if unknown := sorted(set(objects) - set(digests)):
        raise SteradError(
            f"the classifier was not made with an object as {unknown[0]}: load it without"
        )
    for name, value in objects.items():
        if digest_of(value, frozen) != digests[name]:
            raise SteradError(
                f"{name} differs from the object that the classifier was made with: give one of "
                "the same code and values"
                + ("" if frozen or name != "encoder" else "; weights may differ")
            )
