"""Where TensorFlow 1's names are defined: their package is imported when one of them is asked for."""

from tapeflow.namespace import definitions_later, public_later

definitions_later("compat.v1", "tapeflow.v1.names")
public_later("tapeflow.v1.coordinator", "train.Coordinator")
public_later("tapeflow.v1.graph", "Graph")
public_later("tapeflow.v1.graph_def", "io.write_graph")
public_later("tapeflow.v1.input_producers", "io.match_filenames_once")
public_later("tapeflow.v1.moving_average", "train.ExponentialMovingAverage")
public_later(
    "tapeflow.v1.queues",
    "queue.QueueBase", "queue.FIFOQueue", "queue.PaddingFIFOQueue", "queue.PriorityQueue", "queue.RandomShuffleQueue",
    "io.QueueBase", "io.PaddingFIFOQueue", "io.PriorityQueue", "io.RandomShuffleQueue",
)  # fmt: skip
