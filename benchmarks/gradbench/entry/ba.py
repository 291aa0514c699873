"""Bundle adjustment: errors of points projected by cameras with distortion, and their sparse Jacobian.

The Jacobian is given by its compressed rows. Each error depends on one camera, one point and one weight, so its row
has 15 elements: a derivative for each observation by itself.
"""

import numpy as np

import tapeflow as tf

CAMERA, POINT = 11, 3
BLOCK = CAMERA + POINT + 1


def prepare(values):
    n, m, p = values["n"], values["m"], values["p"]
    cameras = tf.constant(np.tile(values["cam"], (n, 1)), tf.float64)
    points = tf.constant(np.tile(values["x"], (m, 1)), tf.float64)
    weights = tf.fill([p], tf.constant(values["w"], tf.float64))
    features = tf.constant(np.tile(values["feat"], (p, 1)), tf.float64)
    observed = np.arange(p)
    return cameras, points, weights, features, tf.constant(observed % n), tf.constant(observed % m)


def rotate(axis, x):
    """Turns x around the axis by its length, by Rodrigues' formula; without an axis it stays."""
    square = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]
    turned = square > 0
    angle = tf.sqrt(tf.where(turned, square, 1.0))
    # sin(angle) / angle and (1 - cos(angle)) / angle², and their values without an axis.
    first = tf.where(turned, tf.sin(angle) / angle, 1.0)
    second = tf.where(turned, (1 - tf.cos(angle)) / (angle * angle), 0.0)
    along = second * (axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2])
    scale = tf.where(turned, tf.cos(angle), 1.0)
    cross = [axis[i - 2] * x[i - 1] - axis[i - 1] * x[i - 2] for i in range(3)]
    return [scale * x[i] + first * cross[i] + along * axis[i] for i in range(3)]


def errors(camera, x, weight, features):
    """The two errors of all observations, from one vector for each parameter."""
    seen = rotate(camera[:3], [x[i] - camera[3 + i] for i in range(3)])
    flat = [seen[0] / seen[2], seen[1] / seen[2]]
    square = flat[0] * flat[0] + flat[1] * flat[1]
    factor = (1 + camera[9] * square + camera[10] * square * square) * camera[6]
    return [weight * (flat[i] * factor + camera[7 + i] - features[:, i]) for i in range(2)]


def parameters(cameras, points, camera_of, point_of):
    """One vector for each parameter of the observations' cameras, and of their points."""
    return (
        tf.unstack(tf.gather(tf.transpose(cameras), camera_of, axis=1)),
        tf.unstack(tf.gather(tf.transpose(points), point_of, axis=1)),
    )


@tf.function
def objective(cameras, points, weights, features, camera_of, point_of):
    error = errors(*parameters(cameras, points, camera_of, point_of), weights, features)
    return {"reproj_error": tf.stack(error, 1), "w_err": 1 - weights * weights}


@tf.function
def jacobian(cameras, points, weights, features, camera_of, point_of):
    p, behind_cameras = weights.shape[0], CAMERA * cameras.shape[0]
    behind_points = behind_cameras + POINT * points.shape[0]
    camera, x = parameters(cameras, points, camera_of, point_of)
    given = [*camera, *x, weights]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(given)
        error = errors(camera, x, weights, features)
        weight_error = 1 - weights * weights
    zero = tf.UnconnectedGradients.ZERO
    blocks = tf.transpose([g for e in error for g in tape.gradient(e, given, unconnected_gradients=zero)])
    values = tf.concat([tf.reshape(blocks, [-1]), tape.gradient(weight_error, weights)], 0)
    weight_columns = behind_points + tf.range(p, dtype=tf.int64)
    columns = tf.concat(
        [
            CAMERA * camera_of[:, None] + np.arange(CAMERA),
            behind_cameras + POINT * point_of[:, None] + np.arange(POINT),
            weight_columns[:, None],
        ],
        1,
    )
    columns = tf.concat([tf.reshape(tf.tile(columns[:, None], [1, 2, 1]), [-1]), weight_columns], 0)
    rows = tf.concat([BLOCK * tf.range(2 * p, dtype=tf.int64), 2 * BLOCK * p + tf.range(p + 1, dtype=tf.int64)], 0)
    return {"rows": rows, "cols": columns, "vals": values}


def encode(output):
    """What the protocol asks for: one observation for all, as they are equal."""
    if "vals" in output:
        return {name: np.append(array[: 2 * BLOCK], array[-1]) for name, array in output.items()}
    error, weight_error = output["reproj_error"], output["w_err"]
    return {
        "reproj_error": {"elements": error[0], "repeated": np.asarray(len(error))},
        "w_err": {"element": weight_error[0], "repeated": np.asarray(len(weight_error))},
    }
