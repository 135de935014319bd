"""Exported files that several tests read."""

from pathlib import Path

import pytest

from tests.export.scaffold import fitted


@pytest.fixture(scope="session")
def onnx_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an ONNX file that takes uint8 images; tests must not change it."""
    folder = tmp_path_factory.mktemp("exported")
    return fitted("head").export(folder / "model.onnx", "onnx", opset=20, input_dtype="uint8")


@pytest.fixture
def weights_file(tmp_path: Path) -> Path:
    """Return a file of safetensors with its card beside it."""
    return fitted("head").export(tmp_path / "model.safetensors")
