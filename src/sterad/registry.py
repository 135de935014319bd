"""Registries: components (methods, datasets, streams, encoders, ...) by name."""

import difflib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

from sterad.errors import SteradError

T = TypeVar("T")


def canonical_name(name: str) -> str:
    """Return a name in lower case with dashes.

    >>> canonical_name("ER_ACE")
    'er-ace'
    """
    return name.strip().lower().replace("_", "-")


class Registry(Generic[T]):
    """The components of one kind by name: built in, from plugins, or from entry points.

    >>> shapes: Registry[type] = Registry("shape", "sterad.shapes")
    >>> @shapes.register("ball", alias=("sphere",))
    ... class Ball: ...
    >>> shapes["sphere"] is Ball, list(shapes)
    (True, ['ball'])
    """

    def __init__(
        self, kind: str, group: str, find_problem: Callable[[Any], str | None] = lambda _: None
    ) -> None:
        """Create an empty registry.

        kind: what a component is called in messages; group: the entry-point group of installed
        plugins; find_problem: returns why a component cannot be registered, or None.
        """
        self.kind = kind
        self.group = group
        self.find_problem = find_problem
        self._components: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._loaded_entry_points = False

    def register(self, name: str, alias: tuple[str, ...] = ()) -> Callable[[T], T]:
        """Return a decorator that registers a component under `name` and its aliases."""
        main, aliases = canonical_name(name), [canonical_name(other) for other in alias]

        def add(component: T) -> T:
            if problem := self.find_problem(component) or _undeclared_fields(component):
                raise SteradError(
                    f"the {self.kind} {main!r} of {_qualified_name(component)} {problem}"
                )
            for spelling in (main, *aliases):
                known = self._components.get(self._aliases.get(spelling, spelling))
                if known is not None and _qualified_name(known) != _qualified_name(component):
                    raise SteradError(
                        f"the {self.kind} {spelling!r} is already registered by "
                        f"{_qualified_name(known)}: register {_qualified_name(component)} under "
                        "another name"
                    )
            self._components[main] = component
            self._aliases.update(dict.fromkeys(aliases, main))
            return component

        return add

    def resolve(self, name: str) -> str:
        """Return the registered spelling of `name`; raise an error with the nearest known name."""
        if not isinstance(name, str):
            raise SteradError(
                f"the {self.kind} is given as {type(name).__name__}: give a registered name, one "
                f"of {', '.join(self)}"
            )
        self._load_entry_points()
        spelling = canonical_name(name)
        spelling = self._aliases.get(spelling, spelling)
        if spelling not in self._components:
            near = difflib.get_close_matches(spelling, [*self._components, *self._aliases], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            known = ", ".join(sorted(self._components))
            raise SteradError(
                f"unknown {self.kind} {name!r}: {hint}known are {known} (--plugin FILE adds yours)"
            )
        return spelling

    def __contains__(self, name: str) -> bool:
        self._load_entry_points()
        spelling = canonical_name(name)
        return spelling in self._components or spelling in self._aliases

    def __getitem__(self, name: str) -> T:
        return self._components[self.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points()
        return iter(sorted(self._components))

    def qualified_name(self, name: str) -> str:
        """Return the module and class that are registered under `name`."""
        return _qualified_name(self[name])

    def _load_entry_points(self) -> None:
        if not self._loaded_entry_points:
            for point in importlib.metadata.entry_points(group=self.group):
                if canonical_name(point.name) not in self._components:
                    self.register(point.name)(self._load(point))
            # Set only after all have loaded, so that a broken plugin fails at every look-up.
            self._loaded_entry_points = True

    def _load(self, point: importlib.metadata.EntryPoint) -> T:
        try:
            component: T = point.load()
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            raise SteradError(
                f"the {self.kind} {point.name!r} of the installed package {package!r} fails to "
                f"load with {type(error).__name__}: {error}; fix or uninstall that package"
            ) from error
        return component


def _undeclared_fields(component: Any) -> str | None:
    """Return which fields a subclass of a dataclass adds without the decorator, else None.

    Such fields would be ignored.
    """
    for cls in (component, getattr(component, "Config", None)):
        if isinstance(cls, type) and is_dataclass(cls):
            names = {field.name for field in fields(cls)}
            hints = inspect.get_annotations(cls)
            added = [
                n for n, hint in hints.items() if n not in names and "ClassVar" not in str(hint)
            ]
            if added and "__dataclass_params__" not in vars(cls):
                return (
                    f"adds the field {', '.join(added)} in {cls.__name__}, which is not a "
                    "dataclass itself: write @dataclass(frozen=True) above it"
                )
    return None


def _qualified_name(component: object) -> str:
    module = getattr(component, "__module__", "?")
    return f"{module}.{getattr(component, '__qualname__', component)}"
