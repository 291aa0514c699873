"""Names of TensorFlow 1, of Keras and of TensorFlow's inner modules: what defines them is imported on first use."""

from tapeflow._src.compat.tensorflow.alias import offer_inner_modules
from tapeflow._src.namespace import definitions_later, package_later, public_later

definitions_later("compat.v1", "tapeflow._src.compat.v1.names")
public_later("tapeflow._src.compat.v1.sessions.coordinator", "train.Coordinator")
public_later("tapeflow._src.compat.v1.graph.graph", "Graph")
public_later("tapeflow._src.compat.v1.graph.operation", "Operation")
public_later("tapeflow._src.compat.v1.graph.graph_def", "io.write_graph")
public_later("tapeflow._src.compat.v1.graph.graph_import", "import_graph_def", "graph_util.import_graph_def")
public_later("tapeflow._src.compat.v1.queues.input_producers", "io.match_filenames_once")
public_later("tapeflow._src.compat.v1.variables.moving_average", "train.ExponentialMovingAverage")
public_later(
    "tapeflow._src.compat.v1.queues.queues",
    "queue.QueueBase", "queue.FIFOQueue", "queue.PaddingFIFOQueue", "queue.PriorityQueue", "queue.RandomShuffleQueue",
    "io.QueueBase", "io.PaddingFIFOQueue", "io.PriorityQueue", "io.RandomShuffleQueue",
)  # fmt: skip

for _path in ("keras", "losses", "metrics", "optimizers", "initializers"):
    package_later(_path, "tapeflow._src.compat.tensorflow.keras")

offer_inner_modules("tapeflow._src.compat.tensorflow.inner_modules.table")
