"""Studies by name: the TOML files that ship with the package, and those of the working folder."""

from pathlib import Path

from sterad.errors import SteradError, suggest_name

STUDY_FOLDERS = (
    Path(__file__).parents[1] / "studies",  # in an installed package
    Path(__file__).parents[3] / "studies",  # in a checkout
    Path("studies"),
)


def toml_files(folders: tuple[Path, ...]) -> dict[str, Path]:
    """Return the TOML files of folders by name; a later folder replaces equal names."""
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.toml"))}


def find_study(name: str | Path) -> Path:
    """Return the file of a study, which is given by its path or by its name.

    >>> find_study("paper-clear").name
    'paper-clear.toml'
    """
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path
    files = toml_files(STUDY_FOLDERS)
    if str(name) not in files:
        raise SteradError(
            f"unknown study {str(name)!r}: {suggest_name(str(name), list(files))}known are "
            f"{', '.join(sorted(files))}; or give the path of a .toml file"
        )
    return files[str(name)]
