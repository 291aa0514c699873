"""Writes what TensorFlow's operations take and give, one line each, to the table that reads and writes graphs.

    .peers/bin/python tools/op_defs.py

Each line is `Name|inputs|outputs|attributes`, with `*` after the name of a stateful operation. An input or output is
`name:type`: a dtype, the attribute that holds it, `N*type` for a list of one type, `*types` for a list of several. What
`tf.raw_ops` calls otherwise is `name>other:type`. An attribute is `name:kind`, with `=default` if it has one.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python import ops as gen_ops
from tensorflow.python.framework import op_def_registry

TARGET = Path(__file__).parents[1] / "tapeflow/_src/compat/graph_def/op_defs.txt"
FOREIGN = re.compile(
    r"Tpu|TPU|^Xla|^XLA|Collective|^Nccl|Dataset|Iterator|Quantized|^Mkl|_Mkl|^_|Boosted|^MLIR|Mlir|Rpc|^Risc|BigTable|"
    r"^DT|^Uniform(De)?[qQ]uantize|TensorForest|^Sdca|^Load.*Parameters|^Retrieve.*Parameters|^TFL|^Dtensor|^IfrtC|"
    r"^Enqueue.*TPU|^Recv|^Send|^Debug|^Delegate|GRUBlock|^Cudnn(?!RNN)|Multi[dD]evice|^Sync|^Audio(Spectrogram)?Dev"
)
# Datasets inside of functions, which `compat/saved_model/dataset_nodes.py` reads.
DATASETS = frozenset(
    ("AnonymousIteratorV2", "AnonymousIteratorV3", "BatchDataset", "BatchDatasetV2", "CacheDataset", "CacheDatasetV2")
    + ("ConcatenateDataset", "DeleteIterator", "FilterDataset", "FlatMapDataset", "IteratorGetNext", "IteratorV2")
    + ("IteratorGetNextSync", "MakeIterator", "MapDataset", "ModelDataset", "OptionsDataset", "ParallelBatchDataset")
    + ("ParallelMapDataset", "ParallelMapDatasetV2", "PrefetchDataset", "RangeDataset", "ReduceDataset")
    + ("RepeatDataset", "ScanDataset", "ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3", "SkipDataset")
    + ("TakeDataset", "TakeWhileDataset", "TensorDataset", "TensorSliceDataset", "ZipDataset", "FinalizeDataset")
    + ("AnonymousMemoryCache", "DummyMemoryCache", "AnonymousSeedGenerator", "DummySeedGenerator", "DeleteMemoryCache")
    + ("DeleteSeedGenerator", "RewriteDataset", "MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset")
    + ("TextLineDataset", "TFRecordDataset", "TFRecordDatasetV2", "FixedLengthRecordDataset", "PaddedBatchDataset")
    + ("FixedLengthRecordDatasetV2", "PaddedBatchDatasetV2", "ShardDataset", "UnbatchDataset", "UniqueDataset")
    + ("IgnoreErrorsDataset", "WindowDataset", "InterleaveDataset", "ParallelInterleaveDatasetV2", "DatasetCardinality")
    + ("ParallelInterleaveDatasetV3", "ParallelInterleaveDatasetV4", "ParallelFilterDataset", "MapAndBatchDataset")
    + ("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2", "AssertCardinalityDataset", "OptimizeDataset")
    + ("OptimizeDatasetV2", "AutoShardDataset", "AssertNextDataset", "NonSerializableDataset", "DatasetToSingleElement")
    + ("IteratorGetNextAsOptional", "GroupByWindowDataset", "DirectedInterleaveDataset", "RebatchDatasetV2")
    + ("RandomDataset", "RandomDatasetV2", "GroupByReducerDataset", "ExperimentalGroupByReducerDataset")
)


def dtype_text(number: int) -> str:
    """The name of a dtype."""
    return tf.as_dtype(number).name


def argument(arg: Any, names: dict[str, str]) -> str:
    """One input or output."""
    if arg.type_list_attr:
        kind = f"*{arg.type_list_attr}"
    else:
        kind = arg.type_attr or dtype_text(arg.type)
        if arg.number_attr:
            kind = f"{arg.number_attr}*{kind}"
    other = names.get(arg.name, arg.name)
    return f"{arg.name}{f'>{other}' if other != arg.name else ''}:{kind}{'&' if arg.is_ref else ''}"


def value_text(value: Any) -> str:
    """A default value, as Python."""
    kind = value.WhichOneof("value")
    if kind == "list":
        for name in ("s", "i", "f", "b", "type", "shape", "tensor", "func"):
            items = getattr(value.list, name)
            if items:
                return repr([plain(name, x) for x in items]).replace(" ", "")
        return "[]"
    return repr(plain(kind, getattr(value, kind))).replace(" ", "\\x20")


def plain(kind: str, value: Any) -> Any:
    """A value as Python; a shape is a list, or None if its rank is unknown."""
    if kind == "type":
        return dtype_text(value)
    if kind == "s":
        return value.decode()
    if kind == "shape":
        return None if value.unknown_rank else [d.size for d in value.dim]
    if kind == "tensor":
        return tf.make_ndarray(value).tolist()
    if kind == "func":
        return value.name
    return value


def python_names() -> dict[str, dict[str, str]]:
    """For every operation, how `tf.raw_ops` calls its arguments."""
    found: dict[str, dict[str, str]] = {}
    for module in pkgutil.iter_modules(gen_ops.__path__):
        if not module.name.startswith("gen_"):
            continue
        source = inspect.getsource(importlib.import_module(f"tensorflow.python.ops.{module.name}"))
        for name, body in re.findall(r'_apply_op_helper\(\s*"(\w+)",(.*?)name=name\)', source, re.S):
            found[name] = dict(re.findall(r"(\w+)=(\w+)", body))
    return found


def main() -> None:
    """Writes the table."""
    names_by_op = python_names()
    lines = []
    for name, definition in sorted(all_definitions()):
        if FOREIGN.search(name) and name not in DATASETS:
            continue
        names = names_by_op.get(name, {})
        attributes = []
        for attr in definition.attr:
            other = names.get(attr.name, attr.name)
            shown = f"{attr.name}{f'>{other}' if other != attr.name else ''}:{attr.type.replace(' ', '')}"
            attributes.append(shown + (f"={value_text(attr.default_value)}" if attr.HasField("default_value") else ""))
        inputs = " ".join(argument(arg, names) for arg in definition.input_arg)
        outputs = " ".join(argument(arg, {}) for arg in definition.output_arg)
        lines.append(f"{name}{'*' if definition.is_stateful else ''}|{inputs}|{outputs}|{' '.join(attributes)}")
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} operations")


def all_definitions() -> list[tuple[str, Any]]:
    """Every operation that TensorFlow registers."""
    names = [name for name in dir(tf.raw_ops) if name[0].isalpha()]
    found = {name: op_def_registry.get(name) for name in names}
    return [(name, definition) for name, definition in found.items() if definition is not None]


if __name__ == "__main__":
    main()
