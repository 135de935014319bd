"""Which values of a run differ from their defaults."""

import dataclasses
from typing import Any

from sterad.experiments.components import KINDS
from sterad.experiments.config import RunConfig


def changed_fields(config: RunConfig) -> list[str]:
    """Return the paths of values that differ from their defaults, without the seed.

    Tasks, scale and width have the defaults of the dataset, the encoder that of the method, and the
    weights that predict depend on whether there is a teacher.

    >>> changed_fields(RunConfig.of(method="er", stream="blurry", lr=0.5, tasks=2, memory=50))
    ['method.lr', 'stream.tasks', 'memory']
    """
    special = vars(config.dataset.fields.defaults()) | {
        "encoder": config.learner_class.default_encoder,
        "predict_with": getattr(config.method.fields, "default_predict_with", None),
    }
    owners = {f"{kind}.": getattr(config, kind).fields for kind in KINDS} | {"": config.settings}
    return [
        prefix + field.name
        for prefix, owner in owners.items()
        if dataclasses.is_dataclass(owner)
        for field in dataclasses.fields(owner)
        if field.name != "seed" and not _is_default(owner, field, special)
    ]


def _is_default(owner: Any, field: Any, special: dict[str, Any]) -> bool:
    value = getattr(owner, field.name)
    if field.default is None and field.name in special:
        return bool(value == special[field.name])
    return bool(value == field.default)
