"""How many images each method pushes through the network for one stream batch."""

from typing import Any

from sterad.methods import METHODS

FORWARD = 1 / 3
"""What an image costs that is only pushed forward."""


def images_per_step(method: str, fields: Any, batch: int) -> float:
    """Return the images of one step, forward and back; those only pushed forward are a third.

    >>> fields = METHODS["agd-fd"].Config()
    >>> images_per_step("agd-fd", fields, 10)
    444
    """
    drawn = {"finetune": 0, "lump": batch}
    memory = drawn.get(method, getattr(fields, "memory_batch", 0))
    both = batch + memory
    special = {
        "gdumb": 0,
        "joint": 0,
        "lump": batch * getattr(fields, "views", 2),
        "derpp": (both + memory) * shown(method, fields),
        "dvc": 2 * both + FORWARD * 2 * getattr(fields, "candidates", 0),
        "ocm": 32 * both + memory + FORWARD * 17 * memory,
    }
    pushed = special.get(method, both * shown(method, fields))
    taught = (2 + FORWARD) * both if getattr(fields, "teacher", "none") != "none" else 0
    return (pushed + taught) * getattr(fields, "memory_iterations", 1)


def shown(method: str, fields: Any) -> int:
    """Return how often an image is shown: in its views and, beside several, as it is."""
    views: int = getattr(fields, "views", 1)
    alone = views == 1 and not getattr(METHODS[method], "includes_raw", False)
    return 1 if alone or getattr(fields, "augmentation", "") == "none" else views + 1
