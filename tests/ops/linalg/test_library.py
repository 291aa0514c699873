"""Where the library of linear algebra is found."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


def test_the_library_is_found_where_its_package_is(tmp_path):
    package = tmp_path / "scipy_openblas32"
    found = Path(find_spec("scipy_openblas32").submodule_search_locations[0])
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(found / "lib" / "libscipy_openblas.so", package / "lib")
    program = (
        f"import tapeflow as tf; tf.linalg.inv([[2.0]])\nassert {str(package)!r} in open('/proc/self/maps').read()"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONPATH": paths})
