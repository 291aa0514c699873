"""Functions that are traced by options, the cache of their traces, and eager tensors by their class."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture(autouse=True)
def alias():
    tf.install_as_tensorflow()


def test_calls_share_traces_in_a_cache():
    from tensorflow.core.function.polymorphism import function_cache
    from tensorflow.python.eager.polymorphic_function import function_type_utils, tracing_compilation

    traced = []

    def scale(x, factor=2.0):
        traced.append(x)
        return x * factor

    cache = function_cache.FunctionCache()
    kind, defaults = function_type_utils.make_function_type(scale, None)
    assert defaults == {"factor": 2.0}

    def call(*args, **kwargs):
        bound = kind.bind_with_defaults(args, kwargs, defaults)
        options = tracing_compilation.TracingOptions(scale, "scale", kind, defaults, function_cache=cache)
        return tracing_compilation.call_function(bound.args, bound.kwargs, options)

    assert float(call(tf.constant(3.0))) == 6.0 and float(call(x=tf.constant(4.0))) == 8.0
    assert len(cache) == len(traced) == 1
    assert call(tf.ones([2]), factor=3.0).numpy().tolist() == [3.0, 3.0] and len(cache) == 2
    concrete = tracing_compilation.trace_function(
        (tf.TensorSpec([], tf.float32),), {}, tracing_compilation.TracingOptions(scale, function_cache=cache)
    )
    assert float(concrete(tf.constant(5.0))) == 10.0
    cache.clear()
    assert len(cache) == 0


def test_eager_tensors_are_made_by_their_class():
    from tensorflow.python.framework import ops

    made = ops.EagerTensor(np.array([1.5, 2.5]), device=None, dtype=tf.float32.as_datatype_enum)
    assert made.dtype == tf.float32 and made.numpy().tolist() == [1.5, 2.5] and isinstance(made, ops.EagerTensor)
    with tf.Graph().as_default():
        assert isinstance(ops.EagerTensor(3, None), ops.EagerTensor)
    for arguments in ((1, 2), (1, None, "float32")):
        with pytest.raises(TypeError, match="argument"):
            ops.EagerTensor(*arguments)


def test_settings_of_the_context():
    from tensorflow.python.eager import context

    tf.config.optimizer.set_jit(True)
    context._reset_jit_compiler_flags()
    assert tf.config.optimizer.get_jit() == ""
    assert [d.device_type for d in context.context().list_physical_devices("CPU")] == ["CPU"]
    assert isinstance(context.context(), context.Context)
