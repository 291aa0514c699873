"""How a worker names its devices, variables and the elements of its datasets."""

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    v = tf.Variable(1.0)
dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
(element,) = dataset
extended = strategy.extended
print(extended._task_type, extended._task_id, extended._id_in_cluster)
print((tf.constant(1.0) + 1).device)
print(v.device, strategy.extended.worker_devices)
print([device.name for device in tf.config.list_logical_devices("CPU")])
print(type(element).__name__, [part.numpy().tolist() for part in element.values], element.values[0].device)
print(dataset.element_spec)
print(strategy.run(lambda x: x + 1, args=(element,)).numpy().tolist())
print(repr(v).splitlines()[0])
with tf.device("/job:worker/cpu:0"):
    print(tf.constant(1.0).device)
try:
    with tf.device("/job:localhost/cpu:0"):
        pass
except tf.errors.InvalidArgumentError as error:
    print(error.message)
