"""Variables by the raw operations on their handles: made without a value, assigned, read, shared by name."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table

R = tf.raw_ops


def test_a_variable_has_no_value_until_one_is_assigned():
    v = R.VarHandleOp(dtype=tf.int32, shape=[2])
    assert not R.VarIsInitializedOp(resource=v)
    with pytest.raises(tf.errors.FailedPreconditionError):
        R.ReadVariableOp(resource=v, dtype=tf.int32)
    R.AssignVariableOp(resource=v, value=[1, 2])
    R.AssignAddVariableOp(resource=v, value=[1, 1])
    assert R.ReadVariableOp(resource=v, dtype=tf.int32).numpy().tolist() == [2, 3]
    assert R.VarHandleOp(dtype=tf.int32, shape=[2]) is not v


def test_variables_are_shared_by_name_until_they_are_destroyed():
    first = R.VarHandleOp(dtype=tf.float32, shape=[], shared_name="shared")
    assert R.VarHandleOp(dtype=tf.float32, shape=[], shared_name="shared") is first
    assert R.VarHandleOp(dtype=tf.float32, shape=[], shared_name="shared", container="c") is not first
    with pytest.raises(tf.errors.InvalidArgumentError, match="has dtype float32; got int32"):
        R.VarHandleOp(dtype=tf.int32, shape=[], shared_name="shared")
    R.DestroyResourceOp(resource=first, ignore_lookup_error=False)
    with pytest.raises(tf.errors.NotFoundError, match="does not exist"):
        R.DestroyResourceOp(resource=first, ignore_lookup_error=False)
    R.DestroyResourceOp(resource=first)
    assert R.VarHandleOp(dtype=tf.float32, shape=[], shared_name="shared") is not first


def test_a_variable_of_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = R.VarHandleOp(dtype=tf.float32, shape=[2], shared_name="v")
        known, assign = R.VarIsInitializedOp(resource=v), R.AssignVariableOp(resource=v, value=[1.0, 2.0])
        assert (v.name, v.op.type) == ("v:0", "VarHandleOp")
        assert not session.run(known)
        session.run(assign)
        assert session.run(known) and session.run(v.read_value()).tolist() == [1.0, 2.0]


def test_inner_names_are_positional():
    ops = table.find("python.ops.resource_variable_ops")
    v = ops.var_handle_op(tf.float32, [3])
    ops.assign_variable_op(v, tf.zeros([3]))
    ops.resource_scatter_add(v, [1, 1], 2.0)
    assert ops.read_variable_op(v, tf.float32).numpy().tolist() == [0.0, 4.0, 0.0]
    assert table.find("python.ops.math_ops").mat_mul(tf.eye(2), tf.ones([2, 1])).shape == (2, 1)


@pytest.mark.parametrize("method", ["add", "sub", "mul", "div", "min", "max", "update"])
def test_rows_take_a_scalar_in_graphs(method):
    def run(updates):
        v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        @tf.function
        def step():
            getattr(v, f"scatter_{method}")(tf.IndexedSlices(updates, tf.constant([2, 0])))

        step()
        return v.numpy()

    np.testing.assert_array_equal(run(tf.constant(2.5)), run(tf.fill([2, 2], 2.5)))


def test_rows_of_another_shape_are_refused():
    v = tf.Variable([0.0, 1.0, 2.0])

    @tf.function
    def step():
        v.scatter_mul(tf.IndexedSlices(tf.zeros([3]), tf.constant([0, 1])))

    for run in (step, lambda: v.scatter_mul(tf.IndexedSlices(tf.zeros([3]), tf.constant([0, 1])))):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"updates.shape \[3\], indices.shape \[2\]"):
            run()
