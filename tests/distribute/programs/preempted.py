"""Trains for twelve steps with a checkpoint; ends itself by a signal in the middle of the first run, if asked to."""

import os
import signal
import sys

import tensorflow as tf

folder, how = sys.argv[1:3]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
with strategy.scope():
    w, step = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(w=w, step=step)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(strategy.cluster_resolver, manager)


def train():
    def replica():
        x = tf.random.stateless_normal([3], seed=[int(step.numpy()), rank])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w * x - 1.0) ** 2)
        return tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, w))

    w.assign_sub(0.01 * strategy.run(replica))
    step.assign_add(1)


marker = os.path.join(folder, "ended")
while int(step.numpy()) < 12:
    if how != "undisturbed" and int(step.numpy()) == 5 and rank == 1 and not os.path.exists(marker):
        open(marker, "w").close()
        os.kill(os.getpid(), signal.SIGTERM if how == "terminate" else signal.SIGKILL)
    handler.run(train)
    if how == "kill" and int(step.numpy()) % 4 == 0 and rank == 0:
        manager.save()
print("final", w.numpy().tobytes().hex(), int(step.numpy()), flush=True)
