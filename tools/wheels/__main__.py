"""Builds and checks the wheels of a release from the commit that is checked out.

python -m tools.wheels                                    all of them, into dist/
python -m tools.wheels --python 3.11 --arch x86_64        one
python -m tools.wheels --headers 3.14=FOLDER[,FOLDER]     the headers of a Python that is not installed
python -m tools.wheels --run 3.14-aarch64=COMMAND         how to run it for the tests, for example by qemu-aarch64

It needs the packages ziglang, auditwheel, cmake, ninja, scikit-build-core, and those of pyproject.toml's build-system.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.wheels import assembly, checks, compilation
from tools.wheels.targets import PROCESSORS, PYTHONS, Target, headers

HERE = "{}.{}".format(*sys.version_info)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description="Builds and checks the wheels.")
    parser.add_argument("--python", nargs="+", default=PYTHONS, metavar="VERSION", help="versions of CPython")
    parser.add_argument("--arch", nargs="+", default=PROCESSORS, choices=PROCESSORS, help="processors")
    parser.add_argument("--headers", nargs="+", default=[], metavar="VERSION=FOLDER[,FOLDER]", help="Python's headers")
    parser.add_argument("--run", nargs="+", default=[], metavar="VERSION-ARCH=COMMAND", help="runs another Python")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where the wheels go")
    parser.add_argument("--build", type=Path, default=Path("build/wheels"), help="where objects are kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time")
    parser.add_argument("--no-tests", action="store_true", help="check tag and size only")
    options = parser.parse_args()
    given = dict(entry.split("=", 1) for entry in options.headers)
    wanted = []
    for python in options.python:
        folders = headers(python, [Path(folder) for folder in given.get(python, "").split(",") if folder])
        if folders is None:
            parser.error(f"no headers of CPython {python}: install it, or name them with --headers {python}=FOLDER")
        wanted += [Target(python, arch, folders) for arch in options.arch]
    options.run = {target: shlex.split(command) for target, command in (entry.split("=", 1) for entry in options.run)}
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        build_all(wanted, options, Path(folder))


def build_all(wanted: list[Target], options: argparse.Namespace, scratch: Path) -> None:
    source = options.build.resolve() / "source"
    clean_copy(source)
    files, metadata = assembly.package_files(source), assembly.metadata_files(source, scratch)
    licences = {part: path.read_bytes() for part, path in compilation.bundled_licences().items()}
    here = headers(HERE, [])
    printer = Target(HERE, os.uname().machine, here)  # its module prints the stubs for all
    modules = {
        target: compilation.module(source, options.build.resolve() / target.arch, target, options.jobs)
        for target in sorted({printer, *wanted}, key=lambda target: (target.arch, target.python))
    }
    files |= assembly.stubs(source, modules[printer], scratch / "stubs")
    for target in wanted:
        module = modules[target]
        members = {**files, f"tapeflow/_src/{module.name}": module.read_bytes()}
        wheel = assembly.wheel(options.out, target, members, metadata, licences, compilation.compiler_version())
        checks.check_tag(wheel, target)
        checks.check_size(wheel)
        command = options.run.get(f"{target.python}-{target.arch}", ())
        tested = not options.no_tests and checks.check_work(wheel, target, source, command)
        print(f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB  {'tested' if tested else 'not tested here'}")


def clean_copy(source: Path) -> None:
    """The files of the commit and nothing else. Those that did not change keep their times, for short builds."""
    archive = subprocess.run(["git", "archive", "--format=tar", "HEAD"], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        contents = {source / member.name: members.extractfile(member).read() for member in members if member.isfile()}
    source.mkdir(parents=True, exist_ok=True)
    for path in [path for path in source.rglob("*") if path.is_file() and path not in contents]:
        path.unlink()
    for path, data in contents.items():
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


if __name__ == "__main__":
    main()
