"""The stand-in for TensorFlow in a virtual environment of its own."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment that finds Tapeflow and NumPy, without pip."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "tapeflow_of_tests.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    return folder, packages


def run(environment, *arguments):
    python = environment[0] / "bin" / "python"
    return subprocess.run([python, *arguments], capture_output=True, text=True, cwd=environment[0])


def files_below(packages):
    return {path.relative_to(packages) for path in packages.rglob("*")}


def test_install_use_and_remove(environment):
    before = files_below(environment[1])
    done = run(environment, "-m", "tapeflow", "stand-in", "install")
    assert done.returncode == 0, done.stderr
    assert "gives Tapeflow" in done.stdout
    program = (
        "import importlib.metadata, importlib.util; assert importlib.util.find_spec('tensorflow')\n"
        "from tensorflow.python.framework import ops\n"
        "import tensorflow as tf, tapeflow\n"
        "assert tf is tapeflow and importlib.metadata.version('tensorflow') == tf.version.VERSION\n"
        "assert importlib.metadata.requires('tensorflow') == ['tapeflow']\n"
        "print(float(tf.add(1., 2.)), ops.Tensor is tf.Tensor)"
    )
    used = run(environment, "-c", program)
    assert used.stdout.strip() == "3.0 True", used.stderr
    assert run(environment, "-m", "tapeflow", "stand-in", "install").returncode == 0  # again, for a newer version
    removed = run(environment, "-m", "tapeflow", "stand-in", "remove")
    assert removed.returncode == 0 and "gone" in removed.stdout
    assert files_below(environment[1]) == before
    assert "There is no stand-in" in run(environment, "-m", "tapeflow", "stand-in", "remove").stdout


def test_refused_beside_tensorflow(environment):
    real = environment[1] / "tensorflow_cpu-2.21.0.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow-cpu\nVersion: 2.21.0\n")
    try:
        done = run(environment, "-m", "tapeflow", "stand-in", "install")
    finally:
        (real / "METADATA").unlink()
        real.rmdir()
    assert done.returncode == 1 and "tensorflow-cpu 2.21.0 is installed here" in done.stderr
    assert not (environment[1] / "tensorflow").exists()


def test_tensorflow_itself_is_never_removed(environment):
    real = environment[1] / "tensorflow-2.21.0.dist-info"
    real.mkdir()
    (real / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.21.0\n")
    try:
        done = run(environment, "-m", "tapeflow", "stand-in", "remove")
    finally:
        (real / "METADATA").unlink()
        real.rmdir()
    assert done.returncode == 1 and "pip uninstall tensorflow" in done.stderr


def test_refused_outside_of_virtual_environments():
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not base.exists():
        pytest.skip("the base interpreter has another name here")
    path = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {sysconfig.get_path('purelib')!r}]"
    program = f"{path}\nfrom tapeflow.__main__ import main\nsys.exit(main(['stand-in', 'install']))"
    done = subprocess.run([base, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "no virtual environment" in done.stderr
