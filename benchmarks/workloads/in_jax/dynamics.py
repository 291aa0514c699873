"""Small states over many steps; loops are lax.scan, as JAX's users write them."""

import jax
import jax.numpy as jnp
from in_jax.train import loss, mlp
from jax import lax


def repeated(body, state, count):
    return lax.scan(lambda state, _: (body(state), None), state, None, length=count)[0]


@loss
def lorenz(params, data):
    (p,) = params
    (x,) = data

    def slope(x):
        a, b, c = x[:, 0], x[:, 1], x[:, 2]
        return jnp.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c], 1)

    def body(x):
        k1 = slope(x)
        return x + 0.01 * slope(x + 0.005 * k1)

    return jnp.mean(jnp.square(repeated(body, x, 40)))


@loss
def epidemic(params, data):
    (rates,) = params
    (observed,) = data

    def body(state, observed):
        s, i, _ = state
        infected, recovered = rates[0] * s * i, rates[1] * i
        state = state + 0.1 * jnp.stack([-infected, infected - recovered, recovered])
        return state, jnp.sum(jnp.square(state - observed))

    return jnp.sum(lax.scan(body, jnp.array([0.99, 0.01, 0.0]), observed)[1])


@loss
def kalman_tracking(params, data):
    process, noise = jnp.diag(jnp.exp(params[0])), jnp.diag(jnp.exp(params[1]))
    (observed,) = data
    motion = jnp.array([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    sensor = jnp.array([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])

    def body(state, seen):
        x, p = state
        x, p = motion @ x, motion @ p @ motion.T + process
        surprise = seen[:, None] - sensor @ x
        s = sensor @ p @ sensor.T + noise
        gain = jnp.linalg.solve(s, sensor @ p).T
        value = jnp.sum(surprise * jnp.linalg.solve(s, surprise)) + jnp.linalg.slogdet(s)[1]
        return (x + gain @ surprise, p - gain @ sensor @ p), value

    return jnp.sum(lax.scan(body, (jnp.zeros([4, 1]), jnp.eye(4)), observed)[1])


@loss
def hidden_markov(params, data):
    move, emit = jax.nn.log_softmax(params[0]), jax.nn.log_softmax(params[1])
    (observed,) = data

    def body(alpha, seen):
        return jax.nn.logsumexp(alpha[:, None] + move[:, :, None], 0) + emit[:, seen], None

    alpha, _ = lax.scan(body, emit[:, observed[0]] - jnp.log(8.0), observed[1:])
    return -jnp.mean(jax.nn.logsumexp(alpha, 0))


@loss
def bicycle(params, data):
    (controls,) = params
    (state,) = data

    def body(state, given):
        x, y, angle, speed = state
        control, t = given
        x, y = x + 0.1 * speed * jnp.cos(angle), y + 0.1 * speed * jnp.sin(angle)
        angle, speed = angle + 0.1 * speed * jnp.tan(control[0]) / 2.0, speed + 0.1 * control[1]
        cost = jnp.square(x - 0.1 * t) + jnp.square(y - 0.5) + 0.1 * jnp.sum(jnp.square(control))
        return (x, y, angle, speed), cost

    return jnp.sum(lax.scan(body, tuple(state), (controls, jnp.arange(50.0)))[1])


@loss
def spring_chain(params, data):
    (stiffness,) = params

    def body(state):
        q, v = state
        d = q[1:] - q[:-1]
        length = jnp.sqrt(jnp.sum(d * d, 1) + 1e-6)
        pull = (stiffness * (length - 1.0) / length)[:, None] * d
        force = jnp.pad(pull, [(0, 1), (0, 0)]) - jnp.pad(pull, [(1, 0), (0, 0)])
        v = 0.99 * v + 0.02 * force
        return q + 0.02 * v, v

    return jnp.mean(jnp.square(repeated(body, tuple(data), 50)[0]))


@loss
def robot_arm(params, data):
    angles = jnp.cumsum(params[0], 1)
    hand = 0.3 * jnp.stack([jnp.cos(angles).sum(1), jnp.sin(angles).sum(1)], 1)
    return jnp.square(hand - data[0]).sum(1).mean() + 0.01 * jnp.square(params[0]).mean()


@loss
def small_gru(params, data):
    w, u, b, out = params
    xs, target = data

    def body(h, x):
        a, c = jnp.split(x @ w + b, 3, 1), jnp.split(h @ u, 3, 1)
        z, r = jax.nn.sigmoid(a[0] + c[0]), jax.nn.sigmoid(a[1] + c[1])
        return z * h + (1.0 - z) * jnp.tanh(a[2] + r * c[2]), None

    h, _ = lax.scan(body, jnp.zeros([4, 8]), xs)
    return jnp.mean(jnp.square(h @ out - target))


@loss
def attitude(params, data):
    (rates,) = params
    q, target = data

    def body(q, rate):
        w, x, y, z = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
        a, b, c = rate[:, 0], rate[:, 1], rate[:, 2]
        dq = jnp.stack([-x * a - y * b - z * c, w * a + y * c - z * b, w * b - x * c + z * a, w * c + x * b - y * a], 1)
        q = q + 0.05 * dq
        return q / jnp.linalg.norm(q, axis=1, keepdims=True), None

    q, _ = lax.scan(body, q, rates)
    return jnp.mean(1.0 - jnp.square(jnp.sum(q * target, 1)))


@loss
def cart_pole(params, data):
    def body(state, _):
        push = 10.0 * jnp.tanh(mlp(state, params, jnp.tanh))[:, 0]
        v, angle, spin = state[:, 1], state[:, 2], state[:, 3]
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        drive = (push + 0.05 * spin * spin * sine) / 1.1
        twist = (9.8 * sine - cosine * drive) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
        state = state + 0.02 * jnp.stack([v, drive - 0.05 * twist * cosine / 1.1, spin, twist], 1)
        return state, jnp.mean(jnp.sum(jnp.square(state), 1)) + 1e-3 * jnp.mean(jnp.square(push))

    return jnp.mean(lax.scan(body, data[0], None, length=40)[1])
