"""Build sterad_sphere from src/sterad/sphere and the few modules of sterad that it imports."""

import ast
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path(__file__).resolve().parent.parent / "src" / "sterad"


def imported_modules(path: Path) -> set[str]:
    """Return the modules of sterad outside sterad.sphere that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        found.update(name for name in names if name.split(".")[0] == "sterad")
    return {name for name in found if not re.match(r"sterad\.sphere(\.|$)", name)}


def shared_modules(paths: list[Path]) -> dict[str, Path]:
    """Return the modules of sterad that the files need, with those that they need in turn."""
    modules: dict[str, Path] = {}
    waiting = list(paths)
    while waiting:
        for name in imported_modules(waiting.pop()) - set(modules):
            path = SOURCE / f"{name.removeprefix('sterad.')}.py"
            if name.count(".") != 1 or not path.is_file():
                raise RuntimeError(f"sterad.sphere imports {name}, which is no single module")
            modules[name] = path
            waiting.append(path)
    return modules


def renamed(text: str, shared: dict[str, Path]) -> str:
    """Return source code with the modules under their names in sterad_sphere."""
    names = "|".join(re.escape(name.removeprefix("sterad.")) for name in sorted(shared))
    text = re.sub(r"\bsterad\.sphere\b", "sterad_sphere", text)
    return re.sub(rf"\bsterad\.({names})\b", r"sterad_sphere.\1", text)


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the renamed modules to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the modules to a temporary folder and include them."""
        laws = sorted((SOURCE / "sphere").rglob("*.py"))
        shared = shared_modules(laws)
        files = {path.relative_to(SOURCE / "sphere"): path for path in laws}
        files |= {Path(path.name): path for path in shared.values()}
        self.folder = tempfile.TemporaryDirectory()
        for target, path in files.items():
            copy = Path(self.folder.name, target)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(renamed(path.read_text("utf-8"), shared), "utf-8")
            build_data["force_include"][str(copy)] = f"sterad_sphere/{target.as_posix()}"
        typed = Path(self.folder.name, "py.typed")
        typed.touch()
        build_data["force_include"][str(typed)] = "sterad_sphere/py.typed"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        self.folder.cleanup()
