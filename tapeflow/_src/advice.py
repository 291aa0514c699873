"""What to write instead of names from PyTorch, NumPy and JAX, and which parts of TensorFlow are not here."""

from __future__ import annotations

_NUMPY = "tf.experimental.numpy.experimental_enable_numpy_behavior() gives tensors NumPy's methods"

# Attributes of tensors and variables.
TENSOR_HINTS = {
    "backward": "Record the computation with tf.GradientTape() and call tape.gradient(loss, variables).",
    "grad": "Gradients are results, not attributes: dx = tape.gradient(loss, x).",
    "requires_grad": "Use a tf.Variable, or tape.watch(x).",
    "requires_grad_": "Use a tf.Variable, or tape.watch(x).",
    "zero_grad": "Gradients are results, not attributes: there is nothing to set to zero.",
    "zero_": "Use tf.zeros_like(x), or v.assign(tf.zeros_like(v)) for a variable.",
    "detach": "Use tf.stop_gradient(x).",
    "T": f"Use tf.transpose(x). {_NUMPY}.",
    "mT": "Use tf.linalg.matrix_transpose(x).",
    "H": "Use tf.linalg.adjoint(x).",
    "item": "Use float(x) or x.numpy().item().",
    "tolist": f"Use x.numpy().tolist(). {_NUMPY}.",
    "view": "Use tf.reshape(x, shape).",
    "reshape": f"Use tf.reshape(x, shape). {_NUMPY}.",
    "ravel": f"Use tf.reshape(x, [-1]). {_NUMPY}.",
    "flatten": "Use tf.reshape(x, [-1]).",
    "transpose": f"Use tf.transpose(x, perm). {_NUMPY}.",
    "permute": "Use tf.transpose(x, perm).",
    "unsqueeze": "Use tf.expand_dims(x, axis).",
    "squeeze": "Use tf.squeeze(x, axis).",
    "size": f"Use tf.size(x) or x.shape. {_NUMPY}.",
    "dim": "Use tf.rank(x) or x.shape.rank.",
    "astype": f"Use tf.cast(x, dtype). {_NUMPY}.",
    "to": "Use tf.cast(x, dtype); devices are chosen by tf.device.",
    "float": "Use tf.cast(x, tf.float32).",
    "double": "Use tf.cast(x, tf.float64).",
    "long": "Use tf.cast(x, tf.int64).",
    "sum": f"Use tf.reduce_sum(x). {_NUMPY}.",
    "mean": f"Use tf.reduce_mean(x). {_NUMPY}.",
    "max": f"Use tf.reduce_max(x). {_NUMPY}.",
    "min": f"Use tf.reduce_min(x). {_NUMPY}.",
    "std": f"Use tf.math.reduce_std(x). {_NUMPY}.",
    "argmax": f"Use tf.argmax(x, axis). {_NUMPY}.",
    "dot": f"Use tf.tensordot(x, y, 1) or x @ y. {_NUMPY}.",
    "clone": "Use tf.identity(x).",
    "copy": "Use tf.identity(x).",
    "cuda": "Devices are chosen by tf.device.",
    "at": "Use tf.tensor_scatter_nd_update(x, indices, updates).",
    "block_until_ready": "Results are there when the call returns: leave it out.",
}

# Names of modules, by the path of the module below tf.
MODULE_HINTS = {
    "": {
        "vmap": "Use tf.vectorized_map(function, elements).",
        "grad": "Use tf.autodiff.grad(function), or tf.GradientTape.",
        "value_and_grad": "Use tf.autodiff.value_and_grad(function).",
        "jvp": "Use tf.autodiff.jvp(function, primals, tangents).",
        "vjp": "Use tf.autodiff.vjp(function, *primals).",
        "jit": "Use tf.function(function).",
        "jacfwd": "Use tape.jacobian(target, sources).",
        "jacrev": "Use tape.jacobian(target, sources).",
        "hessian": "Use tf.autodiff.hvp, or a jacobian of a gradient.",
        "no_grad": "Use tf.stop_gradient(x), or `with tape.stop_recording():`.",
        "inference_mode": "Outside of a tf.GradientTape nothing is recorded: leave it out.",
        "tensor": "Use tf.constant(values).",
        "array": "Use tf.constant(values).",
        "asarray": "Use tf.convert_to_tensor(values).",
        "from_numpy": "Use tf.convert_to_tensor(array).",
        "cat": "Use tf.concat(values, axis).",
        "concatenate": "Use tf.concat(values, axis).",
        "hstack": "Use tf.concat(values, axis=1).",
        "vstack": "Use tf.concat(values, axis=0).",
        "arange": "Use tf.range(start, limit, delta).",
        "clamp": "Use tf.clip_by_value(x, low, high).",
        "clip": "Use tf.clip_by_value(x, low, high).",
        "mm": "Use tf.matmul(a, b).",
        "bmm": "Use tf.matmul(a, b).",
        "dot": "Use tf.tensordot(a, b, 1).",
        "permute": "Use tf.transpose(x, perm).",
        "relu": "Use tf.nn.relu(x).",
        "softmax": "Use tf.nn.softmax(x).",
        "log": "Use tf.math.log(x).",
        "optim": "Optimizers are in tf.keras.optimizers.",
        "manual_seed": "Use tf.random.set_seed(seed).",
        "randn": "Use tf.random.normal(shape).",
        "rand": "Use tf.random.uniform(shape).",
        "sum": "Use tf.reduce_sum(x).",
        "mean": "Use tf.reduce_mean(x).",
        "full": "Use tf.fill(shape, value).",
        "float_power": "Use tf.pow(x, y).",
        "cuda": "Devices are chosen by tf.device.",
        "device_put": "Devices are chosen by tf.device.",
    },
    "nn": {
        "layer_norm": "Use tf.keras.layers.LayerNormalization(), or tf.nn.moments and tf.nn.batch_normalization.",
        "LayerNorm": "Use tf.keras.layers.LayerNormalization().",
        "Linear": "Use tf.keras.layers.Dense(units).",
        "Module": "Use tf.Module or tf.keras.Model.",
        "Sequential": "Use tf.keras.Sequential.",
        "Conv2d": "Use tf.keras.layers.Conv2D.",
        "functional": "The functions are in tf.nn itself.",
        "Parameter": "Use tf.Variable(value).",
        "cross_entropy": "Use tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits).",
        "CrossEntropyLoss": "Use tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True).",
        "mse_loss": "Use tf.reduce_mean(tf.square(a - b)), or tf.keras.losses.MeanSquaredError().",
        "MSELoss": "Use tf.keras.losses.MeanSquaredError().",
        "batch_norm": "Use tf.nn.batch_normalization, or tf.keras.layers.BatchNormalization().",
        "linear": "Use tf.matmul(x, w) + b.",
        "one_hot": "Use tf.one_hot(indices, depth).",
        "init": "Initializers are in tf.keras.initializers.",
    },
    "random": {
        "PRNGKey": "Use tf.random.Generator.from_seed(seed), or tf.random.stateless_normal(shape, seed).",
        "randn": "Use tf.random.normal(shape).",
        "rand": "Use tf.random.uniform(shape).",
    },
}

# Parts of TensorFlow that are outside of what this package is.
NOT_PART = {
    "lite": "TensorFlow Lite",
    "tpu": "TPU support",
    "mlir": "MLIR tools",
    "xla": "XLA's interface",
    "estimator": "Estimators",
    "quantization": "quantization",
    "contrib": "tf.contrib",
}


def about_missing(path: str, name: str) -> str | None:
    """What to say about a name that the module at a path below tf does not have."""
    if hint := MODULE_HINTS.get(path, {}).get(name):
        return hint
    if path == "" and name in NOT_PART:
        return f"{NOT_PART[name]} is not part of Tapeflow."
    return None
