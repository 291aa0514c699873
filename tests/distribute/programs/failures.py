"""Fails in one of several ways, on one rank."""

import json
import os
import signal
import sys
import threading
import time

import tensorflow as tf

how = sys.argv[1]
replica = tf.distribute.get_replica_context
if how == "early" and json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
    sys.exit(0)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
strategy.reduce("SUM", tf.ones([2]), axis=None)
if rank == 1:
    if how == "exception":
        raise ValueError("rank 1 has a bad day")
    if how == "exit":
        sys.exit(7)
    if how == "message":
        sys.exit("rank 1 has no data")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "stop in data":
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGSTOP)).start()
    if how in ("late", "options"):
        time.sleep(60)
    if how == "ended":
        sys.exit(0)
if how == "shape":
    strategy.reduce("SUM", tf.ones([2 + rank]), axis=None)
elif how == "order" and rank:
    strategy.gather(tf.ones([2]), axis=0)
elif how == "options":
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=1)
    step = tf.function(lambda: strategy.run(lambda: replica().all_reduce("SUM", tf.ones([4]), options)))
    step()
elif how == "path" and rank:
    tf.function(lambda: strategy.run(lambda: replica().all_reduce("SUM", [tf.ones([2]), tf.ones([3])])))()
elif how == "stop in data":
    for _ in range(1000):
        strategy.reduce("SUM", tf.ones([5_000_000]), axis=None)
elif how == "variables":
    with strategy.scope():
        made = [tf.Variable(0.0, name=f"w{number}") for number in range(1 + rank)]
print(strategy.reduce("SUM", tf.ones([2]), axis=None).numpy().tolist(), flush=True)
