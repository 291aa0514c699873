"""Nodes that use tables."""

import tapeflow as tf
from tapeflow._src.compat.graph_def import resources  # noqa: F401  registers handlers
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.compat.graph_def.program import run_node
from tapeflow._src.io.protos import messages


def test_a_table_of_a_file_that_is_computed_when_the_graph_runs(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    node = messages.NodeDef(name="n", op="InitializeTableFromTextFileV2")
    for name, number in {"key_index": -2, "value_index": -1}.items():
        node.attr[name].i = number
    library = FunctionLibrary(messages.FunctionDefLibrary(), "test")

    @tf.function
    def fill(folder):
        run_node(node, [table, tf.strings.join([folder, "/words.txt"])], library, {})
        return table.lookup(tf.constant(["b", "c"]))

    assert fill(tf.constant(str(tmp_path))).numpy().tolist() == [1, -1]
