"""Sums of tensors of many sizes and dtypes, several messages at once, and float32 that travels as bfloat16."""

import numpy as np
import tensorflow as tf

from tapeflow._src.distribute import collectives

strategy = tf.distribute.MultiWorkerMirroredStrategy()
group, rank, size = strategy._group, strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
sizes = [0, 1, 3, 1000, 32768, 32769, 600_001]  # a piece has 32,768 elements of float32


def values(dtype, of_rank):
    return [(np.arange(n) % 5 + of_rank + number).astype(dtype) for number, n in enumerate(sizes)]


for dtype in ("float32", "float64", "float16", "int8", "int64", "complex128"):
    expected = [sum(parts) for parts in zip(*(values(dtype, r) for r in range(size)))]
    for bytes_per_pack in (0, 1, 1 << 18):
        sums = collectives.all_reduce(group, values(dtype, rank), bytes_per_pack)
        for total, wanted in zip(sums, expected, strict=True):
            np.testing.assert_array_equal(total, wanted)

rows = np.random.default_rng(0).normal(size=[size, 70_000]).astype("float32")
narrow = tf.distribute.experimental.CommunicationOptions(wire_dtype=tf.bfloat16)
total = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", rows[rank], narrow))
rounded = tf.cast(tf.cast(rows, tf.bfloat16), tf.float32).numpy()
assert total.dtype == tf.float32
np.testing.assert_allclose(total, rounded.sum(0), rtol=2**-8, atol=2**-7)
assert not np.array_equal(total, rows.sum(0))
everywhere = strategy.gather(tf.convert_to_tensor(total)[None], axis=0).numpy()
assert all(np.array_equal(everywhere[0], other) for other in everywhere)

in_order = rows[0].copy()
for row in rows[1:]:
    in_order += row
exact = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(rows[rank])))
if type(group).__name__ == "OneMachine":
    np.testing.assert_array_equal(exact, in_order)  # the order of the ranks
print("all equal", flush=True)
