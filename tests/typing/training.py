"""A typical training program, in which type checkers find nothing."""

import numpy as np

import tapeflow as tf


class Dense(tf.Module):
    def __init__(self, inputs: int, outputs: int, name: str | None = None) -> None:
        super().__init__(name=name)
        self.w = tf.Variable(tf.random.normal([inputs, outputs], stddev=0.1), name="w")
        self.b = tf.Variable(tf.zeros([outputs]), name="b")

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(tf.matmul(x, self.w) + self.b)


class Model(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = Dense(4, 16)
        self.out = tf.Variable(tf.random.normal([16, 3]))

    @tf.function
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return self.hidden(x) @ self.out


features = np.random.normal(size=(128, 4)).astype(np.float32)
labels = np.random.randint(0, 3, size=(128,))
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(128, seed=1).batch(32)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
model = Model()
step = tf.Variable(0, trainable=False, dtype=tf.int64)
rate = 0.1


@tf.function
def train_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        logits = model(x)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses) + 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])
    gradients = tape.gradient(loss, model.trainable_variables)
    for gradient, variable in zip(gradients, model.trainable_variables):
        if gradient is not None:
            variable.assign_sub(rate * tf.clip_by_norm(gradient, 5.0))
    step.assign_add(1)
    return loss


for epoch in range(3):
    total = 0.0
    for x, y in dataset:
        total += float(train_step(x, y))
    print(f"epoch {epoch}: {total:.3f}")

predictions = tf.argmax(model(tf.constant(features)), axis=-1)
accuracy = tf.reduce_mean(tf.cast(tf.equal(predictions, labels), tf.float32))
tf.debugging.assert_greater(accuracy, 0.0)
print("accuracy", accuracy.numpy(), accuracy.shape.as_list(), int(step))
checkpoint = tf.train.Checkpoint(model=model, step=step)
path = checkpoint.save("checkpoints/model")
checkpoint.restore(path).assert_consumed()
with tf.GradientTape(persistent=True) as outer:
    z = tf.constant([1.0, 2.0])
    outer.watch(z)
    with tf.GradientTape() as inner:
        inner.watch(z)
        value = tf.reduce_sum(tf.sin(z) ** 2)
    first = inner.gradient(value, z)
assert first is not None
hessian = outer.jacobian(first, z)
mask = tf.where(z > 1.5, tf.ones_like(z), tf.zeros_like(z))
onehot = tf.one_hot([0, 1], depth=3, dtype=tf.float32)
stacked = tf.concat([tf.reshape(z, [1, -1]), tf.expand_dims(z, axis=0)], axis=0)
print(tf.shape(stacked)[0], tf.math.log(stacked)[..., 0], stacked.dtype == tf.float32, hessian, mask, onehot)
