"""`tf.train.Example` and its parts: named lists of bytes, floats or integers, as data sets keep them in files."""

from __future__ import annotations

from typing import ClassVar

from tapeflow._src.io.protos.message import Field, Message
from tapeflow._src.namespace import public


@public("train.BytesList", "compat.v1.train.BytesList")
class BytesList(Message):
    """A list of byte strings.

    >>> tf.train.BytesList(value=[b"a"]).value
    [b'a']
    """

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, "bytes", repeated=True)}


@public("train.FloatList", "compat.v1.train.FloatList")
class FloatList(Message):
    """A list of numbers, float32 on the wire.

    >>> tf.train.FloatList(value=[1.5]).value
    [1.5]
    """

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, "float", repeated=True)}


@public("train.Int64List", "compat.v1.train.Int64List")
class Int64List(Message):
    """A list of integers.

    >>> tf.train.Int64List(value=[1, 2]).value
    [1, 2]
    """

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, "int", repeated=True)}


@public("train.Feature", "compat.v1.train.Feature")
class Feature(Message):
    """One of the three lists.

    >>> tf.train.Feature(int64_list=tf.train.Int64List(value=[1])).WhichOneof("kind")
    'int64_list'
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "bytes_list": Field(1, BytesList, choice="kind"),
        "float_list": Field(2, FloatList, choice="kind"),
        "int64_list": Field(3, Int64List, choice="kind"),
    }


@public("train.Features", "compat.v1.train.Features")
class Features(Message):
    """Features by name.

    >>> features = tf.train.Features()
    >>> features.feature["a"].int64_list.value.append(1)
    >>> list(features.feature)
    ['a']
    """

    FIELDS: ClassVar[dict[str, Field]] = {"feature": Field(1, Feature, mapped=True)}


@public("train.FeatureList", "compat.v1.train.FeatureList")
class FeatureList(Message):
    """Features one after the other.

    >>> len(tf.train.FeatureList(feature=[tf.train.Feature()]).feature)
    1
    """

    FIELDS: ClassVar[dict[str, Field]] = {"feature": Field(1, Feature, repeated=True)}


@public("train.FeatureLists", "compat.v1.train.FeatureLists")
class FeatureLists(Message):
    """Lists of features by name.

    >>> list(tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList()}).feature_list)
    ['a']
    """

    FIELDS: ClassVar[dict[str, Field]] = {"feature_list": Field(1, FeatureList, mapped=True)}


@public("train.Example", "compat.v1.train.Example")
class Example(Message):
    """One element of a data set: its features by name.

    >>> ages = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": ages}))
    >>> tf.train.Example.FromString(example.SerializeToString()) == example
    True
    """

    FIELDS: ClassVar[dict[str, Field]] = {"features": Field(1, Features)}


@public("train.SequenceExample", "compat.v1.train.SequenceExample")
class SequenceExample(Message):
    """One sequence of a data set: features of the whole, and lists of features, by name.

    >>> tf.train.SequenceExample().context.feature
    {}
    """

    FIELDS: ClassVar[dict[str, Field]] = {"context": Field(1, Features), "feature_lists": Field(2, FeatureLists)}
