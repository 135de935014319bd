"""Own: the base of datasets that are the user's own, of which nothing is known beforehand."""

from dataclasses import dataclass, field
from pathlib import Path

from sterad.data import cache
from sterad.data.description import Defaults
from sterad.data.stored import Stored
from sterad.errors import SteradError


@dataclass(frozen=True)
class Own(Stored):
    """Files of the user; a subclass says which."""

    flip: bool = field(default=False, metadata={"view": True})
    """Whether a mirrored image keeps its class."""

    def found(self, name: str, option: str) -> Path:
        """Return a file or folder of the user: under the root, or else in the working folder."""
        if not name:
            raise SteradError(f"the dataset {self.name} needs {option}: give its path")
        places = (self.place / name, Path(name))
        for path in places:
            if path.exists():
                return path
        looked = " nor ".join(repr(str(path)) for path in dict.fromkeys(places))
        raise SteradError(f"there is neither {looked}: give {option}, and --root where it lies")

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
