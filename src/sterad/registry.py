"""Names to things: methods, datasets, streams, encoders, from the package or from anyone's file."""

import difflib
import importlib.metadata
import importlib.util
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from sterad.errors import SteradError

T = TypeVar("T")


def canonical(name: str) -> str:
    """Spell a name the house's way.

    >>> canonical("ER_ACE")
    'er-ace'
    """
    return name.strip().lower().replace("_", "-")


class Registry(Generic[T]):
    """A table from names to things of one kind, open to plugins and to entry points.

    >>> shapes: Registry[type] = Registry("shape", "sterad.shapes")
    >>> @shapes.register("ball", alias=("sphere",))
    ... class Ball: ...
    >>> shapes["sphere"] is Ball, list(shapes)
    (True, ['ball'])
    """

    def __init__(self, kind: str, group: str) -> None:
        """Name the `kind` for messages and the entry-point `group` for installed plugins."""
        self.kind = kind
        self.group = group
        self._things: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._discovered = False

    def register(self, name: str, alias: tuple[str, ...] = ()) -> Callable[[T], T]:
        """Return a decorator that enters a thing under `name`; a name is entered once."""
        main, others = canonical(name), [canonical(other) for other in alias]

        def enter(thing: T) -> T:
            for spelled in (main, *others):
                known = self._things.get(self._aliases.get(spelled, spelled))
                if known is not None and _origin(known) != _origin(thing):
                    raise SteradError(
                        f"the {self.kind} {spelled!r} is already registered by {_origin(known)}: "
                        f"register {_origin(thing)} under another name"
                    )
            self._things[main] = thing
            self._aliases.update(dict.fromkeys(others, main))
            return thing

        return enter

    def resolve(self, name: str) -> str:
        """Return the registered spelling of `name`, or say which names are near it."""
        self._discover()
        spelled = canonical(name)
        spelled = self._aliases.get(spelled, spelled)
        if spelled not in self._things:
            near = difflib.get_close_matches(spelled, [*self._things, *self._aliases], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise SteradError(
                f"unknown {self.kind} {name!r}: {hint}known are {', '.join(sorted(self._things))} "
                "(--plugin FILE adds your own)"
            )
        return spelled

    def __contains__(self, name: str) -> bool:
        self._discover()
        spelled = canonical(name)
        return spelled in self._things or spelled in self._aliases

    def __getitem__(self, name: str) -> T:
        return self._things[self.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._things))

    def origin(self, name: str) -> str:
        """Say which module a registered thing comes from."""
        return _origin(self[name])

    def _discover(self) -> None:
        if not self._discovered:
            self._discovered = True
            for point in importlib.metadata.entry_points(group=self.group):
                if canonical(point.name) not in self._things:
                    self.register(point.name)(self._load(point))

    def _load(self, point: importlib.metadata.EntryPoint) -> T:
        try:
            thing: T = point.load()
        except Exception as error:
            owner = point.dist.name if point.dist else point.value
            raise SteradError(
                f"the {self.kind} {point.name!r} of the installed package {owner!r} fails to load "
                f"with {type(error).__name__}: {error}; mend or uninstall that package"
            ) from error
        return thing


def _origin(thing: object) -> str:
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', thing)}"


def load_plugin(path: str | Path) -> None:
    """Import a user's file, so that what it registers is known by name; once is enough."""
    file = Path(path).resolve()
    if not file.is_file():
        raise SteradError(f"the plugin {str(path)!r} is not a file: give the path of a Python file")
    name = f"sterad_plugin_{file.stem}_{zlib.crc32(str(file).encode()):x}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SteradError(f"the plugin {str(path)!r} is not Python: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SteradError) or not isinstance(error, Exception):
            raise
        raise SteradError(
            f"the plugin {str(path)!r} fails to import with {type(error).__name__}: {error}"
        ) from error
