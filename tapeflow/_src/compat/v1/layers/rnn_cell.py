"""What a cell of a recurrent network is: a step from inputs and a state to outputs and the next state."""

from __future__ import annotations

import re
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_shape import as_shape


def _zeros(size: Any, batch_size: Any, dtype: Any) -> Any:
    sizes = as_shape(size).as_list() if not isinstance(size, int) else [size]
    known = find_public("get_static_value")(batch_size) if _core.is_tensor(batch_size) else batch_size
    if known is not None:
        return find_public("zeros")([int(known), *sizes], dtype)
    zeros = find_public("zeros")(find_public("stack")([batch_size, *sizes]), dtype)
    zeros.set_shape([None, *sizes])
    return zeros


def step_name(kind: type) -> str:
    """The name of a class as scopes spell it: `BasicLSTMCell` is "basic_lstm_cell"."""
    spaced = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", kind.__name__)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", spaced).lower().lstrip("_")


@public("compat.v1.nn.rnn_cell.RNNCell")
class RNNCell:
    """A cell; a subclass has `state_size`, `output_size` and `call`, and may make its variables in `build`.

    >>> class Sum(tf.compat.v1.nn.rnn_cell.RNNCell):
    ...     state_size = output_size = 2
    ...     def call(self, inputs, state):
    ...         return state + inputs, state + inputs
    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.nn.static_rnn(Sum(), [tf.ones([3, 2])], dtype=tf.float32)[1].shape
    TensorShape([3, 2])
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, _reuse: Any = None, **options: Any
    ) -> None:
        self.trainable, self._dtype, self._reuse = trainable, dtype, _reuse
        self._base_name = name or step_name(type(self))
        self.built = False

    # What a subclass that calls no __init__ of ours has.
    trainable, built = True, False
    _dtype = _reuse = _scope = None

    @property
    def name(self) -> str:
        """The name of the scope of its variables."""
        return self.__dict__.get("_base_name") or step_name(type(self))

    dtype = property(lambda self: self._dtype)
    scope_name = property(lambda self: None if self._scope is None else self._scope.name)
    graph = property(lambda self: get_default_graph())

    @property
    def state_size(self) -> Any:
        """The size of the state: a number, a shape, or a structure of them."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the outputs."""
        raise NotImplementedError("Abstract method")

    @property
    def variables(self) -> list[Any]:
        """The variables that it has made or found."""
        return list(self.__dict__.get("_variable_by_name", {}).values())

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of its variables that optimizers change."""
        return [v for v in self.variables if v.trainable]

    trainable_weights = trainable_variables

    def get_weights(self) -> list[Any]:
        """The values of its variables, in the default session."""
        found: list[Any] = get_default_graph().default_session().run(self.variables)
        return found

    def add_variable(self, name: str, shape: Any, dtype: Any = None, initializer: Any = None, **options: Any) -> Any:
        """A variable in the scope of the cell."""
        options.setdefault("trainable", self.trainable)
        return find_public("compat.v1.get_variable")(name, shape, dtype or self._dtype, initializer, **options)

    add_weight = add_variable

    def _record(self, getter: Any, *args: Any, **options: Any) -> Any:
        variable = getter(*args, **options)
        self.__dict__.setdefault("_variable_by_name", {})[variable.name] = variable
        return variable

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables, when the cell is first called."""
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The outputs and the next state."""
        raise NotImplementedError("call")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The outputs and the next state; variables are made at the first call, and found again at the others."""
        if self._scope is None:
            named = self.name if self._reuse and scope is None else scope
            with variable_scope(named, default_name=self.name, reuse=self._reuse) as self._scope:
                pass
        reuse = True if self.built else self._reuse
        with variable_scope(self._scope, reuse=reuse, custom_getter=self._record):
            inputs = nest.map_structure(find_public("convert_to_tensor"), inputs)
            if not self.built:
                if self._dtype is None:
                    self._dtype = nest.flatten(inputs)[0].dtype
                self.build(nest.map_structure(lambda x: x.shape, inputs))
            result = self.call(inputs, state)
            self.built = True
            return result

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with find_public("name_scope")(f"{type(self).__name__}ZeroState"):
            return self._zero_state(batch_size, dtype)

    def _zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return nest.map_structure(lambda size: _zeros(size, batch_size, dtype), self.state_size)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros, for as many rows as `inputs` has."""
        if inputs is not None:
            inputs = find_public("convert_to_tensor")(inputs)
            batch_size, dtype = find_public("shape")(inputs)[0], inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)


def depth_of(inputs_shape: Any, who: Any) -> int:
    """The number of features of a cell's inputs, which must be known."""
    depth = as_shape(inputs_shape).as_list()[-1]
    if depth is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape} for {type(who).__name__}")
    return int(depth)


def affine(x: Any, kernel: Any, bias: Any) -> Any:
    """x @ kernel + bias."""
    return primitives.MatMul(x, kernel) + bias
