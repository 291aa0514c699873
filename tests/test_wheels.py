"""tools/wheels: tags, what a wheel holds, and the checks that must refuse one. Compiling is left to the tool itself."""

import base64
import hashlib
import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

from tools.wheels import assembly, checks
from tools.wheels.targets import Target

ROOT = Path(__file__).parents[1]
ARM = Target("3.14", "aarch64", (Path("include"),))
FILES = {"tapeflow/__init__.py": b"x = 1\n", f"tapeflow/_src/_core{ARM.module_suffix}": b"\x7fELF"}
METADATA = ("tapeflow-1.0.dist-info", {"METADATA": b"Name: tapeflow\n", "WHEEL": b"Tag: other\n", "RECORD": b"old"})
LICENCES = {"libcxx": b"of libcxx", "libunwind": b"of libunwind"}


def make(folder):
    return assembly.wheel(folder, ARM, FILES, METADATA, LICENCES, "21.1.0")


def test_names_of_a_target():
    assert ARM.tag == "cp314-cp314-manylinux_2_28_aarch64"
    assert ARM.module_suffix == ".cpython-314-aarch64-linux-gnu.so"


def test_wheel_records_each_member(tmp_path):
    path = make(tmp_path)
    assert path.name == "tapeflow-1.0-cp314-cp314-manylinux_2_28_aarch64.whl"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    rows = dict(line.split(",", 1) for line in members["tapeflow-1.0.dist-info/RECORD"].decode().splitlines())
    assert rows.keys() == members.keys() and FILES.items() <= members.items()
    assert rows.pop("tapeflow-1.0.dist-info/RECORD") == ","
    for name, row in rows.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(members[name]).digest()).rstrip(b"=").decode()
        assert row == f"sha256={digest},{len(members[name])}"
    assert members["tapeflow-1.0.dist-info/WHEEL"].decode().splitlines()[-1] == f"Tag: {ARM.tag}"


def test_wheel_names_what_is_linked_in(tmp_path):
    with zipfile.ZipFile(make(tmp_path)) as archive:
        bill = json.loads(archive.read("tapeflow-1.0.dist-info/sboms/tapeflow.cdx.json"))
        assert archive.read("tapeflow-1.0.dist-info/licenses/libunwind/LICENSE.TXT") == b"of libunwind"
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "1.0")
    assert [(part["name"], part["version"]) for part in bill["components"]] == [
        ("libcxx", "21.1.0"),
        ("libunwind", "21.1.0"),
    ]
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]


def test_equal_contents_make_equal_wheels(tmp_path):
    first = make(tmp_path).read_bytes()
    assert make(tmp_path).read_bytes() == first


def test_large_wheel_is_refused(tmp_path):
    path = tmp_path / "tapeflow.whl"
    path.write_bytes(bytes(checks.LARGEST))
    checks.check_size(path)
    path.write_bytes(bytes(checks.LARGEST + 1))
    with pytest.raises(checks.WheelError, match="6,000,001 bytes"):
        checks.check_size(path)


def test_a_given_command_tests_a_wheel_of_another_processor(tmp_path, monkeypatch):
    for name in ("tests", "examples"):
        (tmp_path / "source" / name).mkdir(parents=True)
    commands = []
    monkeypatch.setattr(checks.subprocess, "run", lambda command, **options: commands.append(([*command], options)))
    assert checks.check_work(make(tmp_path), ARM, tmp_path / "source", ["qemu", "python3.14"])
    (install, _), (imported, options), *examples, (tests, _) = commands
    assert install[install.index("--python-version") + 1] == "3.14"
    assert "manylinux_2_28_aarch64" in install and "manylinux2014_aarch64" in install
    assert imported == ["qemu", "python3.14", "-c", checks.TRY]
    assert options["env"]["PYTHONPATH"] == str(install[install.index("--target") + 1])
    assert [command[:5] for command, _ in examples] == [["qemu", "python3.14", "-m", "tapeflow", "run"]] * 3
    assert tests[:5] == ["qemu", "python3.14", "-m", "pytest", "-q"]


def test_a_wheel_that_cannot_run_here_is_not_tested(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "interpreter", lambda python: None)
    assert not checks.check_work(make(tmp_path), ARM, tmp_path)


def test_module_loads_with_the_oldest_numpy_that_is_declared():
    """GPflow 2.11 asks for `numpy<2`, and must find an environment with Tapeflow."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (oldest,) = (re.fullmatch(r"numpy>=([\d.]+)", name)[1] for name in declared if name.startswith("numpy"))
    source = (ROOT / "core/python/convert.cc").read_text()
    targets = re.findall(r"NPY_(?:TARGET_VERSION|NO_DEPRECATED_API) NPY_(\d+)_(\d+)_API_VERSION", source)
    assert len(targets) == 2
    for target in targets:
        assert tuple(map(int, target)) <= tuple(map(int, oldest.split("."))) < (2, 0)
