"""`feed`: images that come from a live feed, so that there is nothing to load beforehand."""

from dataclasses import dataclass

from sterad.data.dataset import Dataset
from sterad.data.description import DATASETS, Defaults
from sterad.errors import SteradError


@DATASETS.register("feed")
@dataclass(frozen=True)
class Feed:
    """What a live feed brings; goes with the stream live, from Python."""

    def load(self) -> Dataset:
        """Refuse: a feed is followed, not loaded."""
        raise SteradError(
            "a feed cannot be loaded: from Python, run(live_config(...), feed=feed) follows one"
        )

    def defaults(self) -> Defaults:
        """Return a small encoder; there are no tasks to split."""
        return Defaults(width=20, tasks=1, scale=1.0)
