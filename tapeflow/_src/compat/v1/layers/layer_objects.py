"""`tf.compat.v1.layers` as objects: `Dense(10)` is a layer that finds its variables again at each call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from tapeflow._src.compat.v1.layers import image_layers, layers
from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype


@public("compat.v1.layers.Layer")
class Layer:
    """A layer; its first call makes its variables, in a scope of its own, and the others use them.

    >>> with tf.Graph().as_default():
    ...     layer = tf.compat.v1.layers.Dense(4)
    ...     y = layer(layer(tf.ones([2, 4])))
    ...     [v.name for v in layer.variables]
    ['dense/kernel:0', 'dense/bias:0']
    """

    _function: ClassVar[Callable[..., Any]]
    _default_name: ClassVar[str] = "layer"

    def __init__(
        self,
        *args: Any,
        name: str | None = None,
        dtype: Any = None,
        _reuse: Any = None,
        _scope: Any = None,
        **options: Any,
    ) -> None:
        self._args, self._options = args, options
        self._given_name, self._reuse, self._given_scope, self._scope = name, _reuse, _scope, None
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._variable_by_name: dict[str, Any] = {}
        self.built = False

    @property
    def name(self) -> str:
        """The name of the scope of its variables."""
        return self._given_name or self._default_name

    @property
    def dtype(self) -> Any:
        """The dtype of its inputs and variables, if it was given."""
        return None if self._dtype is None else self._dtype.name

    @property
    def variables(self) -> list[Any]:
        """Its variables."""
        return list(self._variable_by_name.values())

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of its variables that optimizers change."""
        return [v for v in self.variables if v.trainable]

    trainable_weights = trainable_variables
    non_trainable_variables = property(lambda self: [v for v in self.variables if not v.trainable])

    def __getattr__(self, name: str) -> Any:
        """A variable by the last name that the layer asks for (a scope may give it another), or an argument."""
        for path, variable in self.__dict__.get("_variable_by_name", {}).items():
            if path.rpartition("/")[2] == name:
                return variable
        if "_args" in self.__dict__ and hasattr(type(self), "_function"):
            given = inspect.signature(type(self)._function).bind_partial(None, *self._args, **self._options)
            given.apply_defaults()
            if name in given.arguments:
                return given.arguments[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _record(self, getter: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
        variable = getter(name, *args, **options)
        self._variable_by_name[name] = variable
        return variable

    def __call__(self, inputs: Any, *args: Any, **options: Any) -> Any:
        """The outputs of the layer."""
        if self._dtype is not None:
            inputs = convert_to_tensor(inputs, dtype=self._dtype)
        if self._scope is None:
            given = self._given_scope or self._given_name
            with variable_scope(given, default_name=self._default_name, reuse=self._reuse) as self._scope:
                pass
        reuse = True if self.built else self._reuse
        with variable_scope(self._scope, reuse=reuse, custom_getter=self._record) as scope:
            result = type(self)._function(inputs, *self._args, **self._options, **options, **self._place(scope))
        self.built = True
        return result

    def _place(self, scope: Any) -> dict[str, Any]:
        return {"name": scope}

    apply = __call__


class _LayerWithoutVariables(Layer):
    """A layer whose function has no scope."""

    def _place(self, scope: Any) -> dict[str, Any]:
        return {}


_MAKERS: dict[str, Any] = {
    "Dense": layers.dense,
    "Conv1D": image_layers.conv1d,
    "Conv2D": image_layers.conv2d,
    "Conv3D": image_layers.conv3d,
    "Conv2DTranspose": image_layers.conv2d_transpose,
    "Conv3DTranspose": image_layers.conv3d_transpose,
    "SeparableConv2D": image_layers.separable_conv2d,
    "BatchNormalization": image_layers.batch_normalization,
}
_BARE: dict[str, Any] = {"Flatten": layers.flatten, "Dropout": layers.dropout} | {
    f"{name}Pooling{rank}D": image_layers.POOLINGS[f"{name.lower()}_pooling{rank}d"]
    for name in ("Max", "Average")
    for rank in (1, 2, 3)
}


def _define(name: str, function: Callable[..., Any], base: type) -> None:
    doc = f"""The layer `tf.compat.v1.layers.{function.__name__}` as an object.

    >>> issubclass(tf.compat.v1.layers.{name}, tf.compat.v1.layers.Layer)
    True
    """
    members = {"__doc__": doc, "_function": staticmethod(function), "_default_name": function.__name__}
    public(f"compat.v1.layers.{name}")(type(name, (base,), members))


for _name, _function in _MAKERS.items():
    _define(_name, _function, Layer)
for _name, _function in _BARE.items():
    _define(_name, _function, _LayerWithoutVariables)
