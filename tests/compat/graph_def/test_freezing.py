"""Frozen functions: constants in place of variables."""

import numpy as np

import tapeflow as tf
from tapeflow._src.compat.graph_def.freezing import convert_variables_to_constants_v2


def test_variables_become_constants():
    v, steps = tf.Variable([2.0, 3.0]), tf.Variable(2)

    @tf.function
    def scale(x):
        for _ in tf.range(steps):
            x = x * v
        return {"y": x, "z": tf.gather(v, [1])}

    concrete = scale.get_concrete_function(tf.TensorSpec([None, 2], name="x"))
    frozen = convert_variables_to_constants_v2(concrete)
    x = tf.constant([[1.0, 1.0]])
    v.assign([7.0, 7.0])
    y, z = frozen(x)
    np.testing.assert_array_equal(y, [[4.0, 9.0]])
    np.testing.assert_array_equal(z, [3.0])
    assert not frozen.variables
    definition = frozen.graph.as_graph_def()
    assert not [node for node in definition.node if "Variable" in node.op or node.op == "VarHandleOp"]
    assert [tensor.name for tensor in frozen.inputs] == ["x:0"]
