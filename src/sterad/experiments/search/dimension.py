"""Dimension: one field of a method and the values that it may take."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sterad.errors import SteradError
from sterad.validation import check_value, unknown_field

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

KEYS = ("values", "low", "high", "log", "only")


@dataclass(frozen=True)
class Dimension:
    """A list of values, or all numbers from `low` to `high`."""

    name: str
    values: tuple[Any, ...] = ()
    """Empty for a range."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    """Whether the orders of magnitude of a range are equally likely, as suits learning rates."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """Values of other fields without which this one means nothing and is not varied."""

    @classmethod
    def of(cls, name: str, raw: Any, hint: Any) -> "Dimension":
        """Read `[1, 2]`, `{ values = [1, 2] }` or `{ low = 1e-4, high = 0.1, log = true }`."""
        table = {"values": raw} if isinstance(raw, list) else raw
        if not isinstance(table, dict):
            raise SteradError(
                f"{name} = {raw!r} is neither a list of values nor a range: give [{raw!r}], or "
                "{ low = ..., high = ..., log = true }"
            )
        for key in table:
            if key not in KEYS:
                raise unknown_field(key, KEYS, f"the dimension {name!r}")
        if "values" not in table:
            return cls._range(name, table, hint)
        values = check_value(name, table["values"], list)
        if not values:
            raise SteradError(f"{name} has an empty list: give at least one value")
        asked = tuple(dict.fromkeys(check_value(name, value, hint) for value in values))
        return cls(name, asked, only=check_value("only", table.get("only", {}), dict))

    @classmethod
    def _range(cls, name: str, table: dict[str, Any], hint: Any) -> "Dimension":
        if not {"low", "high"} <= table.keys():
            raise SteradError(f"{name} has neither values nor low and high: give one or the other")
        low, high = (check_value(name, table[key], hint) for key in ("low", "high"))
        if not all(isinstance(end, int | float) and math.isfinite(end) for end in (low, high)):
            raise SteradError(
                f"{name} from {low!r} to {high!r} is no range of numbers: give a list"
            )
        log = check_value("log", table.get("log", False), bool)
        if not low < high or (log and low <= 0):
            rule = "above 0 and rising" if log else "rising"
            raise SteradError(f"{name} from {low} to {high} is no range: its ends must be {rule}")
        return cls(name, (), low, high, log, check_value("only", table.get("only", {}), dict))

    def distribution(self) -> "BaseDistribution":
        """Return what Optuna calls this."""
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        if self.values:
            return CategoricalDistribution(self.values)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)
