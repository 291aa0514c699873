"""`tapeflow run --hosts` on two hosts: network namespaces of this machine with a cable between them.

A script takes the place of ssh. Namespaces need root and `ip`; where they cannot be made, the tests are skipped.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.distribute import launch

pytestmark = [launch.needs_mpi, pytest.mark.xdist_group("mpi")]

_AGENT = """#!/bin/sh
# agent HOST COMMAND...: runs the command on a host, as ssh does
case $1 in *.1) number=0 ;; *) number=1 ;; esac
shift
exec unshare --uts sh -c "hostname host$number; exec ip netns exec {name}$number sh -c \\"\\$0\\"" "$*"
"""


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """The prefix of the names of two namespaces, and the script that runs commands in them."""
    name = f"tapeflow{os.getpid() % 1000}h"  # a name of an interface has at most 15 characters
    mpiexec = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version:
        pytest.skip("the script that takes the place of ssh is for Open MPI")
    made = []
    try:
        try:
            for number in "01":
                _ip("netns", "add", name + number)
                made.append(name + number)
            _ip("link", "add", f"{name}0", "netns", f"{name}0", "type", "veth", "peer", f"{name}1", "netns", f"{name}1")
            for number in "01":
                here = ("-n", name + number)
                _ip(*here, "addr", "add", f"10.9.{os.getpid() % 250}.{int(number) + 1}/24", "dev", name + number)
                for device in ("lo", name + number):
                    _ip(*here, "link", "set", device, "up")
            subprocess.run(["unshare", "--uts", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"network namespaces cannot be made here: {error}")
        agent = tmp_path_factory.mktemp("agent") / "agent.sh"
        agent.write_text(_AGENT.format(name=name))
        agent.chmod(0o755)
        yield name, agent
    finally:
        for namespace in made:
            _ip("netns", "delete", namespace)


def run_on_hosts(hosts, program, *args, workers, slots):
    name, agent = hosts
    network = f"10.9.{os.getpid() % 250}"
    options = ("--hosts", f"{network}.1:{slots},{network}.2:{slots}")
    command = launch.command(program, *args, workers=workers, options=options)
    inside = ["unshare", "--uts", "sh", "-c", f'hostname host0; exec ip netns exec {name}0 "$@"', "sh", *command]
    environment = launch.environment(PRTE_MCA_plm_ssh_agent=str(agent), TAPEFLOW_COLLECTIVE_TIMEOUT="20")
    done = subprocess.run(inside, capture_output=True, text=True, check=False, timeout=300, env=environment)
    return launch.Finished(done.returncode, done.stdout, done.stderr)


def test_sums_between_hosts(hosts):
    done = run_on_hosts(hosts, "sums", workers=4, slots=2)
    assert done.code == 0, done.err
    assert [done.lines(rank) for rank in range(4)] == [["all equal"]] * 4


def test_training_between_hosts(hosts):
    done = run_on_hosts(hosts, "training", "workers", "custom", workers=2, slots=1)
    assert done.code == 0, done.err
    here = launch.run("training", "workers", "custom", TAPEFLOW_COLLECTIVES="messages")
    assert done.lines(0) == done.lines(1) == here.lines(0)


@pytest.mark.parametrize(
    ("how", "text"),
    [("kill", "prterun has exited|prterun noticed"), ("ended", r"ranks \[1\] have ended their program")],
)
def test_faults_of_a_host(hosts, how, text):
    done = run_on_hosts(hosts, "failures", how, workers=2, slots=1)
    assert done.code != 0
    assert re.search(text, done.err), done.err
