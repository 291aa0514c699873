"""The messages that have public names, with their documentation; imported when one is asked for."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public


def _publish(name: str, doc: str, *paths: str) -> Any:
    cls = messages.message_class(name)
    cls.__doc__, cls.__module__ = doc, "google.protobuf"
    return public(*paths)(cls)


def _in_train(name: str, doc: str) -> None:
    _publish(name, doc, f"train.{name}", f"compat.v1.train.{name}")


_in_train(
    "BytesList",
    """A list of byte strings.

    >>> tf.train.BytesList(value=[b"a"]).value
    [b'a']
    """,
)
_in_train(
    "FloatList",
    """A list of numbers, float32 on the wire.

    >>> tf.train.FloatList(value=[1.5]).value
    [1.5]
    """,
)
_in_train(
    "Int64List",
    """A list of integers.

    >>> tf.train.Int64List(value=[1, 2]).value
    [1, 2]
    """,
)
_in_train(
    "Feature",
    """One of the three lists.

    >>> tf.train.Feature(int64_list=tf.train.Int64List(value=[1])).WhichOneof("kind")
    'int64_list'
    """,
)
_in_train(
    "Features",
    """Features by name.

    >>> features = tf.train.Features()
    >>> features.feature["a"].int64_list.value.append(1)
    >>> list(features.feature)
    ['a']
    """,
)
_in_train(
    "FeatureList",
    """Features one after the other.

    >>> len(tf.train.FeatureList(feature=[tf.train.Feature()]).feature)
    1
    """,
)
_in_train(
    "FeatureLists",
    """Lists of features by name.

    >>> list(tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList()}).feature_list)
    ['a']
    """,
)
_in_train(
    "Example",
    """One element of a data set: its features by name.

    >>> ages = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": ages}))
    >>> tf.train.Example.FromString(example.SerializeToString()) == example
    True
    """,
)
_in_train(
    "SequenceExample",
    """One sequence of a data set: features of the whole, and lists of features, by name.

    >>> len(tf.train.SequenceExample().context.feature)
    0
    """,
)
_publish(
    "AttrValue",
    """An attribute of a node: a number, a dtype, a shape or a tensor.

    >>> tf.compat.v1.AttrValue(i=3).i
    3
    """,
    "compat.v1.AttrValue",
)
_publish(
    "NameAttrList",
    """A function and its attributes.

    >>> tf.compat.v1.NameAttrList(name="f").name
    'f'
    """,
    "compat.v1.NameAttrList",
)
_publish(
    "NodeDef",
    """One node: its name, its operation, what it takes, and its attributes.

    >>> tf.compat.v1.NodeDef(name="y", op="AddV2", input=["x", "x"]).op
    'AddV2'
    """,
    "compat.v1.NodeDef",
)
_publish(
    "GraphDef",
    """The nodes of a graph.

    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.constant(1.) + 2.
    >>> [node.name for node in graph.as_graph_def().node]
    ['Const', 'add/y', 'add']
    """,
    "compat.v1.GraphDef",
)
_publish(
    "MetaGraphDef",
    """A graph with its signatures, collections and the nodes that save its variables.

    >>> tf.compat.v1.MetaGraphDef().HasField("graph_def")
    False
    """,
    "compat.v1.MetaGraphDef",
)
_publish(
    "TensorInfo",
    """The name, dtype and shape of a tensor of a signature.

    >>> tf.compat.v1.TensorInfo(name="x:0").name
    'x:0'
    """,
    "compat.v1.TensorInfo",
)
_publish(
    "SummaryMetadata",
    """How a value is shown.

    >>> metadata = tf.compat.v1.SummaryMetadata()
    >>> metadata.plugin_data.plugin_name = "scalars"
    >>> metadata.plugin_data.plugin_name
    'scalars'
    """,
    "compat.v1.SummaryMetadata",
)
_publish(
    "HistogramProto",
    """A histogram: the upper ends of buckets, and how many values are in each.

    >>> tf.compat.v1.HistogramProto(min=1., max=2., num=3).num
    3.0
    """,
    "compat.v1.HistogramProto",
)
_publish(
    "Summary",
    """Values of one moment.

    >>> tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="loss", simple_value=0.5)]).value[0].tag
    'loss'
    """,
    "compat.v1.Summary",
)
_publish(
    "Event",
    """One record of a file.

    >>> tf.compat.v1.Event(step=3).step
    3
    """,
    "compat.v1.Event",
)
_publish(
    "SessionLog",
    """What a session did: it was started or stopped, or wrote a checkpoint.

    >>> tf.compat.v1.SessionLog(status=tf.compat.v1.SessionLog.START).status
    1
    """,
    "compat.v1.SessionLog",
)
_publish(
    "ConfigProto",
    """Settings of a session. `operation_timeout_in_ms` ends runs that wait too long; the others change nothing here.

    >>> config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    >>> config.gpu_options.allow_growth = True
    >>> tf.compat.v1.ConfigProto.FromString(config.SerializeToString()) == config
    True
    """,
    "compat.v1.ConfigProto",
)
_publish(
    "GPUOptions",
    """Settings of graphics processors, which are kept and change nothing here.

    >>> tf.compat.v1.GPUOptions(allow_growth=True).allow_growth
    True
    """,
    "compat.v1.GPUOptions",
)
_publish(
    "GraphOptions",
    """Settings of how graphs are rewritten, which are kept and change nothing here.

    >>> tf.compat.v1.GraphOptions(infer_shapes=True).infer_shapes
    True
    """,
    "compat.v1.GraphOptions",
)
_publish(
    "OptimizerOptions",
    """Settings of how graphs are optimized, which are kept and change nothing here.

    >>> tf.compat.v1.OptimizerOptions(opt_level=tf.compat.v1.OptimizerOptions.L0).opt_level
    -1
    """,
    "compat.v1.OptimizerOptions",
)
_publish(
    "RunOptions",
    """Settings of one run. `timeout_in_ms` ends a run that waits too long; the others change nothing here.

    >>> tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE).trace_level
    3
    """,
    "compat.v1.RunOptions",
)
_publish(
    "RunMetadata",
    """What a run reports about itself: sessions leave it as it is.

    >>> len(tf.compat.v1.RunMetadata().step_stats.dev_stats)
    0
    """,
    "compat.v1.RunMetadata",
)
_in_train(
    "ClusterDef",
    """The jobs of a cluster.

    >>> tf.train.ClusterDef(job=[tf.train.JobDef(name="worker", tasks={0: "a:1"})]).job[0].tasks[0]
    'a:1'
    """,
)
_in_train(
    "JobDef",
    """A job of a cluster: the addresses of its tasks by number.

    >>> dict(tf.train.JobDef(name="worker", tasks={0: "a:1"}).tasks)
    {0: 'a:1'}
    """,
)
_in_train(
    "ServerDef",
    """A task of a cluster.

    >>> tf.train.ServerDef(job_name="worker", task_index=1).task_index
    1
    """,
)
