"""Own: the base of datasets that are the user's own, of which nothing is known beforehand."""

from dataclasses import dataclass, field

from sterad.data import cache
from sterad.data.description import Defaults
from sterad.data.stored import Stored


@dataclass(frozen=True)
class Own(Stored):
    """Files of the user; a subclass says which."""

    flip: bool = field(default=False, metadata={"view": True})
    """Whether a mirrored image keeps its class."""

    def mirrored(self) -> bool:
        """Say whether a mirrored image keeps its class."""
        return self.flip

    def defaults(self) -> Defaults:
        """Return tasks and blur from the counts, which the cache knows from the second time on."""
        entry = cache.find(self.place, self.key)
        if entry is not None:
            classes, images = len(entry.facts["class_names"]), len(entry.arrays["train_labels"])
        else:
            contents = self.contents()
            classes = self.classes or len(contents.class_names)
            labels = contents.train.labels
            images = len(self.choose(labels, len(contents.class_names), "train"))
        return Defaults.for_counts(classes, images)
