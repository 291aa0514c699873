"""The cost of k-means clustering, and the direction of Newton's method: gradient by diagonal of the Hessian."""

import tapeflow as tf


def prepare(values):
    return tf.constant(values["points"], tf.float64), tf.constant(values["centroids"], tf.float64)


def nearest(points, centroids):
    """The index of the nearest centroid of each point; the square of the point itself does not matter."""
    return tf.argmin(tf.reduce_sum(tf.square(centroids), 1) - 2 * tf.matmul(points, centroids, transpose_b=True), 1)


@tf.function
def cost(points, centroids):
    chosen = tf.gather(centroids, tf.stop_gradient(nearest(points, centroids)))
    return tf.reduce_sum(tf.square(points - chosen))


@tf.function
def dir(points, centroids):
    with tf.GradientTape() as outer:
        outer.watch(centroids)
        with tf.GradientTape() as inner:
            inner.watch(centroids)
            y = cost(points, centroids)
        slope = tf.convert_to_tensor(inner.gradient(y, centroids))
    diagonal = tf.convert_to_tensor(outer.gradient(slope, centroids))  # of a diagonal matrix: the sums of its rows
    return slope / diagonal
