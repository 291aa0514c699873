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
    square = tf.reduce_sum(axis * axis, -1, keepdims=True)
    turned = square > 0
    angle = tf.sqrt(tf.where(turned, square, 1.0))
    unit = axis / angle
    along = unit * tf.reduce_sum(unit * x, -1, keepdims=True)
    result = x * tf.cos(angle) + tf.linalg.cross(unit, x) * tf.sin(angle) + along * (1 - tf.cos(angle))
    return tf.where(turned, result, x + tf.linalg.cross(axis, x))


def project(camera, x):
    axis, centre, focal, principal, radial = tf.split(camera, [3, 3, 1, 2, 2], -1)
    seen = rotate(axis, x - centre)
    flat = seen[:, :2] / seen[:, 2:]
    square = tf.reduce_sum(flat * flat, -1, keepdims=True)
    distortion = 1 + radial[:, :1] * square + radial[:, 1:] * square * square
    return flat * distortion * focal + principal


def errors(camera, x, weight, features):
    return weight * (project(camera, x) - features)


@tf.function
def objective(cameras, points, weights, features, camera_of, point_of):
    error = errors(tf.gather(cameras, camera_of), tf.gather(points, point_of), weights[:, None], features)
    return {"reproj_error": error, "w_err": 1 - weights * weights}


@tf.function
def jacobian(cameras, points, weights, features, camera_of, point_of):
    p, behind_cameras = weights.shape[0], CAMERA * cameras.shape[0]
    behind_points = behind_cameras + POINT * points.shape[0]
    given = [tf.gather(cameras, camera_of), tf.gather(points, point_of), weights[:, None]]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([*given, weights])
        error = errors(*given, features)
        by_coordinate = tf.unstack(error, axis=1)
        weight_error = 1 - weights * weights
    blocks = tf.stack([tf.concat(tape.gradient(part, given), 1) for part in by_coordinate], 1)
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
