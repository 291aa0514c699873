"""Tapeflow's entry for GradBench, through its protocol, against plain NumPy: gradients by the complex step."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

RUN = Path(__file__).resolve().parents[1] / "benchmarks" / "gradbench" / "run.py"
RUNS = {"min_runs": 2, "min_seconds": 0}


def complex_step(function, x):
    """The gradient of a real analytic function, exact to rounding."""
    gradient = np.empty(x.size)
    for i in range(x.size):
        moved = x.astype(complex).ravel()
        moved[i] += 1e-30j
        gradient[i] = function(moved.reshape(x.shape)).imag / 1e-30
    return gradient.reshape(x.shape)


def partial_gradients(function, values):
    """The gradient by each of the arguments `values`."""

    def gradient(i):
        return complex_step(lambda v: function(*values[:i], v, *values[i + 1 :]), values[i])

    return [gradient(i) for i in range(len(values))]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lse(x):
    return np.log(np.sum(np.exp(x)))


def llsq(x, n):
    t = -1 + np.arange(n) * 2 / (n - 1)
    return 0.5 * np.sum((np.sign(t) - sum(x[j] * t**j for j in range(len(x)))) ** 2)


def ode(x, s):
    y, h = np.zeros_like(x), 2 / s
    slope = lambda y: np.concatenate([x[:1], x[1:] * y[:-1]])  # noqa: E731
    for _ in range(s):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def determinant(a):
    total = 0
    for order in itertools.permutations(range(len(a))):
        inversions = sum(p > q for p, q in itertools.combinations(order, 2))
        total += (-1) ** inversions * np.prod([a[i, j] for i, j in enumerate(order)])
    return total


def gmm(alpha, mu, q, below, x, m, gamma):
    """The log posterior straight from its definition: densities of Gaussian and Wishart distributions."""
    d, posterior = x.shape[1], 0
    precisions = []
    for k in range(len(alpha)):
        factor, entries = np.diag(np.exp(q[k])).astype(complex), iter(below[k])
        for column in range(d):
            for row in range(column + 1, d):
                factor[row, column] = next(entries)
        precisions.append(factor.T @ factor)
    weights = np.exp(alpha) / np.sum(np.exp(alpha))
    for point in x:
        density = 0
        for weight, mean, precision in zip(weights, mu, precisions):
            power = np.exp(-0.5 * (point - mean) @ precision @ (point - mean))
            density = density + weight * power * np.sqrt(np.linalg.det(precision) / (2 * np.pi) ** d)
        posterior = posterior + np.log(density)
    n = d + m + 1
    log_gamma = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma((n - j) / 2) for j in range(d))
    for precision in precisions:
        posterior = posterior + m / 2 * np.log(np.linalg.det(precision)) - gamma**2 / 2 * np.trace(precision)
        posterior = posterior - n * d / 2 * math.log(2) + n * d * math.log(gamma) - log_gamma
    return posterior


def lstm(main, extra, state, sequence):
    width, total = extra.shape[1], 0
    hidden, cell = list(state[0::2]), list(state[1::2])
    for t in range(len(sequence) - 1):
        x = sequence[t] * extra[0]
        for i in range(len(hidden)):
            forget_w, in_w, out_w, change_w = main[2 * i].reshape(4, width)
            forget_b, in_b, out_b, change_b = main[2 * i + 1].reshape(4, width)
            gate, change = sigmoid(hidden[i] * in_w + in_b), np.tanh(hidden[i] * change_w + change_b)
            cell[i] = cell[i] * sigmoid(x * forget_w + forget_b) + gate * change
            x = hidden[i] = sigmoid(x * out_w + out_b) * np.tanh(cell[i])
        y = x * extra[1] + extra[2]
        total = total + np.sum(sequence[t + 1] * (y - np.log(np.sum(np.exp(y)) + 2)))
    return -total / (width * (len(sequence) - 1))


def argmin(function, gradient, x):
    eta, good, value, slope = 1e-5, 0, function(x), gradient(x)
    while np.linalg.norm(slope) > 1e-5:
        if good == 10:
            eta, good = 2 * eta, 0
            continue
        moved = x - eta * slope
        if np.linalg.norm(x - moved) <= 1e-5:
            break
        if function(moved) < value:
            x, value, slope, good = moved, function(moved), gradient(moved), good + 1
        else:
            eta, good = eta / 2, 0
    return x


def landing(w):
    charges = np.array([[10, 10 - w[0]], [10, 0]])
    x, speed = np.array([0, 8], complex), np.array([0.75, 0], complex)
    while (x + 0.1 * speed)[1].real > 0:
        away = x - charges
        force = np.sum(away / np.sum(away**2, 1, keepdims=True) ** 1.5, 0)
        x, speed = x + 0.1 * speed, speed + 0.1 * force
    return (x - x[1] / speed[1] * speed)[0] ** 2


def rotation(axis):
    """The matrix exponential of the cross product with `axis`, by its series."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    power = total = np.eye(3, dtype=complex)
    for k in range(1, 40):
        power = power @ cross / k
        total = total + power
    return total


def bundle(camera, x, weight, feature):
    """The error of one observation, and that of its weight."""
    seen = rotation(camera[:3]) @ (x - camera[3:6])
    flat = seen[:2] / seen[2]
    square = np.sum(flat**2)
    projected = flat * (1 + camera[9] * square + camera[10] * square**2) * camera[6] + camera[7:9]
    return np.append(weight * (projected - feature), 1 - weight**2)


def bundles(rng):
    n, m, p = 3, 4, 17
    for turn in (1.0, 0.0):
        camera, x = rng.random(11) + 0.5, rng.random(3) + 2
        camera[:3] *= turn
        weight, feature = 0.4, rng.random(2)
        given = {"n": n, "m": m, "p": p, "cam": camera, "x": x, "w": weight, "feat": feature}
        error = bundle(camera, x, weight, feature).real
        repeated = {"elements": error[:2].tolist(), "repeated": p}
        yield "ba", "objective", given, {"reproj_error": repeated, "w_err": {"element": error[2], "repeated": p}}
        values = [camera, x, np.array(weight)]
        rows = []
        for k in range(3):
            parts = partial_gradients(lambda c, x, w, k=k: bundle(c, x, w, feature)[k], values)  # noqa: B023
            rows.append(np.concatenate([part.ravel() for part in parts]))
        columns = [*range(11), *range(11 * n, 11 * n + 3), 11 * n + 3 * m]
        expected = {
            "rows": [*range(0, 15 * 2 * p, 15), *range(30 * p, 31 * p)][:30] + [31 * p],
            "cols": [*columns, *columns, 11 * n + 3 * m + p - 1],
            "vals": np.concatenate([rows[0], rows[1], rows[2][-1:]]),
        }
        yield "ba", "jacobian", given, expected


def hand(theta, us, model, corners, points):
    bones = len(model["parents"])
    absolutes, angles = [], np.zeros((bones, 2), complex)
    for finger in range(5):
        bend, spread, second, third = theta[6 + 4 * finger : 10 + 4 * finger]
        first = 2 + 4 * finger
        angles[first] = bend, spread
        angles[first + 1, 0], angles[first + 2, 0] = second, third
    for bone, parent in enumerate(model["parents"]):
        turn = np.eye(4, dtype=complex)
        turn[:3, :3] = rotation([0, 0, angles[bone, 1]]) @ rotation([angles[bone, 0], 0, 0])
        relative = model["base_relatives"][bone] @ turn
        absolutes.append(relative if parent < 0 else absolutes[parent] @ relative)
    vertices = []
    for position, weights in zip(model["base_positions"], model["weights"]):
        moved = [a @ i @ position for a, i in zip(absolutes, model["inverse_base_absolutes"])]
        vertex = (weights @ np.array(moved))[:3] * ([-1, 1, 1] if model["is_mirrored"] else 1)
        vertices.append(rotation(theta[:3]) @ vertex + theta[3:6])
    errors = []
    for i, corner in enumerate(corners):
        if len(us):
            a, b, c = (vertices[v] for v in model["triangles"][corner])
            errors.append(points[i] - (us[i, 0] * a + us[i, 1] * b + (1 - us[i, 0] - us[i, 1]) * c))
        else:
            errors.append(points[i] - vertices[corner])
    return np.concatenate(errors)


def hands(rng):
    bones, count, measured = 22, 6, 3
    for mirrored, turn in ((False, 1.0), (True, 0.0)):
        model = {
            "bone_count": bones,
            "bone_names": [f"bone {i}" for i in range(bones)],
            "parents": [-1, *(int(rng.integers(0, i)) for i in range(1, bones))],
            "base_relatives": np.eye(4) + 0.1 * rng.standard_normal((bones, 4, 4)),
            "inverse_base_absolutes": np.eye(4) + 0.1 * rng.standard_normal((bones, 4, 4)),
            "base_positions": np.c_[rng.random((count, 3)), np.ones(count)],
            "weights": rng.random((count, bones)),
            "triangles": rng.integers(0, count, (5, 3)),
            "is_mirrored": mirrored,
        }
        theta, points, corners = rng.random(26), rng.random((measured, 3)), rng.integers(0, 5, measured)
        theta[:3] *= turn
        for us in (rng.random((measured, 2)), np.zeros((0, 2))):
            data = {"model": model, "correspondences": corners, "points": points}
            given = {"theta": theta, "data": data, "us": us}
            yield "ht", "objective", given, hand(theta, us, model, corners, points).real
            rows = []
            for k in range(3 * measured):
                by_us, by_theta = partial_gradients(
                    lambda u, t, k=k: hand(t, u, model, corners, points)[k],  # noqa: B023
                    [us, theta],
                )
                rows.append(np.concatenate([by_us[k // 3], by_theta] if len(us) else [by_theta]))
            if not turn:
                rows = np.array(rows)
                rows[:, -26:-23] = 0  # a rotation this small counts as none
            yield "ht", "jacobian", given, np.array(rows)


def descents():
    """The evals of gradients inside of gradients, in all four pairs of modes, from near their ends."""
    w, start = np.array([0.207]), np.array([2e-4, 1e-4])
    controlled = argmin(lambda w: landing(w).real, lambda w: complex_step(landing, w), w)[0]
    end = argmin(lambda p: np.sum(p**2), lambda p: 2 * p, start)
    for modes in ("rr", "ff", "fr", "rf"):
        yield "particle", modes, {"w": w[0]}, controlled
        yield "saddle", modes, {"start": start}, np.concatenate([end, end])


def cases():
    """Module, function, input, what plain NumPy expects."""
    rng = np.random.default_rng(3)
    yield "hello", "square", 3.5, 12.25
    yield "hello", "double", 3.5, 7.0
    x = rng.standard_normal(40) * 5
    yield "lse", "primal", {"x": x}, lse(x)
    yield "lse", "gradient", {"x": x}, complex_step(lse, x)
    x = rng.random(6)
    yield "llsq", "primal", {"x": x, "n": 51}, llsq(x, 51)
    yield "llsq", "gradient", {"x": x, "n": 51}, complex_step(lambda x: llsq(x, 51), x)
    x = rng.random(5)
    yield "ode", "primal", {"x": x, "s": 7}, ode(x, 7)
    yield "ode", "gradient", {"x": x, "s": 7}, complex_step(lambda x: ode(x, 7)[-1], x)
    for size in (1, 2, 5):
        a = rng.random((size, size))
        yield "det", "primal", {"A": a.ravel(), "ell": size}, determinant(a)
        yield "det", "gradient", {"A": a.ravel(), "ell": size}, complex_step(determinant, a).ravel()
    points = rng.random((60, 3))
    centroids = points[-4:]
    squares = np.sum((points[:, None] - centroids) ** 2, 2)
    nearest = squares.argmin(1)
    means = np.array([points[nearest == j].mean(0) for j in range(4)])
    given = {"points": points, "centroids": centroids}
    yield "kmeans", "cost", given, squares.min(1).sum()
    yield "kmeans", "dir", given, centroids - means
    for d in (1, 3):
        values = [rng.random(2), rng.random((2, d)), rng.random((2, d)), rng.random((2, d * (d - 1) // 2))]
        x, names = rng.standard_normal((9, d)), ("alpha", "mu", "q", "l")
        given = {"d": d, "k": 2, "n": 9, "x": x, "m": 2, "gamma": 1.5} | dict(zip(names, values))
        yield "gmm", "objective", given, gmm(*values, x, 2, 1.5).real
        gradients = partial_gradients(lambda *v: gmm(*v, x, 2, 1.5), values)  # noqa: B023
        yield "gmm", "jacobian", given, {name: g.tolist() for name, g in zip(names, gradients)}
    for layers in (1, 3):
        main, extra, state = rng.random((2 * layers, 20)), rng.random((3, 5)), rng.random((2 * layers, 5))
        sequence = rng.integers(0, 2, (8, 5)).astype(float)
        given = {"main_params": main, "extra_params": extra, "state": state, "sequence": sequence}
        yield "lstm", "objective", given, lstm(main, extra, state, sequence)
        parts = partial_gradients(lambda *v: lstm(*v, state, sequence), [main, extra])  # noqa: B023
        yield "lstm", "jacobian", given, np.concatenate([part.ravel() for part in parts])
    yield from bundles(rng)
    yield from hands(rng)
    yield from descents()


CASES = list(cases())


@pytest.fixture(scope="module")
def responses():
    """What the entry answers to a start, a module that does not exist, all cases, and an analysis."""
    messages = [{"kind": "start"}, {"kind": "define", "module": "absent"}]
    for module, function, given, _ in CASES:
        message = {"kind": "evaluate", "module": module, "function": function}
        message["input"] = given | RUNS if isinstance(given, dict) else given
        messages += [{"kind": "define", "module": module}, message]
    messages.append({"kind": "analysis", "of": 1, "valid": True})
    lines = [json.dumps({"id": i} | m, default=np.ndarray.tolist) for i, m in enumerate(messages)]
    done = subprocess.run([sys.executable, RUN], input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [a["id"] for a in answers] == list(range(len(messages)))
    return answers


def test_protocol(responses):
    assert responses[0]["tool"] == "tapeflow"
    assert responses[1]["success"] is False and "absent" in responses[1]["error"]
    assert set(responses[-1]) == {"id"}


@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{c[0]}-{c[1]}-{i}" for i, c in enumerate(CASES)])
def test_equals_numpy(responses, index):
    _, _, given, expected = CASES[index]
    defined, answer = responses[2 + 2 * index : 4 + 2 * index]
    assert defined["success"] and answer["success"], answer.get("error")
    runs = RUNS["min_runs"] if isinstance(given, dict) else 1
    assert len(answer["timings"]) >= runs and all(t["name"] == "evaluate" for t in answer["timings"])
    if isinstance(expected, dict):
        assert set(answer["output"]) == set(expected)
        for name, value in expected.items():
            if isinstance(value, dict):
                assert value.keys() == answer["output"][name].keys()
                got, value = ([*map(np.ravel, d.values())] for d in (answer["output"][name], value))
                np.testing.assert_allclose(np.concatenate(got), np.concatenate(value), rtol=1e-9, atol=1e-12)
            else:
                np.testing.assert_allclose(answer["output"][name], value, rtol=1e-9, atol=1e-12)
    else:
        assert np.shape(answer["output"]) == np.shape(expected)
        np.testing.assert_allclose(answer["output"], expected, rtol=1e-9, atol=1e-12)
