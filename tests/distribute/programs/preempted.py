"""Trains for twelve steps with checkpoints; on the way it is ended in one of several ways, if asked to."""

import os
import resource
import signal
import sys

import tensorflow as tf

folder, how = sys.argv[1:3]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
with strategy.scope():
    w, step = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0, dtype=tf.int64)
    on_read = tf.VariableSynchronization.ON_READ
    seen = tf.Variable(0.0, synchronization=on_read, aggregation=tf.VariableAggregation.SUM)
merged = {"seen": seen} if how == "terminate" else {}  # its checkpoint is a collective: the handler's alone
checkpoint = tf.train.Checkpoint(w=w, step=step, **merged)
manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(strategy.cluster_resolver, manager)


def train():
    def replica():
        x = tf.random.stateless_normal([3], seed=[int(step.numpy()), rank])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((w * x - 1.0) ** 2)
        seen.assign_add(1.0)
        return tf.distribute.get_replica_context().all_reduce("MEAN", tape.gradient(loss, w))

    w.assign_sub(0.01 * strategy.run(replica))
    step.assign_add(1)


def first_time(what):
    """Whether this is the first run that comes here."""
    path = os.path.join(folder, f"ended-{what}")
    if os.path.exists(path):
        return False
    open(path, "w").close()
    return True


while int(step.numpy()) < 12:
    now = int(step.numpy())
    if rank == 1 and how == "terminate" and now == 5 and first_time(now):
        os.kill(os.getpid(), signal.SIGTERM)
    if rank == 1 and how == "kill" and now in (3, 6, 9) and first_time(now):
        os.kill(os.getpid(), signal.SIGKILL)
    handler.run(train)
    if how in ("kill", "torn", "full") and int(step.numpy()) % 4 == 0 and rank == 0:
        if how == "full" and first_time("full"):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))  # the disk is full
        manager.save()
        if how == "torn" and first_time("torn"):
            for name in ("ckpt-7.index", "ckpt-7.data-00000-of-00001"):  # half of a checkpoint, and the end
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(b"half")
            os.kill(os.getpid(), signal.SIGKILL)
if how == "terminate":
    assert float(seen.read_value()) == 12.0 * strategy.num_replicas_in_sync
print("final", w.numpy().tobytes().hex(), int(step.numpy()), flush=True)
