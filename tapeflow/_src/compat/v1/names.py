"""Imports every module below this folder, so that all names of TensorFlow 1 are defined."""

from importlib import import_module
from pathlib import Path

_folder = Path(__file__).parent
for _file in sorted(_folder.rglob("[a-z]*.py")):
    import_module(".".join((__package__, *_file.relative_to(_folder).with_suffix("").parts)))
