"""Study: a grid of runs as a TOML file; running it means running what is missing."""

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.fields import checked, unknown
from sterad.experiments.tuned import tuned_values
from sterad.methods import METHODS
from sterad.results.record import RunRecord
from sterad.results.run_directory import RunDirectory

KEYS = ("title", "tuned", "fixed", "axes", "method")


@dataclass(frozen=True)
class Study:
    """Fixed values, axes whose product is taken, and values of single methods."""

    title: str
    configs: tuple[RunConfig, ...]

    @classmethod
    def from_toml(cls, path: str | Path) -> "Study":
        """Read a study file.

        `tuned` names a file of tuned values a method; above them stand the values of `[fixed]` for
        all runs, above these `[method.NAME]` for one method alone, and above all the values of
        `[axes]`, a list each. Names are those of the command line.
        """
        file = Path(path)
        try:
            raw = tomllib.loads(file.read_text())
        except OSError as error:
            raise SteradError(f"cannot read the study {str(path)!r}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SteradError(f"the study {str(path)!r} is not TOML: {error}") from error
        for key in raw:
            if key not in KEYS:
                raise unknown(key, KEYS, f"the study {str(path)!r}")
        try:
            return cls(raw.get("title", file.stem), _product(raw))
        except SteradError as error:
            raise SteradError(f"in the study {str(path)!r}: {error}") from error

    def missing(self, out: Path) -> tuple[RunConfig, ...]:
        """Return the runs without a record under `out`."""
        return tuple(c for c in self.configs if not RunDirectory(out, c.id).record.exists())

    def records(self, out: Path) -> list[RunRecord]:
        """Return the records that there are under `out`, in the order of the study."""
        found = (RunDirectory(out, config.id).read_record() for config in self.configs)
        return [record for record in found if record is not None]


def _product(raw: Mapping[str, Any]) -> tuple[RunConfig, ...]:
    _check_tables(raw)
    axes: dict[str, list[Any]] = raw.get("axes", {})
    for name, values in axes.items():
        if not isinstance(values, list) or not values:
            raise SteradError(
                f"the axis {name!r} is {values!r}: give a list with at least one value"
            )
    own = {METHODS.resolve(name): values for name, values in raw.get("method", {}).items()}
    fixed, configs = raw.get("fixed", {}), []
    for chosen in itertools.product(*axes.values()):
        point = dict(zip(axes, chosen, strict=True))
        method = METHODS.resolve(checked("method", (fixed | point).get("method", "agd-fd"), str))
        tuned = tuned_values(raw["tuned"], method) if "tuned" in raw else {}
        values = tuned | fixed | own.get(method, {}) | point | {"method": method}
        configs.append(RunConfig.of(**values))
    return tuple(dict.fromkeys(configs))


def _check_tables(raw: Mapping[str, Any]) -> None:
    checked("tuned", raw.get("tuned", ""), str)
    tables = {key: raw[key] for key in ("fixed", "axes", "method") if key in raw}
    if isinstance(raw.get("method"), Mapping):
        tables |= {f"method.{name}": values for name, values in raw["method"].items()}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise SteradError(
                f"{name} = {table!r} is not a table: values go under [fixed], [axes] or "
                "[method.NAME], and the method itself under [fixed] or [axes]"
            )
