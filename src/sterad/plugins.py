"""Plugins: load a user's file, and hash the code that a component depends on."""

import functools
import hashlib
import importlib.util
import inspect
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from sterad.errors import SteradError

SOURCE_ATTRIBUTE = "__sterad_source__"
"""Attribute of a plugin module: the bytes of its file when it was loaded."""


def load_plugin(path: str | Path) -> ModuleType:
    """Import a user's file, which may register components; import it again if it has changed."""
    try:
        file = Path(path).resolve()
        source = file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
        raise SteradError(
            f"the plugin {str(path)!r} is not a file: give the path of a Python file"
        ) from error
    name = f"sterad_plugin_{file.stem}_{zlib.crc32(os.fsencode(file)):x}"
    if getattr(sys.modules.get(name), SOURCE_ATTRIBUTE, None) == source:
        return sys.modules[name]
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
    return module


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


def object_digest(value: Any) -> str:
    """Return a hash of a user's object: its class, source, weights and attributes.

    Two objects of equal code and equal values have the same hash in every process. A function is
    identified by its source, its default values and the variables that it captures.

    >>> object_digest({"lr": 0.1}) == object_digest({"lr": 0.1}) != object_digest({"lr": 0.2})
    True
    """
    digest = hashlib.sha256()
    _update_digest(digest, value, [])
    return digest.hexdigest()[:16]


def _update_digest(digest: Any, value: Any, inside: list[int]) -> None:
    """Hash a value and what it contains; `inside` are the ids of the values around it."""
    kind = value if isinstance(value, type) else type(value)
    digest.update(f"<{kind.__module__}.{kind.__qualname__}".encode())
    if id(value) in inside:  # a cycle
        return
    inside = [*inside, id(value)]
    if isinstance(value, type):
        digest.update((source_digest(value) or "").encode())
    elif value is None or isinstance(value, bool | int | float | complex | str | bytes | Path):
        digest.update(repr(value).encode())
    elif isinstance(value, ModuleType):
        digest.update(value.__name__.encode())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            digest.update(repr(key).encode())
            _update_digest(digest, value[key], inside)
    elif isinstance(value, list | tuple):
        for item in value:
            _update_digest(digest, item, inside)
    elif isinstance(value, set | frozenset):
        digest.update(repr(sorted(value, key=repr)).encode())
    elif hasattr(value, "__array__") and hasattr(value, "dtype"):
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        # numpy has no bfloat16.
        array = np.asarray(value.float() if str(value.dtype) == "torch.bfloat16" else value)
        digest.update(f"{value.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    elif isinstance(value, FunctionType):
        _update_digest(digest, _function_parts(value), inside)
    else:
        _update_digest(digest, _object_parts(value), inside)


def _function_parts(function: FunctionType) -> list[Any]:
    """Return the code of a function and the values that it uses beside its arguments."""
    captured = [cell.cell_contents for cell in function.__closure__ or ()]
    named = [name for name in _names_of(function.__code__) if name in function.__globals__]
    used = {name: function.__globals__[name] for name in named}
    own = {
        name: one
        for name, one in used.items()
        if _is_user_module(getattr(one, "__module__", None) or type(one).__module__)
        or isinstance(one, bool | int | float | str)
    }
    code = _code_parts(function.__code__)
    defaults = [function.__defaults__, function.__kwdefaults__]
    return [function.__qualname__, code, defaults, captured, own]


def _names_of(code: CodeType) -> list[str]:
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return sorted({*code.co_names, *(name for one in inner for name in _names_of(one))})


def _code_parts(code: CodeType) -> list[Any]:
    consts = [_code_parts(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return [code.co_code, consts, code.co_names, code.co_varnames]


def _object_parts(value: Any) -> list[Any]:
    """Return the class of an object and its state: weights and structure of a torch module."""
    if hasattr(value, "state_dict") and hasattr(value, "modules"):
        kinds = [type(one) for one in value.modules()]
        return [repr(value), sorted(set(kinds), key=str), value.state_dict()]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if callable(value) and hasattr(value, "__qualname__"):  # a builtin
        return [value.__module__, value.__qualname__]
    if hasattr(value, "get_state"):  # a generator of torch
        return [type(value), value.get_state()]
    return [type(value), vars(value) if hasattr(value, "__dict__") else repr(value)]
