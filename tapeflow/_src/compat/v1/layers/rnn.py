"""Recurrent networks: a cell along a sequence, as a chain of its steps or as a loop in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.tensor_shape import TensorShape


def _check_cell(cell: Any) -> None:
    missing = [f"{name!r} property is missing" for name in ("output_size", "state_size") if not hasattr(cell, name)]
    if not hasattr(cell, "zero_state") and not hasattr(cell, "get_initial_state"):
        missing.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        missing.append("is not callable")
    if missing:
        raise TypeError(f"The argument 'cell' ({cell}) is not an RNNCell: {', '.join(missing)}.")


def _check_list(inputs: Any) -> None:
    if not nest.is_nested(inputs):
        raise TypeError(f"Argument `inputs` must be a sequence. Received: {inputs}")
    if not inputs:
        raise ValueError("Argument `inputs` must not be empty.")


def _first_state(cell: Any, initial_state: Any, batch_size: Any, dtype: Any) -> Any:
    if initial_state is not None:
        return nest.map_structure(convert_to_tensor, initial_state)
    if not dtype:
        raise ValueError("If no initial_state is provided, argument `dtype` must be specified")
    if hasattr(cell, "get_initial_state"):
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def _swapped(x: Any) -> Tensor:
    """The first two dimensions, batch and time, in the other order."""
    rank = x.shape.rank
    if rank is None or rank < 2:
        raise ValueError(f"Input tensor should have rank >= 2. Received input={x} of rank {rank}")
    return primitives.Transpose(x, [1, 0, *range(2, rank)])


def _selected(running: Any, new: Any, old: Any) -> Any:
    """`new` in the rows that still run, `old` in the others."""

    def select(new: Any, old: Any) -> Any:
        if new.shape.rank == 0:
            return new
        flags = primitives.Reshape(running, [-1] + [1] * (new.shape.rank - 1))
        result = primitives.SelectV2(flags, new, old)
        result.set_shape(new.shape)
        return result

    return nest.map_structure(select, new, old)


def _step(cell: Any, x: Any, state: Any, time: Any, lengths: Any) -> tuple[Any, Any]:
    """A step of the cell; rows whose sequence has ended give zeros and keep their state."""
    output, new_state = cell(x, state)
    if lengths is None:
        return output, new_state
    running = primitives.Greater(lengths, time)
    zeros = nest.map_structure(find_public("zeros_like"), output)
    return _selected(running, output, zeros), _selected(running, new_state, state)


def _lengths(sequence_length: Any) -> Any:
    if sequence_length is None:
        return None
    lengths = cast(convert_to_tensor(sequence_length), int32)
    if lengths.shape.rank not in (None, 1):
        raise ValueError(
            "Argument sequence_length must be a vector of length batch_size. Received "
            f"sequence_length={lengths} of shape: {lengths.shape}"
        )
    return lengths


def _check_lengths(lengths: Any, batch_size: Any) -> Any:
    right = find_public("reduce_all")(find_public("equal")(find_public("shape")(lengths), [batch_size]))
    message = ["Expected shape for Tensor sequence_length:0 is ", [batch_size], " but saw shape: "]
    check = find_public("debugging.Assert")(right, [*message, find_public("shape")(lengths)])
    with find_public("control_dependencies")([check]):
        return find_public("identity")(lengths)


@public("compat.v1.nn.static_rnn")
def static_rnn(
    cell: Any, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None, scope: Any = None
) -> tuple[list[Any], Any]:
    """The outputs of a cell for each of a list of inputs, and its last state.

    >>> with tf.Graph().as_default():
    ...     cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    ...     outputs, state = tf.compat.v1.nn.static_rnn(cell, [tf.ones([2, 3])] * 5, dtype=tf.float32)
    >>> len(outputs), state.shape
    (5, TensorShape([2, 4]))
    """
    _check_cell(cell)
    _check_list(inputs)
    outputs = []
    with variable_scope(scope or "rnn"):
        inputs = [nest.map_structure(convert_to_tensor, x) for x in inputs]
        first = nest.flatten(inputs[0])[0]
        batch_size = first.shape.as_list()[0] if first.shape.rank else None
        if batch_size is None:
            batch_size = find_public("shape")(first)[0]
        lengths = _lengths(sequence_length)
        state = _first_state(cell, initial_state, batch_size, dtype)
        for time, x in enumerate(inputs):
            output, state = _step(cell, x, state, time, lengths)
            outputs.append(output)
    return outputs, state


@public("compat.v1.nn.dynamic_rnn")
def dynamic_rnn(
    cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None, dtype: Any = None,
    parallel_iterations: int | None = None, swap_memory: bool = False, time_major: bool = False, scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The outputs of a cell along the second dimension (the first if `time_major`), and its last state.

    Behind the end of a sequence the outputs are zero, and the state stays as it is.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None, 5, 3])
    ...     cell = tf.compat.v1.nn.rnn_cell.GRUCell(4)
    ...     outputs, state = tf.compat.v1.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    >>> outputs.shape, state.shape
    (TensorShape([None, 5, 4]), TensorShape([None, 4]))
    """
    _check_cell(cell)
    with variable_scope(scope or "rnn"):
        by_time = nest.map_structure(convert_to_tensor, inputs)
        if not time_major:
            by_time = nest.map_structure(_swapped, by_time)
        outputs, state = _loop(cell, by_time, _lengths(sequence_length), initial_state, dtype)
        return outputs if time_major else nest.map_structure(_swapped, outputs), state


def _loop(cell: Any, inputs: Any, lengths: Any, initial_state: Any, dtype: Any) -> tuple[Any, Any]:
    """The loop of `dynamic_rnn`; time is the first dimension."""
    parts = nest.flatten(inputs)
    shape = find_public("shape")(parts[0])
    steps, batch_size = (shape[i] if known is None else known for i, known in enumerate(parts[0].shape.as_list()[:2]))
    for part in parts:
        if part.shape.as_list()[-1] is None:
            raise ValueError(
                "Input size (depth of inputs) must be accessible via shape inference, but saw value None for "
                f"input={part}."
            )
    state = _first_state(cell, initial_state, batch_size, dtype)
    if lengths is not None:
        lengths = _check_lengths(lengths, batch_size)
    rows = parts[0].shape.as_list()[1]
    output_dtype = dtype or nest.flatten(state)[0].dtype
    sizes = nest.flatten(cell.output_size)
    written = [
        TensorArray(output_dtype, size=steps, element_shape=TensorShape([rows]).concatenate(_dims(size)))
        for size in sizes
    ]
    read = [TensorArray(part.dtype, size=steps).unstack(part) for part in parts]

    def body(time: Any, written: list[Any], state: Any) -> tuple[Any, list[Any], Any]:
        x = nest.pack_sequence_as(inputs, [_read(array, time, part) for array, part in zip(read, parts)])
        output, new_state = _step(cell, x, state, time, lengths)
        nest.assert_same_structure(state, new_state)
        values = nest.flatten(output)
        return time + 1, [array.write(time, value) for array, value in zip(written, values)], new_state

    _, written, state = while_loop(
        lambda time, written, state: time < steps,
        body,
        (convert_to_tensor(0), written, state),
        maximum_iterations=steps,
    )
    outputs = [array.stack() for array in written]
    known = parts[0].shape.as_list()[:2]
    for y, size in zip(outputs, sizes):
        y.set_shape(TensorShape(known).concatenate(_dims(size)))
    return nest.pack_sequence_as(cell.output_size, outputs), state


def _dims(size: Any) -> TensorShape:
    return TensorShape([size] if isinstance(size, int) else size)


def _read(array: TensorArray, time: Any, part: Any) -> Any:
    x = array.read(time)
    x.set_shape(part.shape[1:])
    return x


@public("compat.v1.nn.bidirectional_dynamic_rnn")
def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None, initial_state_fw: Any = None,
    initial_state_bw: Any = None, dtype: Any = None, parallel_iterations: int | None = None, swap_memory: bool = False,
    time_major: bool = False, scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:  # fmt: skip
    """One cell along the sequences, and one against their direction: a pair of outputs and a pair of last states.

    >>> with tf.Graph().as_default():
    ...     cells = [tf.compat.v1.nn.rnn_cell.GRUCell(4) for _ in range(2)]
    ...     outputs, _ = tf.compat.v1.nn.bidirectional_dynamic_rnn(*cells, tf.ones([2, 5, 3]), dtype=tf.float32)
    >>> outputs[1].shape
    TensorShape([2, 5, 4])
    """
    _check_cell(cell_fw)
    _check_cell(cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def turned(x: Any) -> Any:
        if sequence_length is None:
            return find_public("reverse")(x, [time_axis])
        return find_public("reverse_sequence")(x, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forwards:
            there = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope=forwards
            )
        with variable_scope("bw") as backwards:
            against = nest.map_structure(lambda x: turned(convert_to_tensor(x)), inputs)
            back = dynamic_rnn(
                cell_bw, against, sequence_length, initial_state_bw, dtype, time_major=time_major, scope=backwards
            )
    return (there[0], nest.map_structure(turned, back[0])), (there[1], back[1])


@public("compat.v1.nn.static_bidirectional_rnn")
def static_bidirectional_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, initial_state_fw: Any = None, initial_state_bw: Any = None,
    dtype: Any = None, sequence_length: Any = None, scope: Any = None,
) -> tuple[list[Any], Any, Any]:  # fmt: skip
    """The outputs of a cell along a list of inputs, each beside those of one against it; and both last states.

    >>> with tf.Graph().as_default():
    ...     cells = [tf.compat.v1.nn.rnn_cell.GRUCell(4) for _ in range(2)]
    ...     outputs, *_ = tf.compat.v1.nn.static_bidirectional_rnn(*cells, [tf.ones([2, 3])] * 5, dtype=tf.float32)
    >>> outputs[0].shape
    TensorShape([2, 8])
    """
    _check_cell(cell_fw)
    _check_cell(cell_bw)
    _check_list(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forwards:
            there, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, forwards)
        with variable_scope("bw") as backwards:
            against = _turned_list(inputs, sequence_length)
            back, state_bw = static_rnn(cell_bw, against, initial_state_bw, dtype, sequence_length, backwards)
            back = _turned_list(back, sequence_length)
    joined = [nest.map_structure(lambda a, b: find_public("concat")([a, b], 1), x, y) for x, y in zip(there, back)]
    return joined, state_fw, state_bw


def _turned_list(values: Any, lengths: Any) -> list[Any]:
    if lengths is None:
        return list(reversed(values))
    stacked = [find_public("stack")(parts) for parts in zip(*(nest.flatten(value) for value in values))]
    turned = [find_public("reverse_sequence")(x, lengths, seq_axis=0, batch_axis=1) for x in stacked]
    steps = zip(*(find_public("unstack")(x, num=len(values)) for x in turned))
    return [nest.pack_sequence_as(values[0], list(step)) for step in steps]


@public("compat.v1.nn.raw_rnn")
def raw_rnn(
    cell: Any, loop_fn: Callable[..., Any], parallel_iterations: int | None = None, swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """A loop that a function steers: `loop_fn(time, output, state, loop_state)` gives which rows are finished, the
    next inputs, the next state, what is emitted, and its own next state.

    The result is a `TensorArray` of what was emitted, the last state and the last `loop_state`.

    >>> def steer(time, output, state, loop_state):
    ...     state = tf.zeros([2, 4]) if output is None else state
    ...     return time >= [3, 3], tf.ones([2, 3]), state, output, None
    >>> with tf.Graph().as_default():
    ...     emitted, state, _ = tf.compat.v1.nn.raw_rnn(tf.compat.v1.nn.rnn_cell.GRUCell(4), steer)
    ...     emitted.stack().shape
    TensorShape([None, 2, 4])
    """
    _check_cell(cell)
    if not callable(loop_fn):
        raise TypeError(f"Argument `loop_fn` must be a callable. Received: {loop_fn}")
    with variable_scope(scope or "rnn"):
        time = convert_to_tensor(0)
        finished, x, state, emitted, loop_state = loop_fn(time, None, None, None)
        x, state = nest.map_structure(convert_to_tensor, x), nest.map_structure(convert_to_tensor, state)
        first = nest.flatten(x)[0]
        rows = first.shape.as_list()[0]
        batch_size = find_public("shape")(first)[0] if rows is None else rows
        if emitted is None:
            emitted = nest.map_structure(
                lambda size: find_public("zeros")([*_dims(size).as_list()], nest.flatten(state)[0].dtype),
                cell.output_size,
            )
        emitted = nest.map_structure(convert_to_tensor, emitted)
        keeps_state = loop_state is not None
        loop_state = convert_to_tensor(0) if loop_state is None else loop_state
        blanks = nest.map_structure(lambda y: _blank(y, batch_size, rows), emitted)
        arrays = [TensorArray(y.dtype, size=0, dynamic_size=True, element_shape=y.shape) for y in nest.flatten(blanks)]

        def body(time: Any, done: Any, x: Any, arrays: list[Any], state: Any, kept: Any) -> tuple[Any, ...]:
            output, new_state = cell(x, state)
            after = time + 1
            step = loop_fn(after, output, new_state, kept if keeps_state else None)
            new_done, new_x, new_state, emitted, new_kept = step
            running = primitives.LogicalNot(done)
            emitted = _selected(running, nest.map_structure(convert_to_tensor, emitted), blanks)
            new_state = _selected(running, new_state, state)
            written = [array.write(time, y) for array, y in zip(arrays, nest.flatten(emitted))]
            done = primitives.LogicalOr(done, new_done)
            return after, done, new_x, written, new_state, new_kept if keeps_state else kept

        start = (time, convert_to_tensor(finished), x, arrays, state, loop_state)
        _, _, _, arrays, state, loop_state = while_loop(_any_running, body, start)
        return nest.pack_sequence_as(emitted, arrays), state, loop_state if keeps_state else None


def _any_running(time: Any, done: Any, *_: Any) -> Tensor:
    return primitives.LogicalNot(find_public("reduce_all")(done))


def _blank(y: Any, batch_size: Any, rows: int | None) -> Any:
    """Zeros for what is emitted in a row that is finished: `y` is one row of it."""
    zeros = find_public("zeros")([batch_size, *y.shape.as_list()], y.dtype)
    zeros.set_shape([rows, *y.shape.as_list()])
    return zeros
