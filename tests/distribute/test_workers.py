"""`tf.distribute` on several processes, started with real MPI: collectives, training, input and faults."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.distribute import launch

pytestmark = [launch.needs_mpi, pytest.mark.xdist_group("mpi")]


@pytest.mark.parametrize("how", ["shared memory", "messages"])
def test_collectives_and_their_derivatives(how):
    done = launch.run("collectives", TAPEFLOW_COLLECTIVES=how)
    assert done.code == 0, done.err
    first, second = done.lines(0), done.lines(1)
    sums = {line.split()[0]: line.partition(" ")[2] for line in first[:9]}
    assert sums.pop("bool") == "[1.0, 1.0]"
    assert set(sums.values()) == {"[1.0, 2.0]"}
    assert first[9:15] == second[9:15]
    assert first[9:16] == [
        "mean 0.5",
        "mean of rows 0.3333333432674408",
        "gather [[0, 0], [1, 1], [1, 1]]",
        "gather columns [[0, 1, 1], [0, 1, 1]]",
        "structure [3.0, 6.0]",
        "sparse [[1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]",
        "all_gather [1.0, 2.0, 2.0]",
    ]
    # y = T^2 with T = a^2 + b^2, a = 1 here and b = 2 there. The gradient is that of the sum of both ranks' y:
    # 2 * 2 T * 2 x.
    for lines, x in ((first, 1.0), (second, 2.0)):
        values = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines[16:]}
        for kind in ("eager", "function"):
            assert float(values[f"{kind} gradient"]) == 2 * 2 * 5 * 2 * x
            assert float(values[f"{kind} gather gradient"]) == 2 * 2 * 3 * x * 3
        assert values["eager second"] == values["function second"]
        assert float(values["gradient around"]) == 2 * 2 * x
        for kind in ("tangent", "function tangent", "tangent around"):
            assert float(values[kind]) == 2 * 1.0 + 2 * 2.0
        over = "\u00fcber".encode()
        assert lines[-3:] == [
            f"strings {[[b'', over], [b'', over], [b'a' + bytes(1) + b'b', b'c']]}",
            f"initial strings {[b'first', b'x']}",
            f"assigned strings {[b'7', b'0']}",
        ]


def test_workers_name_their_devices():
    done = launch.run("names")
    assert done.code == 0, done.err
    for rank in range(2):
        own, other = (f"/job:worker/replica:0/task:{task}/device:CPU:0" for task in (rank, 1 - rank))
        assert done.lines(rank) == [
            f"worker {rank} {rank}",
            own,
            f"{own} ('{own}',)",
            f"['{own}', '{other}']",
            f"PerReplica [{[[0, 1], [2, 3]][rank]}] {own}",
            "PerReplicaSpec(TensorSpec(shape=(None,), dtype=tf.int64, name=None),)",
            str([[1, 2], [3, 4]][rank]),
            "MirroredVariable:{",
            own,
            f"/job:localhost/replica:0/task:{rank}/device:CPU:0 unknown device. This process is {own[:-13]}.",
        ]


@pytest.mark.parametrize(
    ("how", "workers"), [("shared memory", 2), ("shared memory", 4), ("messages", 2), ("messages", 3), ("messages", 4)]
)
def test_sums_of_all_sizes(how, workers):
    done = launch.run("sums", workers=workers, TAPEFLOW_COLLECTIVES=how)
    assert done.code == 0, done.err
    assert [done.lines(rank) for rank in range(workers)] == [["all equal"]] * workers


def test_loops_of_programs_are_the_same_on_processors_and_processes():
    expected = alone("mirrored", program="loops")
    assert expected[-1] == "sizes [20.0, 20.0, 10.0]"
    assert [line.split()[0] for line in expected] == ["eager", "function", "sparse", "variables", "merged", "sizes"]
    done = launch.run("loops", "workers")
    assert done.code == 0, done.err
    assert done.lines(0) == done.lines(1)
    np.testing.assert_allclose(numbers(done.lines(0)), numbers(expected), rtol=1e-3, atol=1e-3)


def alone(*args, program="training"):
    path = str(launch.PROGRAMS / f"{program}.py")
    command = [sys.executable, "-m", "tapeflow", "run", path, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=launch.environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("loop", ["fit", "custom"])
def test_training_equals_one_process(loop):
    expected = alone("one", loop)
    done = launch.run("training", "workers", loop)
    assert done.code == 0, done.err
    assert done.lines(0) == done.lines(1)
    for lines in (alone("mirrored", loop), done.lines(0)):
        assert [line.split()[0] for line in lines] == [line.split()[0] for line in expected]
        np.testing.assert_allclose(numbers(lines), numbers(expected), rtol=1e-3, atol=1e-4)


def numbers(lines):
    """All numbers of a program's output, in order; how many threads add decides their last digits."""
    return [float(text) for line in lines for text in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", line)]


def test_unequal_batches_end_together(tmp_path):
    done = launch.run("unequal", str(tmp_path))
    assert done.code == 0, done.err
    everything = [0, 1, 10, 11, 12, 20, 21, 22, 23]
    assert done.lines(0) == done.lines(1)
    assert done.lines(0) == ["[2.0, 5.0, 4.0]", "[3.0, 12.0, 6.0]", "True"] + [
        f"{policy} {everything}" for policy in ("FILE", "AUTO", "DATA")
    ] + [f"OFF {sorted(2 * everything)}"]


@pytest.mark.parametrize(
    ("how", "code", "texts"),
    [
        ("exception", 1, ["ValueError: rank 1 has a bad day", "rank 1 ends the program"]),
        ("exit", 7, []),
        ("message", 1, ["[1] rank 1 has no data"]),
        ("kill", None, []),
        ("shape", 1, ["rank 0: all_reduce(SUM) of float32[2] at", "rank 1: all_reduce(SUM) of float32[3] at"]),
        ("order", 1, ["rank 0: all_reduce(SUM) of float32[2]", "rank 1: all_gather"]),
        (
            "variables",
            1,
            ["rank 0: all_reduce", "rank 1: broadcast of the initial value of variable w1:0, of float32[]"],
        ),
        ("stop", 1, ["ranks [1] did not come", "rank 0 waits in all_reduce(SUM) of float32[2] at", "failures.py:"]),
        (
            "late",
            1,
            [
                "ranks [1] did not come",
                "in its step 2",
                "rank 1 did not come; it is at",
                "rank 1 was waited for",
                "TAPEFLOW_COLLECTIVE_TIMEOUT",
            ],
        ),
        ("options", 1, ["rank 0 waits in all_reduce(SUM) of float32[4] at", "The deadline is 1 s"]),
        ("ended", 1, ["ranks [1] have ended their program", "rank 0 waits in all_reduce(SUM) of float32[2] at"]),
        ("early", 1, ["ranks [1] have ended their program", "rank 0 waits in all_reduce(SUM) of float32[2] at"]),
    ],
)
def test_faults_end_the_program(how, code, texts):
    done = launch.run("failures", how, TAPEFLOW_COLLECTIVE_TIMEOUT="2")
    assert done.code == code if code is not None else done.code != 0
    for text in texts:
        assert text in done.err, done.err


@pytest.mark.parametrize(
    ("how", "texts"),
    [
        ("shape", ["rank 0: all_reduce(SUM) of float32[2] at", "rank 1: all_reduce(SUM) of float32[3] at"]),
        ("order", ["rank 0: all_reduce(SUM) of float32[2]", "rank 1: all_gather"]),
        ("late", ["ranks [1] did not come", "rank 0 waits in all_reduce(SUM) of float32[2] at"]),
        ("options", ["rank 0 waits in all_reduce(SUM) of float32[4] at", "The deadline is 1 s"]),
        ("ended", ["ranks [1] have ended their program", "rank 1 has ended its program"]),
        ("stop", ["ranks [1] did not come", "rank 0 waits in all_reduce(SUM) of float32[2] at", "failures.py:"]),
        ("variables", ["rank 0: all_reduce", "rank 1: broadcast of the initial value of variable w1:0, of float32[]"]),
        ("path", ["rank 0: all_reduce(SUM) of float32[2]", "rank 1: all_reduce(SUM) of float32[2], float32[3]"]),
    ],
)
def test_faults_between_machines(how, texts):
    done = launch.run("failures", how, TAPEFLOW_COLLECTIVE_TIMEOUT="2", TAPEFLOW_COLLECTIVES="messages")
    assert done.code == 1
    for text in texts:
        assert text in done.err, done.err


def test_a_rank_that_stops_while_data_travel():
    variables = {"TAPEFLOW_COLLECTIVE_TIMEOUT": "2", "TAPEFLOW_COLLECTIVES": "messages"}
    done = launch.run("failures", "stop in data", **variables)
    assert done.code == 1
    assert "all_reduce(SUM) of float32[5000000], in its step" in done.err and "did not finish in" in done.err, done.err


@pytest.mark.parametrize(
    ("how", "workers", "restarts"), [("terminate", 2, 1), ("kill", 4, 3), ("torn", 2, 1), ("full", 2, 1)]
)
def test_a_program_that_was_ended_goes_on(tmp_path, how, workers, restarts):
    os.mkdir(tmp_path / "a")
    os.mkdir(tmp_path / "b")
    expected = launch.run("preempted", str(tmp_path / "a"), "undisturbed", workers=workers).lines(0)
    assert expected[0].startswith("final") and expected[0].endswith("12")
    options = ("--restarts", str(restarts))
    done = launch.run("preempted", str(tmp_path / "b"), how, workers=workers, options=options)
    assert done.code == 0, done.err
    assert f"restart {restarts} of {restarts}" in done.err
    assert [done.lines(rank) for rank in range(workers)] == [expected] * workers


def test_output_of_the_first_rank_alone(tmp_path):
    done = launch.run("unequal", str(tmp_path), options=("--output", "rank0"))
    assert done.code == 0 and len(done.out.splitlines()) == 7


def test_callbacks_of_keras_write_on_the_first_worker(tmp_path):
    done = launch.run("callbacks", str(tmp_path))
    assert done.code == 0, done.err
    files = ["ended early", "equal True", "loaded True ['model.keras']"]
    assert done.lines(0) == done.lines(1) == [*files, "scale 1.0 value 1.0"]
