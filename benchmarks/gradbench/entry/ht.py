"""Hand tracking: distances of measured points from a skinned hand model, and their Jacobian by the pose.

`theta` has the global rotation and translation and four angles for each finger; `us`, where given, two coordinates
inside a triangle of the model for each point. A row of the Jacobian has the derivatives by these first.
"""

import numpy as np

import tapeflow as tf

FINGERS, ANGLES = 5, 4
FIRST_FINGER_BONE = 2  # behind the wrist and the forearm come four bones for each finger


def prepare(values):
    model = values["data"]["model"]
    arrays = {
        name: tf.constant(model[name], tf.float64) for name in ("base_relatives", "inverse_base_absolutes", "weights")
    }
    positions = np.asarray(model["base_positions"], float)
    if model["is_mirrored"]:
        arrays["mirror"] = tf.constant([-1.0, 1.0, 1.0], tf.float64)
    corners = np.asarray(values["data"]["correspondences"])
    if values["us"]:
        corners = np.asarray(model["triangles"])[corners]
    constants = arrays | {
        "positions": tf.constant(positions),
        "corners": tf.constant(corners),
        "points": tf.constant(values["data"]["points"], tf.float64),
    }
    us = tf.constant(values["us"], tf.float64) if values["us"] else None
    return tf.constant(values["theta"], tf.float64), us, constants, tuple(model["parents"])


def rotation_by_axis(axis):
    square = tf.reduce_sum(axis * axis)
    turned = square >= 1e-8
    angle = tf.sqrt(tf.where(turned, square, 1.0))
    x, y, z = tf.unstack(axis / angle)
    cross = tf.reshape(tf.stack([0 * x, -z, y, z, 0 * x, -x, -y, x, 0 * x]), [3, 3])
    unit = tf.eye(3, dtype=tf.float64)
    turn = unit + tf.sin(angle) * cross + (1 - tf.cos(angle)) * (cross @ cross)
    return tf.where(turned, turn, unit)


def rotation_by_angles(x, z):
    """The product of the rotations around z and x for each bone, as matrices of 4 rows."""
    cx, sx, cz, sz, none = tf.cos(x), tf.sin(x), tf.cos(z), tf.sin(z), tf.zeros_like(x)
    rows = [cz, -sz * cx, sz * sx, none, sz, cz * cx, -cz * sx, none, none, sx, cx, none, none, none, none, none + 1]
    return tf.reshape(tf.stack(rows, -1), [-1, 4, 4])


def vertices(theta, constants, parents):
    bones = len(parents)
    angles = tf.reshape(theta[6:], [FINGERS, ANGLES])
    # The first bone of a finger bends in two directions, the next two in one, the last not at all.
    bends = tf.concat([angles[:, :1], angles[:, 2:], tf.zeros([FINGERS, 1], tf.float64)], 1)
    spreads = tf.pad(angles[:, 1:2], [[0, 0], [0, 3]])
    around = [[FIRST_FINGER_BONE, bones - FIRST_FINGER_BONE - FINGERS * ANGLES]]
    turns = rotation_by_angles(*(tf.pad(tf.reshape(a, [-1]), around) for a in (bends, spreads)))
    relatives = tf.unstack(constants["base_relatives"] @ turns)
    absolutes = []
    for relative, parent in zip(relatives, parents, strict=True):
        absolutes.append(relative if parent == -1 else absolutes[parent] @ relative)
    transforms = (tf.stack(absolutes) @ constants["inverse_base_absolutes"])[:, :3]
    # Vertices times bones, each entry a weight times a base position: one product for all.
    weighted = constants["weights"][:, :, None] * constants["positions"][:, None]
    flat = tf.reshape(tf.transpose(transforms, [0, 2, 1]), [4 * bones, 3])
    skinned = tf.reshape(weighted, [-1, 4 * bones]) @ flat
    if "mirror" in constants:
        skinned *= constants["mirror"]
    return tf.matmul(skinned, rotation_by_axis(theta[:3]), transpose_b=True) + theta[3:6]


def distances(theta, us, constants, parents):
    hand = tf.gather(vertices(theta, constants, parents), constants["corners"])
    if us is not None:
        shares = tf.concat([us, 1 - tf.reduce_sum(us, 1, keepdims=True)], 1)
        hand = tf.reduce_sum(shares[:, :, None] * hand, 1)
    return constants["points"] - hand


@tf.function
def objective(theta, us, constants, parents):
    return tf.reshape(distances(theta, us, constants, parents), [-1])


@tf.function
def jacobian(theta, us, constants, parents):
    def along(direction):
        return tf.autodiff.jvp(lambda t: distances(t, us, constants, parents), [theta], [direction])[1]

    by_theta = tf.transpose(tf.vectorized_map(along, tf.eye(theta.shape[0], dtype=tf.float64)), [1, 2, 0])
    if us is None:
        return tf.reshape(by_theta, [-1, theta.shape[0]])
    with tf.GradientTape() as tape:
        tape.watch(us)
        y = distances(theta, us, constants, parents)
    by_us = tape.batch_jacobian(y, us)
    return tf.reshape(tf.concat([by_us, by_theta], 2), [-1, 2 + theta.shape[0]])
