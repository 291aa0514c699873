"""Imports every module of this folder, so that all names of TensorFlow 1 are defined."""

from importlib import import_module
from pathlib import Path

for _file in sorted(Path(__file__).parent.glob("[a-z]*.py")):
    import_module(f"{__package__}.{_file.stem}")
