"""Plugins: load a user's file, and hash the code that a component depends on."""

import hashlib
import importlib.util
import inspect
import os
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

from sterad.errors import SteradError

SOURCE_ATTRIBUTE = "__sterad_source__"
"""Attribute of a plugin module: the bytes of its file when it was loaded."""


def load_plugin(path: str | Path) -> None:
    """Import a user's file, which registers its components; import it again if it has changed."""
    try:
        file = Path(path).resolve()
        source = file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise SteradError(
            f"the plugin {str(path)!r} is not a file: give the path of a Python file"
        ) from error
    name = f"sterad_plugin_{file.stem}_{zlib.crc32(os.fsencode(file)):x}"
    if getattr(sys.modules.get(name), SOURCE_ATTRIBUTE, None) == source:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SteradError(f"the plugin {str(path)!r} is not Python: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    setattr(module, SOURCE_ATTRIBUTE, source)
    sys.modules[name] = module
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # a plugin may import files beside it, also later
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise SteradError(
            f"the plugin {str(path)!r} fails to import with {type(error).__name__}: {error}"
        ) from error


def source_digest(component: object) -> str | None:
    """Return a hash of the user's files that define a component; None for one of this package.

    The hash covers the class, its base classes, and the user's modules that their files import,
    but no installed packages. A class without a file (typed into an interpreter) is hashed by name.
    """
    classes = component.__mro__ if isinstance(component, type) else (component,)
    user_classes = [cls for cls in classes if _is_user_module(getattr(cls, "__module__", ""))]
    if not user_classes:
        return None
    texts = [_source_of(cls) for cls in user_classes]
    modules = {
        name: sys.modules[name] for cls in user_classes if (name := cls.__module__) in sys.modules
    }
    texts += [Path(file).read_bytes() for file in sorted(_imported_files(modules))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def _is_user_module(module: str) -> bool:
    package = module.partition(".")[0]
    return package not in {"sterad", "torch", *sys.stdlib_module_names}


def _imported_files(modules: dict[str, ModuleType]) -> set[str]:
    """Return the files of the user's modules that `modules` import, directly or indirectly."""
    found: dict[str, str] = {}
    pending = list(modules.values())
    while pending:
        for value in list(vars(pending.pop()).values()):
            name = value.__name__ if isinstance(value, ModuleType) else None
            name = name or str(getattr(value, "__module__", ""))
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            skip = name in found or name in modules or not _is_user_module(name)
            if module is not None and file and not skip and not _is_installed(file):
                found[name] = file
                pending.append(module)
    return set(found.values())


def _is_installed(file: str) -> bool:
    parts = Path(file).parts
    return "site-packages" in parts or "dist-packages" in parts or not file.endswith(".py")


def _source_of(cls: Any) -> bytes:
    """Return the file of a class as it was when it was loaded, or else the name of the class."""
    loaded = getattr(sys.modules.get(cls.__module__), SOURCE_ATTRIBUTE, None)
    if isinstance(loaded, bytes):
        return loaded
    try:
        return Path(inspect.getfile(cls)).read_bytes()
    except (OSError, TypeError):
        return f"{cls.__module__}.{getattr(cls, '__qualname__', cls)}".encode()
