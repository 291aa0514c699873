"""Small states over many steps: integrators, filters and simulators, written as their authors write them."""

import tensorflow as tf
from in_tensorflow.train import loss, mlp


@loss
def lorenz(params, data):
    (p,) = params
    (x,) = data

    def slope(x):
        a, b, c = tf.unstack(x, axis=1)
        return tf.stack([p[0] * (b - a), a * (p[1] - c) - b, a * b - p[2] * c], 1)

    for _ in range(40):
        k1 = slope(x)
        k2 = slope(x + 0.005 * k1)
        x = x + 0.01 * k2
    return tf.reduce_mean(tf.square(x))


@loss
def epidemic(params, data):
    (rates,) = params
    (observed,) = data
    state = tf.constant([0.99, 0.01, 0.0])
    value = 0.0
    for t in tf.range(100):
        s, i, _ = tf.unstack(state)
        infected, recovered = rates[0] * s * i, rates[1] * i
        state = state + 0.1 * tf.stack([-infected, infected - recovered, recovered])
        value += tf.reduce_sum(tf.square(state - observed[t]))
    return value


@loss
def kalman_tracking(params, data):
    process, noise = tf.linalg.diag(tf.exp(params[0])), tf.linalg.diag(tf.exp(params[1]))
    (observed,) = data
    motion = tf.constant([[1, 0, 0.1, 0], [0, 1, 0, 0.1], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    sensor = tf.constant([[1.0, 0, 0, 0], [0, 1.0, 0, 0]])
    x, p = tf.zeros([4, 1]), tf.eye(4)
    value = 0.0
    for t in range(40):
        x, p = motion @ x, motion @ p @ tf.transpose(motion) + process
        surprise = observed[t][:, None] - sensor @ x
        s = sensor @ p @ tf.transpose(sensor) + noise
        gain = tf.transpose(tf.linalg.solve(s, sensor @ p))
        x, p = x + gain @ surprise, p - gain @ sensor @ p
        value += tf.reduce_sum(surprise * tf.linalg.solve(s, surprise)) + tf.linalg.logdet(s)
    return value


@loss
def hidden_markov(params, data):
    move, emit = tf.nn.log_softmax(params[0]), tf.nn.log_softmax(params[1])
    (observed,) = data
    alpha = tf.gather(emit, observed[0], axis=1) - tf.math.log(8.0)
    for t in tf.range(1, 60):
        alpha = tf.reduce_logsumexp(alpha[:, None] + move[:, :, None], 0) + tf.gather(emit, observed[t], axis=1)
    return -tf.reduce_mean(tf.reduce_logsumexp(alpha, 0))


@loss
def bicycle(params, data):
    (controls,) = params
    (state,) = data
    x, y, angle, speed = tf.unstack(state)
    cost = 0.0
    for t in range(50):
        x, y = x + 0.1 * speed * tf.cos(angle), y + 0.1 * speed * tf.sin(angle)
        angle, speed = angle + 0.1 * speed * tf.tan(controls[t, 0]) / 2.0, speed + 0.1 * controls[t, 1]
        cost += tf.square(x - 0.1 * t) + tf.square(y - 0.5) + 0.1 * tf.reduce_sum(tf.square(controls[t]))
    return cost


@loss
def spring_chain(params, data):
    (stiffness,) = params
    q, v = data
    for _ in tf.range(50):
        d = q[1:] - q[:-1]
        length = tf.sqrt(tf.reduce_sum(d * d, 1) + 1e-6)
        pull = (stiffness * (length - 1.0) / length)[:, None] * d
        force = tf.pad(pull, [[0, 1], [0, 0]]) - tf.pad(pull, [[1, 0], [0, 0]])
        v = 0.99 * v + 0.02 * force
        q = q + 0.02 * v
    return tf.reduce_mean(tf.square(q))


@loss
def robot_arm(params, data):
    (joints,) = params
    (target,) = data
    angle, x, y = 0.0, 0.0, 0.0
    for j in range(6):
        angle = angle + joints[:, j]
        x, y = x + 0.3 * tf.cos(angle), y + 0.3 * tf.sin(angle)
    hand = tf.stack([x, y], 1)
    return tf.reduce_mean(tf.reduce_sum(tf.square(hand - target), 1)) + 0.01 * tf.reduce_mean(tf.square(joints))


@loss
def small_gru(params, data):
    w, u, b, out = params
    xs, target = data
    h = tf.zeros([4, 8])
    for t in tf.range(50):
        a, c = tf.split(xs[t] @ w + b, 3, 1), tf.split(h @ u, 3, 1)
        z, r = tf.sigmoid(a[0] + c[0]), tf.sigmoid(a[1] + c[1])
        h = z * h + (1.0 - z) * tf.tanh(a[2] + r * c[2])
    return tf.reduce_mean(tf.square(h @ out - target))


@loss
def attitude(params, data):
    (rates,) = params
    q, target = data
    for t in range(40):
        w, x, y, z = tf.unstack(q, axis=1)
        a, b, c = tf.unstack(rates[t], axis=1)
        dq = tf.stack([-x * a - y * b - z * c, w * a + y * c - z * b, w * b - x * c + z * a, w * c + x * b - y * a], 1)
        q = q + 0.05 * dq
        q = q / tf.norm(q, axis=1, keepdims=True)
    return tf.reduce_mean(1.0 - tf.square(tf.reduce_sum(q * target, 1)))


@loss
def cart_pole(params, data):
    (state,) = data
    cost = 0.0
    for _ in range(40):
        push = 10.0 * tf.tanh(mlp(state, params, tf.tanh))[:, 0]
        _, v, angle, spin = tf.unstack(state, axis=1)
        sine, cosine = tf.sin(angle), tf.cos(angle)
        drive = (push + 0.05 * spin * spin * sine) / 1.1
        twist = (9.8 * sine - cosine * drive) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
        state = state + 0.02 * tf.stack([v, drive - 0.05 * twist * cosine / 1.1, spin, twist], 1)
        cost += tf.reduce_mean(tf.reduce_sum(tf.square(state), 1)) + 1e-3 * tf.reduce_mean(tf.square(push))
    return cost / 40
