"""Mistakes that type checkers must find: each line that says `# wrong`, and no other."""

import tapeflow as tf

x = tf.constant([1.0, 2.0])
v = tf.Variable(1.0)
with tf.GradientTape(persistent=True) as tape:
    y = x * v

tf.reduce_meen(x)  # wrong
tf.reduce_sum(x, axsi=0)  # wrong
tf.reduce_sum(x, axis="0")  # wrong
tf.nn.conv2d(x, x, strides=1, pading="SAME")  # wrong
tf.matmul(x)  # wrong
tf.zeros([2], dtype=[1])  # wrong
tf.linalg.choleski(x)  # wrong
v.asign(2.0)  # wrong
x.shape.as_lists()  # wrong
tape.gradient(y, v, output_grads=None)  # wrong
tape.gradient(y, v).shape  # wrong
tf.data.Dataset.from_tensor_slice(x)  # wrong
tf.reduce_sum(x, axis=[0], keepdims=True)
tf.cast(x, "int32") + tf.constant(1)
first: tf.Tensor | None = tape.gradient(y, v)
several: list[tf.Tensor | None] = tape.gradient(y, [x, v])
by_name: dict[str, tf.Tensor | None] = tape.gradient(y, {"v": v})
zeros: tf.Tensor = tape.gradient(y, v, unconnected_gradients="zero")
print(first, several, by_name, zeros)
