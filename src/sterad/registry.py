"""Registries: components (methods, datasets, streams, encoders, ...) by name."""

import importlib.metadata
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

from sterad.errors import SteradError, suggest_name

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
            if problem := self.problem_of(component):
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

    def problem_of(self, component: Any) -> str | None:
        """Return why a component cannot be used, or None."""
        return self.find_problem(component) or _find_ignored_fields(component)

    def name_of(self, component: Any) -> str | None:
        """Return the name that a component is registered under, or None."""
        return next((name for name in self if self._components[name] is component), None)

    def resolve(self, name: str) -> str:
        """Return the registered spelling of `name`; raise an error with the nearest known name."""
        if not isinstance(name, str):
            raise SteradError(
                f"the {self.kind} is given as {type(name).__name__}: give a registered name, one "
                f"of {', '.join(self)}"
            )
        if name not in self:
            near = suggest_name(canonical_name(name), [*self._components, *self._aliases])
            raise SteradError(
                f"unknown {self.kind} {name!r}: {near}known are {', '.join(self)} "
                "(--plugin FILE adds yours)"
            )
        return self._main_name(name)

    def __contains__(self, name: str) -> bool:
        self._load_entry_points()
        return self._main_name(name) in self._components

    def __getitem__(self, name: str) -> T:
        return self._components[self.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points()
        return iter(sorted(self._components))

    def qualified_name(self, name: str) -> str:
        """Return the module and class that are registered under `name`."""
        return _qualified_name(self[name])

    def _main_name(self, name: str) -> str:
        spelling = canonical_name(name)
        return self._aliases.get(spelling, spelling)

    def _load_entry_points(self) -> None:
        if self._loaded_entry_points:
            return
        for point in importlib.metadata.entry_points(group=self.group):
            if canonical_name(point.name) in self._components:
                continue
            try:
                component = point.load()
            except Exception as error:
                package = point.dist.name if point.dist else point.value
                raise SteradError(
                    f"the {self.kind} {point.name!r} of the installed package {package!r} fails to "
                    f"load with {type(error).__name__}: {error}; fix or uninstall that package"
                ) from error
            self.register(point.name)(component)
        # Set only after all have loaded, so that a broken plugin fails at every look-up.
        self._loaded_entry_points = True


def _find_ignored_fields(component: Any) -> str | None:
    """Return what is wrong with attributes that look like fields but that dataclasses ignore."""
    config = getattr(component, "Config", component)
    classes: list[Any] = [cls for cls in getattr(config, "__mro__", ()) if is_dataclass(cls)]
    for cls in classes:
        hints = inspect.get_annotations(cls)
        for name, value in vars(cls).items():
            is_value = not (callable(value) or hasattr(value, "__get__"))
            if is_value and name not in hints and not name.startswith("_"):
                kind = "float | None" if value is None else type(value).__name__
                return (
                    f"sets {name} in {cls.__name__} without a type, so that it is no field: write "
                    f"`{name}: {kind} = ...`, or `{name}: ClassVar = ...` for a constant"
                )
        declared = {field.name for field in fields(cls)}
        added = [n for n, h in hints.items() if n not in declared and "ClassVar" not in str(h)]
        if added and "__dataclass_params__" not in vars(cls):
            return (
                f"adds the field {', '.join(added)} in {cls.__name__}, which is not a "
                "dataclass itself: write @dataclass(frozen=True) above it"
            )
    return None


def _qualified_name(component: object) -> str:
    module = getattr(component, "__module__", "?")
    return f"{module}.{getattr(component, '__qualname__', component)}"
