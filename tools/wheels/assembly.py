"""Puts a wheel together: the package's files, the module, stubs, metadata, licences and the bill of materials."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from tools.wheels.targets import Target

WHEEL = "Wheel-Version: 1.0\nGenerator: tapeflow tools.wheels\nRoot-Is-Purelib: false\nTag: {}\n"
BILL = "sboms/tapeflow.cdx.json"
METADATA = "import scikit_build_core.build as b, sys; print(b.prepare_metadata_for_build_wheel(sys.argv[1]))"
FIRST_DATE = (1980, 1, 1, 0, 0, 0)  # of every member, so that equal contents make equal wheels


def package_files(source: Path) -> dict[str, bytes]:
    """The files of the package in a clean checkout."""
    files = sorted(path for path in (source / "tapeflow").rglob("*") if path.is_file())
    kept = [path for path in files if path.suffix not in (".so", ".pyc")]
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in kept}


def metadata_files(source: Path, scratch: Path) -> tuple[str, dict[str, bytes]]:
    """The name of the folder of metadata, and its files, as the build backend writes them."""
    command = [sys.executable, "-c", METADATA, scratch.resolve()]
    said = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True).stdout
    folder = scratch / said.splitlines()[-1]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return folder.name, {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def bill_of_materials(version: str, llvm: str, bundled: list[str]) -> bytes:
    """What is in the wheel besides Tapeflow, as CycloneDX."""
    parts = [
        {
            "type": "library",
            "name": name,
            "version": llvm,
            "bom-ref": f"pkg:generic/llvm/{name}@{llvm}",
            "purl": f"pkg:generic/llvm/{name}@{llvm}",
            "licenses": [{"expression": "Apache-2.0 WITH LLVM-exception"}],
        }
        for name in bundled
    ]
    root = f"pkg:pypi/tapeflow@{version}"
    component = {"type": "library", "name": "tapeflow", "version": version, "bom-ref": root, "purl": root}
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**component, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": parts,
        "dependencies": [{"ref": root, "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    return json.dumps(bill, indent=2).encode() + b"\n"


def wheel(
    folder: Path,
    target: Target,
    files: dict[str, bytes],
    metadata: tuple[str, dict[str, bytes]],
    licences: dict[str, bytes],
    llvm: str,
) -> Path:
    """Writes the wheel of `files`, the module and stubs among them, and returns its path."""
    info, described = metadata
    name, version = info.removesuffix(".dist-info").rsplit("-", 1)
    members = dict(files)
    described = {**described, "WHEEL": WHEEL.format(target.tag).encode()}
    described[BILL] = bill_of_materials(version, llvm, list(licences))
    for part, text in licences.items():
        described[f"licenses/{part}/LICENSE.TXT"] = text
    described.pop("RECORD", None)
    members |= {f"{info}/{path}": data for path, data in sorted(described.items())}
    members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD")
    path = folder / f"{name}-{version}-{target.tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member, data in members.items():
            entry = zipfile.ZipInfo(member, FIRST_DATE)
            entry.external_attr = (0o755 if member.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def stubs(source: Path, module: Path, scratch: Path) -> dict[str, bytes]:
    """The type stubs, which the package prints of itself with a module that runs here."""
    environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tools.stubs", scratch.resolve(), "--core", module.resolve()]
    subprocess.run(command, cwd=source, env=environment, check=True)
    return {path.relative_to(scratch).as_posix(): path.read_bytes() for path in sorted(scratch.rglob("*.pyi"))}


def _record(members: dict[str, bytes], own_name: str) -> bytes:
    lines = []
    for member, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{member},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{own_name},,", ""]).encode()
