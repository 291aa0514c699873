"""Cells of recurrent networks that change what goes into another cell or comes out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.v1.layers.rnn_cell import RNNCell
from tapeflow._src.compat.v1.layers.rnn_cells import LSTMStateTuple
from tapeflow._src.namespace import find_public, public
from tapeflow._src.types import nest


class _Wrapper(RNNCell):
    """A cell around another one, with its sizes, its state and its variables."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

    wrapped_cell = property(lambda self: self._cell, doc="The cell inside.")
    state_size = property(lambda self: self._cell.state_size, doc="As of the cell inside.")
    output_size = property(lambda self: self._cell.output_size, doc="As of the cell inside.")
    variables = weights = property(lambda self: self._cell.variables, doc="The variables of the cell inside.")
    trainable_variables = trainable_weights = property(lambda self: self._cell.trainable_variables)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with find_public("name_scope")(f"{type(self).__name__}ZeroState"):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """The outputs and the next state; the scope is that of the cell inside."""
        return self._step(inputs, state, lambda *given: self._cell(*given, scope=scope))

    def _step(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        found: tuple[Any, Any] = cell(inputs, state)
        return found


@public("compat.v1.nn.rnn_cell.DropoutWrapper")
class DropoutWrapper(_Wrapper):
    """Zeros in random places of the inputs, the outputs and the state of a cell.

    >>> cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    >>> tf.compat.v1.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=0.5).output_size
    4
    """

    def __init__(
        self, cell: Any, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0, state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False, input_size: Any = None, dtype: Any = None, seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(cell)
        for name, value in (
            ("input_keep_prob", input_keep_prob),
            ("output_keep_prob", output_keep_prob),
            ("state_keep_prob", state_keep_prob),
        ):
            if isinstance(value, int | float) and not 0.0 <= value <= 1.0:
                raise ValueError(f"Parameter {name} must be between 0 and 1: {value}")
        self._input_keep, self._output_keep, self._state_keep = input_keep_prob, output_keep_prob, state_keep_prob
        self._seed, self._changes = seed, dropout_state_filter_visitor or _but_memories
        self._noise: dict[str, Any] | None = None
        if variational_recurrent:
            self._make_noise(input_size, dtype)

    def _make_noise(self, input_size: Any, dtype: Any) -> None:
        """Random numbers that are the same in all steps of one run."""
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")
        if input_size is None and not _is_one(self._input_keep):
            raise ValueError(
                "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be provided"
            )

        def draw(size: Any) -> Any:
            sizes = [size] if isinstance(size, int) else list(size)
            return find_public("random.uniform")([1, *sizes], dtype=dtype, seed=self._seed)

        self._noise = {
            "state": nest.map_structure(draw, self._cell.state_size),
            "output": nest.map_structure(draw, self._cell.output_size),
        }
        if input_size is not None:
            self._noise["input"] = nest.map_structure(draw, input_size)

    def _dropped(self, which: str, values: Any, keep: Any) -> Any:
        if _is_one(keep):
            return values
        if self._noise is None:
            drop = find_public("compat.v1.nn.dropout")
            return nest.map_structure(lambda x: drop(x, keep_prob=keep, seed=self._seed), values)

        def mask(x: Any, noise: Any) -> Any:
            kept = find_public("floor")(noise + find_public("cast")(keep, x.dtype))
            return x / find_public("cast")(keep, x.dtype) * kept

        return nest.map_structure(mask, values, self._noise[which])

    def _step(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        output, state = cell(self._dropped("input", inputs, self._input_keep), state)
        if not _is_one(self._state_keep):
            state = _chosen(self._changes(state), self._dropped("state", state, self._state_keep), state)
        return self._dropped("output", output, self._output_keep), state


def _is_one(keep: Any) -> bool:
    return isinstance(keep, int | float) and keep >= 1.0


def _but_memories(state: Any) -> Any:
    """Which parts of a state are changed: all but the memories of LSTMs."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    if isinstance(state, list | tuple):
        return type(state)(_but_memories(part) for part in state)
    return True


def _chosen(flags: Any, changed: Any, state: Any) -> Any:
    if isinstance(flags, bool):
        return changed if flags else state
    return nest.map_structure(lambda flag, new, old: new if flag else old, flags, changed, state)


@public("compat.v1.nn.rnn_cell.ResidualWrapper")
class ResidualWrapper(_Wrapper):
    """A cell whose outputs are added to its inputs.

    >>> cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    >>> tf.compat.v1.nn.rnn_cell.ResidualWrapper(cell).output_size
    4
    """

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **options: Any) -> None:
        super().__init__(cell)
        self._join = residual_fn or (lambda x, y: nest.map_structure(lambda a, b: a + b, x, y))

    def _step(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        output, state = cell(inputs, state)
        return self._join(inputs, output), state


@public("compat.v1.nn.rnn_cell.DeviceWrapper")
class DeviceWrapper(_Wrapper):
    """A cell for a device; there is one device, so it is the cell itself.

    >>> cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    >>> tf.compat.v1.nn.rnn_cell.DeviceWrapper(cell, "/cpu:0").output_size
    4
    """

    def __init__(self, cell: Any, device: Any, **options: Any) -> None:
        super().__init__(cell)
