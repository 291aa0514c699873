"""Writes docs/coverage.md: what of TensorFlow 2.21's public API exists in Tapeflow, what does not, and why.

TensorFlow's names come from tools/tensorflow_api.txt, a list made once from TensorFlow itself.
`python -m tools.coverage` prints the document, `python -m tools.coverage --write` stores it.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

NAMES = Path(__file__).parent / "tensorflow_api.txt"
DOCUMENT = Path(__file__).parents[1] / "docs" / "coverage.md"

TO_COME = "not written yet"
RAGGED = "shapes of nested ragged structures"
GRAPHS = "not written yet: parts of graphs that few programs name"
IMAGE_FILES = "image files other than JPEG, PNG, GIF, BMP and WebP"

# Why a namespace, or what starts like this, is absent. The longest match counts.
reason_by_prefix = {
    "tf.": TO_COME,
    "tf.OptionalSpec": "values of input pipelines",
    "tf.TensorArraySpec": GRAPHS,
    "tf.compat.dimension": "TensorFlow 1",
    "tf.check_pinned": "memory of GPUs",
    "tf.config": "devices and options that one CPU does not have",
    "tf.data": "input pipelines; any Python iterable feeds a tape",
    "tf.debugging.experimental": "dumps for TensorBoard",
    "tf.distribute": "several devices or machines",
    "tf.experimental.DynamicRaggedShape": RAGGED,
    "tf.experimental.Optional": "values of input pipelines",
    "tf.experimental.RowPartition": RAGGED,
    "tf.experimental.StructuredTensor": RAGGED,
    "tf.experimental.register_filesystem_plugin": "file systems of TensorFlow's own library",
    "tf.experimental.dtensor": "several devices or machines",
    "tf.experimental.tensorrt": "another runtime",
    "tf.graph_util": "graph files",
    "tf.gradients": "TensorFlow 1's gradients of graphs; use `tf.GradientTape`",
    "tf.hessians": "TensorFlow 1's gradients of graphs; use `tf.GradientTape`",
    "tf.image.decode_jxl": IMAGE_FILES,
    "tf.image.generate_bounding_box_proposals": "TensorFlow has it on GPUs only",
    "tf.import_graph_def": "graph files",
    "tf.load_library": "kernels built against TensorFlow's own library",
    "tf.load_op_library": "kernels built against TensorFlow's own library",
    "tf.nn.RNNCellDeviceWrapper": "wrappers of Keras cells",
    "tf.nn.RNNCellDropoutWrapper": "wrappers of Keras cells",
    "tf.nn.RNNCellResidualWrapper": "wrappers of Keras cells",
    "tf.no_gradient": "gradients by the name of a graph's operation; use `tf.custom_gradient`",
    "tf.nondifferentiable_batch_function": "batching of requests to a server",
    "tf.quantization.experimental": "graph files",
    "tf.quantization.quantized_concat": "tensors of quantized dtypes have no arithmetic here",
    "tf.io.decode_jxl": IMAGE_FILES,
    "tf.types.experimental.distributed": "several devices or machines",
    "tf.io": "graph files, and messages of which only a program knows the fields",
    "tf.lite": "another runtime",
    "tf.mlir": "the compiler's own formats",
    "tf.nn.experimental": TO_COME,
    "tf.profiler": "TensorFlow's own profiler",
    "tf.queue": "TensorFlow 1's input queues",
    "tf.raw_ops": "raw operations of the runtime itself: debugging, tests, handles",
    "tf.saved_model": "graph files",
    "tf.summary": "traces of graphs for TensorBoard",
    "tf.sysconfig": "building kernels against TensorFlow's own library",
    "tf.test": "helpers of TensorFlow's own suite",
    "tf.tpu": "hardware",
    "tf.train": "checkpoints and cluster descriptions",
    "tf.xla": "another compiler",
}

# The same for raw operations, by what their names hold; the first match counts.
reason_by_raw_name = [
    (r"Dataset|Iterator|Optional|DataService|StatsAggregator|MapDefun|Options|ThreadPool|ompress|SeedGenerator|GetElement"
     r"|IterationCounter|WindowOp|ComputeBatchSize",
     "raw operations of input pipelines: methods of `tf.data.Dataset`"),
    (r"Queue|Barrier|Stage|^Map|OrderedMap|^Stack|Reader|Accumulator|Mutex|RecordInput",
     "raw operations of TensorFlow 1's queues and stages"),
    (r"^Resource|Apply|Assign|Variable|VarHandle|VarIs|^Scatter|CountUpTo|DestroyResource|Temporary|^Ref|ImmutableConst",
     "raw operations on variables: methods of `tf.Variable`, and optimizers"),
    (r"Collective|Nccl|AllToAll|Send|Recv|TPU|Tpu|Replica|Distributed|Infeed|Outfeed|Enqueue|Xla|Rpc|Dequeue|Device|Global"
     r"|Prelinearize|CheckPinned|CopyHost|CooTensor|Minibatch",
     "raw operations for several devices: `tf.distribute`"),
    (r"[Qq]uanti[zs]|FakeQuant", "raw operations on quantized numbers, of which there are no tensors"),
    (r"BoostedTrees|TensorForest|Sdca|Decision|KMC2|Kmeans|NearestNeighbors|WALS|Vocab|LoadAndRemap",
     "raw operations of estimators, deprecated by TensorFlow itself"),
    (r"TensorList|TensorArray|TensorMap", "raw operations on lists of tensors: `tf.TensorArray`"),
    (r"^(If|Stateless(If|While|Case)|While|Case|For|Enter|Exit|Switch|Merge|NextIteration|LoopCond)$|Call$|Gradient$|Py[Ff]unc"
     r"|^Fake|^Placeholder|ControlTrigger|HostConst|^Batch(Function)?$|^Unbatch",
     "raw operations of control flow: `tf.cond`, `tf.while_loop` and functions are nodes of their own"),
    (r"Table|Lookup", "raw operations on tables: `tf.lookup`"),
    (r"Save|Restore|Summary|Checkpoint|File|MergeV2|Sharded|ImportEvent",
     "raw operations on files: `tf.io`, `tf.summary`, `tf.train`"),
    (r"Parse|Decode|Encode|Unicode|String|Regex|Example|erialize|Csv|Skip[Gg]ram|Mfcc|Spectrogram",
     "raw operations on messages and text: `tf.io`, `tf.strings`, `tf.signal`"),
    (r"Ragged|Sparse|CSR|DenseTo|SetSize", "raw operations on ragged and sparse tensors: methods, and `tf.sparse`"),
    (r"Random|Sampler|Multinomial|Rng|Stateless|Stateful|SampleDistorted|Fractional",
     "raw operations with random numbers: `tf.random`, `tf.image`, `tf.nn` draw them"),
    (r"LSTM|GRU|RNN|Cudnn|CTC", "raw operations of recurrent networks: `tf.nn.ctc_loss`, Keras' layers"),
    (r"WithArgmax|FusedResize|ApproxTopK|Proposals", "raw operations that fuse others: call the others"),
]  # fmt: skip


def tensorflow_names() -> list[str]:
    return NAMES.read_text().split()


def exists(name: str) -> bool:
    import tapeflow

    value: object = tapeflow
    for part in name.split(".")[1:]:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def compared() -> tuple[list[str], list[str]]:
    """TensorFlow's names that exist here, and those that do not."""
    names = tensorflow_names()
    present = [name for name in names if exists(name)]
    return present, sorted(set(names) - set(present))


def reason_for(name: str) -> str:
    if name.startswith("tf.raw_ops."):
        for pattern, reason in reason_by_raw_name:
            if re.search(pattern, name.removeprefix("tf.raw_ops.")):
                return reason
    prefixes = [p for p in reason_by_prefix if name == p or name.startswith(p if p.endswith(".") else f"{p}.")]
    return reason_by_prefix[max(prefixes, key=len)]


def namespace_of(name: str) -> str:
    return name.rpartition(".")[0]


def document() -> str:
    present, absent = compared()
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for names, column in ((present, 0), (absent, 1)):
        for name in names:
            counts[namespace_of(name)][column] += 1
    lines = [
        "# Coverage of TensorFlow's public API",
        "",
        f"Of the {len(present) + len(absent)} public names of TensorFlow 2.21 (`tf.keras` and `tf.compat.v1` aside) "
        f"{len(present)} exist in Tapeflow. Made by `python -m tools.coverage --write`.",
        "",
        "| namespace | exist | of |",
        "|---|---:|---:|",
        *(f"| `{space}` | {here} | {here + missing} |" for space, (here, missing) in sorted(counts.items())),
        "",
        "## What is not there, and why",
    ]
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name in absent:
        by_reason[reason_for(name)].append(name)
    for reason, names in sorted(by_reason.items(), key=lambda item: (item[0] != TO_COME, item[0])):
        lines += ["", f"### {reason[0].upper()}{reason[1:]}", "", ", ".join(f"`{name}`" for name in names)]
    return "\n".join(lines) + "\n"


def main() -> None:
    if "--write" in sys.argv:
        DOCUMENT.write_text(document())
    else:
        sys.stdout.write(document())


if __name__ == "__main__":
    main()
