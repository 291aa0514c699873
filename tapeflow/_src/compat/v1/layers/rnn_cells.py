"""The cells of recurrent networks, each a formula: `h` is the last output, `c` the cell state beside it."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.layers.rnn_cell import RNNCell, affine, depth_of
from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer
from tapeflow._src.types import nest
from tapeflow._src.types.tensor import add_members

LSTMStateTuple = namedtuple("LSTMStateTuple", ["c", "h"])
LSTMStateTuple.__doc__ = """The state of an LSTM: the cell state and the last output.

>>> tf.compat.v1.nn.rnn_cell.LSTMStateTuple(c=1., h=2.).h
2.0
"""
add_members(LSTMStateTuple, {"dtype": property(lambda self: self.c.dtype)})
public("compat.v1.nn.rnn_cell.LSTMStateTuple")(LSTMStateTuple)


def _function(activation: Any) -> Any:
    if activation is None:
        return primitives.Tanh
    return find_public(f"nn.{activation}") if isinstance(activation, str) else activation


def _joined(*parts: Any) -> Any:
    return find_public("concat")(list(parts), 1)


def _halves(state: Any, sizes: Any) -> Any:
    return find_public("split")(state, sizes, 1)


class _Cell(RNNCell):
    """A cell of `num_units` units whose state is its output."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: str | None = None, dtype: Any = None
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse)
        self._num_units, self._activation = int(num_units), _function(activation)

    state_size = property(lambda self: self._num_units, doc="The number of units.")
    output_size = property(lambda self: self._num_units, doc="The number of units.")


@public("compat.v1.nn.rnn_cell.BasicRNNCell")
class BasicRNNCell(_Cell):
    """activation([x, h] @ kernel + bias).

    >>> cell = tf.compat.v1.nn.rnn_cell.BasicRNNCell(4)
    >>> with tf.Graph().as_default():
    ...     cell(tf.ones([2, 3]), tf.zeros([2, 4]))[0].shape
    TensorShape([2, 4])
    """

    def build(self, inputs_shape: Any) -> None:
        """Makes `kernel` and `bias`."""
        self._kernel = self.add_variable("kernel", [depth_of(inputs_shape, self) + self._num_units, self._num_units])
        self._bias = self.add_variable("bias", [self._num_units], initializer=ZerosInitializer())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The outputs, twice: they are the state."""
        h = self._activation(affine(_joined(inputs, state), self._kernel, self._bias))
        return h, h


@public("compat.v1.nn.rnn_cell.GRUCell")
class GRUCell(_Cell):
    """u * h + (1 - u) * activation([x, r * h] @ kernel + bias), with gates r and u from [x, h].

    >>> cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    >>> with tf.Graph().as_default():
    ...     cell(tf.ones([2, 3]), tf.zeros([2, 4]))[0].shape
    TensorShape([2, 4])
    """

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, kernel_initializer: Any = None,
        bias_initializer: Any = None, name: str | None = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Any) -> None:
        """Makes kernels and biases of the gates and of the candidate."""
        rows, units, first = depth_of(inputs_shape, self) + self._num_units, self._num_units, self._kernel_initializer
        ones = self._bias_initializer or find_public("compat.v1.ones_initializer")()
        zeros = self._bias_initializer or ZerosInitializer()
        self._gates = (
            self.add_variable("gates/kernel", [rows, 2 * units], initializer=first),
            self.add_variable("gates/bias", [2 * units], initializer=ones),
        )
        self._candidate = (
            self.add_variable("candidate/kernel", [rows, units], initializer=first),
            self.add_variable("candidate/bias", [units], initializer=zeros),
        )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The outputs, twice: they are the state."""
        r, u = _halves(primitives.Sigmoid(affine(_joined(inputs, state), *self._gates)), 2)
        candidate = self._activation(affine(_joined(inputs, r * state), *self._candidate))
        h = u * state + (1 - u) * candidate
        return h, h


class _LSTM(_Cell):
    """What cells with a memory share: a state of two parts, in a tuple or side by side."""

    _state_is_tuple = True

    def _sizes(self) -> list[int]:
        return [self._num_units, self.output_size]

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        return LSTMStateTuple(*self._sizes()) if self._state_is_tuple else sum(self._sizes())

    def _parts(self, state: Any) -> Any:
        return state if self._state_is_tuple else _halves(state, self._sizes())

    def _whole(self, c: Any, h: Any) -> Any:
        return LSTMStateTuple(c, h) if self._state_is_tuple else _joined(c, h)

    def _make_gates(self, inputs_shape: Any, initializer: Any) -> None:
        rows = depth_of(inputs_shape, self) + self.output_size
        self._kernel = self.add_variable("kernel", [rows, 4 * self._num_units], initializer=initializer)
        self._bias = self.add_variable("bias", [4 * self._num_units], initializer=ZerosInitializer())


@public("compat.v1.nn.rnn_cell.BasicLSTMCell")
class BasicLSTMCell(_LSTM):
    """An LSTM without peepholes, clipping or projection.

    >>> cell = tf.compat.v1.nn.rnn_cell.BasicLSTMCell(4)
    >>> with tf.Graph().as_default():
    ...     cell(tf.ones([2, 3]), cell.zero_state(2, tf.float32))[0].shape
    TensorShape([2, 4])
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True, activation: Any = None,
        reuse: Any = None, name: str | None = None, dtype: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple

    def build(self, inputs_shape: Any) -> None:
        """Makes `kernel` and `bias`."""
        self._make_gates(inputs_shape, None)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The outputs and the next state."""
        c, h = self._parts(state)
        i, j, f, o = _halves(affine(_joined(inputs, h), self._kernel, self._bias), 4)
        sigmoid = primitives.Sigmoid
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        h = self._activation(c) * sigmoid(o)
        return h, self._whole(c, h)


@public("compat.v1.nn.rnn_cell.LSTMCell")
class LSTMCell(_LSTM):
    """An LSTM that may see its memory (peepholes), clip it, and project its outputs.

    >>> cell = tf.compat.v1.nn.rnn_cell.LSTMCell(4, use_peepholes=True, num_proj=2)
    >>> with tf.Graph().as_default():
    ...     cell(tf.ones([2, 3]), cell.zero_state(2, tf.float32))[0].shape
    TensorShape([2, 2])
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None, initializer: Any = None,
        num_proj: int | None = None, proj_clip: float | None = None, num_unit_shards: int | None = None,
        num_proj_shards: int | None = None, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Any = None, reuse: Any = None, name: str | None = None, dtype: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._use_peepholes, self._cell_clip, self._initializer = use_peepholes, cell_clip, initializer
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple

    output_size = property(lambda self: self._num_proj or self._num_units, doc="The number of outputs.")

    def build(self, inputs_shape: Any) -> None:
        """Makes `kernel` and `bias`, and what peepholes and the projection need."""
        units, first = self._num_units, self._initializer
        self._make_gates(inputs_shape, first)
        self._peepholes = [
            self.add_variable(f"w_{gate}_diag", [units], initializer=first) if self._use_peepholes else None
            for gate in "fio"
        ]
        if self._num_proj:
            self._projection = self.add_variable("projection/kernel", [units, self._num_proj], initializer=first)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The outputs and the next state."""
        before, h = self._parts(state)
        i, j, f, o = _halves(affine(_joined(inputs, h), self._kernel, self._bias), 4)
        seen_by_f, seen_by_i, seen_by_o = self._peepholes
        f = f + self._forget_bias
        if self._use_peepholes:
            f, i = f + seen_by_f * before, i + seen_by_i * before
        c = primitives.Sigmoid(f) * before + primitives.Sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = find_public("clip_by_value")(c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o = o + seen_by_o * c
        h = primitives.Sigmoid(o) * self._activation(c)
        if self._num_proj:
            h = primitives.MatMul(h, self._projection)
            if self._proj_clip is not None:
                h = find_public("clip_by_value")(h, -self._proj_clip, self._proj_clip)
        return h, self._whole(c, h)


@public("compat.v1.nn.rnn_cell.MultiRNNCell")
class MultiRNNCell(RNNCell):
    """Cells above each other: the outputs of one are the inputs of the next.

    >>> cells = [tf.compat.v1.nn.rnn_cell.GRUCell(4), tf.compat.v1.nn.rnn_cell.GRUCell(5)]
    >>> tf.compat.v1.nn.rnn_cell.MultiRNNCell(cells).state_size
    (4, 5)
    """

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        self._cells, self._state_is_tuple = list(cells), state_is_tuple
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in self._cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. State sizes are: "
                f"{[cell.state_size for cell in self._cells]}"
            )

    @property
    def state_size(self) -> Any:
        """The sizes of the states of all cells."""
        sizes = [cell.state_size for cell in self._cells]
        return tuple(sizes) if self._state_is_tuple else sum(sizes)

    output_size = property(lambda self: self._cells[-1].output_size, doc="The size of the last cell's outputs.")

    def _zero_state(self, batch_size: Any, dtype: Any) -> Any:
        if not self._state_is_tuple:
            return super()._zero_state(batch_size, dtype)
        return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The outputs of the last cell, and the next states of all."""
        if self._state_is_tuple:
            if not nest.is_nested(state):
                raise ValueError(f"Expected state to be a tuple of length {len(self._cells)}, but received: {state}")
            states = list(state)
        else:
            states = _halves(state, [cell.state_size for cell in self._cells])
        for i, cell in enumerate(self._cells):
            with variable_scope(f"cell_{i}"):
                inputs, states[i] = cell(inputs, states[i])
        return inputs, tuple(states) if self._state_is_tuple else _joined(*states)
