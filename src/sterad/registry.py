"""Names to things: methods, datasets, streams, encoders, from the package or from anyone's file."""

import difflib
import hashlib
import importlib.metadata
import importlib.util
import inspect
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from sterad.errors import SteradError

T = TypeVar("T")
SOURCE = "__sterad_source__"
"""Attribute of a plugin's module: the bytes of its file when it was loaded."""


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

    def __init__(
        self, kind: str, group: str, flaw: Callable[[Any], str | None] = lambda _: None
    ) -> None:
        """Name the `kind` for messages and the entry-point `group` for installed plugins.

        flaw: says why a thing cannot be registered, in words that follow its name; None if it can.
        """
        self.kind = kind
        self.group = group
        self.flaw = flaw
        self._things: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._discovered = False

    def register(self, name: str, alias: tuple[str, ...] = ()) -> Callable[[T], T]:
        """Return a decorator that enters a thing under `name`; a name is entered once."""
        main, others = canonical(name), [canonical(other) for other in alias]

        def enter(thing: T) -> T:
            if flaw := self.flaw(thing) or _undeclared(thing):
                raise SteradError(f"the {self.kind} {main!r} of {_origin(thing)} {flaw}")
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
        if not isinstance(name, str):
            raise SteradError(
                f"the {self.kind} is given as {type(name).__name__}: give a registered name, one "
                f"of {', '.join(self)}"
            )
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
            for point in importlib.metadata.entry_points(group=self.group):
                if canonical(point.name) not in self._things:
                    self.register(point.name)(self._load(point))
            self._discovered = True  # only now: what failed to load fails at each look-up

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


def _undeclared(thing: Any) -> str | None:
    """Say which fields a class adds to a dataclass without being one: they would be ignored."""
    for described in (thing, getattr(thing, "Config", None)):
        if isinstance(described, type) and is_dataclass(described):
            names = {one.name for one in fields(described)}
            hints = inspect.get_annotations(described)
            added = [
                n for n, hint in hints.items() if n not in names and "ClassVar" not in str(hint)
            ]
            if added and "__dataclass_params__" not in vars(described):
                return (
                    f"adds the field {', '.join(added)} in {described.__name__}, which is not a "
                    "dataclass itself: write @dataclass(frozen=True) above it"
                )
    return None


def _origin(thing: object) -> str:
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', thing)}"


def source_digest(thing: object) -> str | None:
    """Return a hash of the files that define a class outside this package; None for our own.

    A class and those that it extends count, and the user's own modules that their files import, but
    no installed packages. A class typed into an interpreter has no file and counts by its name.
    """
    classes = thing.__mro__ if isinstance(thing, type) else (thing,)
    foreign = [one for one in classes if _is_foreign(getattr(one, "__module__", ""))]
    if not foreign:
        return None
    texts = [_source(one) for one in foreign]
    modules = {
        name: sys.modules[name] for one in foreign if (name := one.__module__) in sys.modules
    }
    texts += [Path(file).read_bytes() for file in sorted(_imported_files(modules))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def _is_foreign(module: str) -> bool:
    package = module.partition(".")[0]
    return package not in {"sterad", "torch", *sys.stdlib_module_names}


def _imported_files(modules: dict[str, ModuleType]) -> set[str]:
    """Return the files of the user's own modules that some modules use, directly or not."""
    found: dict[str, str] = {}
    waiting = list(modules.values())
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            name = value.__name__ if isinstance(value, ModuleType) else None
            name = name or str(getattr(value, "__module__", ""))
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            known = name in found or name in modules or not _is_foreign(name)
            if module is not None and file and not known and not _is_installed(file):
                found[name] = file
                waiting.append(module)
    return set(found.values())


def _is_installed(file: str) -> bool:
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts or not file.endswith(".py")


def _source(thing: Any) -> bytes:
    """Return the file of a class as it was when it was loaded, or its name."""
    loaded = getattr(sys.modules.get(thing.__module__), SOURCE, None)
    if isinstance(loaded, bytes):
        return loaded
    try:
        return Path(inspect.getfile(thing)).read_bytes()
    except (OSError, TypeError):
        return _origin(thing).encode()


def load_plugin(path: str | Path) -> None:
    """Import a user's file, so that what it registers is known by name; again if it has changed."""
    file = Path(path).resolve()
    if not file.is_file():
        raise SteradError(f"the plugin {str(path)!r} is not a file: give the path of a Python file")
    name = f"sterad_plugin_{file.stem}_{zlib.crc32(str(file).encode()):x}"
    source = file.read_bytes()
    if getattr(sys.modules.get(name), SOURCE, None) == source:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SteradError(f"the plugin {str(path)!r} is not Python: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    setattr(module, SOURCE, source)
    sys.modules[name] = module
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # a plugin may import files beside it, now or later
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SteradError | KeyboardInterrupt):
            raise
        raise SteradError(
            f"the plugin {str(path)!r} fails to import with {type(error).__name__}: {error}"
        ) from error
