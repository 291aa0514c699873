"""Raw operations of cuDNN's recurrent layers, computed step by step on the processor.

The parameters are one vector: of each layer and direction the matrices of input and state, gate by gate; then
of each the biases of the input and of the state. Gates are i, f, g, o of an LSTM and r, z, n of a GRU.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.raw_ops import table
from tapeflow._src.control_flow.maps import scan
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.errors import UnimplementedError

CudnnRNN = namedtuple("CudnnRNN", ["output", "output_h", "output_c", "reserve_space"])
CudnnRNNV2 = namedtuple("CudnnRNNV2", ["output", "output_h", "output_c", "reserve_space", "host_reserved"])
CudnnRNNV3 = namedtuple("CudnnRNNV3", ["output", "output_h", "output_c", "reserve_space", "host_reserved"])
_GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


class _Parameters:
    """Takes matrices and biases from the front of the vector."""

    def __init__(self, vector: Any) -> None:
        self._vector, self._at = vector, 0

    def take(self, *dims: int) -> Any:
        """The next numbers, as an array of these dimensions."""
        size = 1
        for dim in dims:
            size *= dim
        part = self._vector[self._at : self._at + size]
        self._at += size
        return primitives.Reshape(part, list(dims))


def _step(mode: str, x: Any, h: Any, c: Any, recurrent: Any, bias: Any) -> tuple[Any, Any]:
    """The next state, from the input times its matrices `x` and the old state."""
    gates = _GATES[mode]
    inner = primitives.MatMul(h, recurrent, False, True) + bias
    units = h.shape[-1]
    xs, hs = ([part[:, k * units : (k + 1) * units] for k in range(gates)] for part in (x, inner))
    if mode == "lstm":
        i, f, o = (primitives.Sigmoid(xs[k] + hs[k]) for k in (0, 1, 3))
        c = f * c + i * primitives.Tanh(xs[2] + hs[2])
        return o * primitives.Tanh(c), c
    if mode == "gru":
        r, z = (primitives.Sigmoid(xs[k] + hs[k]) for k in (0, 1))
        new = primitives.Tanh(xs[2] + r * hs[2])
        return (1.0 - z) * new + z * h, c
    activation = primitives.Relu if mode == "rnn_relu" else primitives.Tanh
    return activation(x + inner), c


def _one_direction(mode: str, x: Any, h: Any, c: Any, weights: Any, lengths: Any) -> tuple[Any, Any, Any]:
    """The outputs of all steps, and the last states; past the end of a sequence outputs are 0, and states stay."""
    kernel, recurrent, input_bias, bias = weights
    steps = primitives.Shape(x)[0]
    dims = primitives.Pack([steps, primitives.Shape(x)[1], kernel.shape[0]], 0)
    flat = primitives.Reshape(x, [-1, x.shape[-1]])
    projected = primitives.Reshape(primitives.MatMul(flat, kernel, False, True) + input_bias, dims)
    numbers = primitives.Range(0, steps, 1)

    def step(state: Any, item: Any) -> Any:
        slice_, number = item
        new_h, new_c = _step(mode, slice_, state[0], state[1], recurrent, bias)
        if lengths is not None:
            inside = primitives.ExpandDims(primitives.Less(number, lengths), 1)
            new_h = primitives.SelectV2(inside, new_h, state[0])
            new_c = primitives.SelectV2(inside, new_c, state[1])
        return new_h, new_c

    outputs, cells = scan(step, (projected, numbers), (h, c))
    last_h, last_c = outputs[-1], cells[-1]
    if lengths is not None:
        inside = primitives.Less(primitives.ExpandDims(numbers, 1), primitives.ExpandDims(lengths, 0))
        outputs = primitives.SelectV2(primitives.ExpandDims(inside, 2), outputs, cast(0, outputs.dtype))
    return outputs, last_h, last_c


def _reversed(x: Any, lengths: Any) -> Any:
    if lengths is None:
        return primitives.ReverseV2(x, [0])
    return find_public("reverse_sequence")(x, lengths, seq_axis=0, batch_axis=1)


def _run(
    x: Any, h: Any, c: Any, params: Any, lengths: Any, mode: str, input_mode: str, direction: str, dropout: float,
    seed: int, training: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The outputs and the last states of all layers; time is the first dimension."""
    if input_mode != "linear_input":
        raise UnimplementedError.of(f"CudnnRNN: input_mode must be 'linear_input'; got {input_mode!r}")
    directions, units, gates = 1 + (direction == "bidirectional"), h.shape[-1], _GATES[mode]
    layers = h.shape[0] // directions
    if mode != "lstm":
        c = primitives.BroadcastTo(cast(0, h.dtype), primitives.Shape(h))
    source = _Parameters(params)
    widths = [x.shape[-1]] + [units * directions] * (layers - 1)
    matrices = [
        (source.take(gates * units, width), source.take(gates * units, units))
        for width in widths
        for _ in range(directions)
    ]
    biases = [(source.take(gates * units), source.take(gates * units)) for _ in matrices]
    last_h, last_c = [], []
    for layer in range(layers):
        if layer and training and dropout:
            x = find_public("nn.dropout")(x, dropout, seed=seed or None)
        found = []
        for place in range(directions):
            number = layer * directions + place
            given = _reversed(x, lengths) if place else x
            weights = (*matrices[number], *biases[number])
            outputs, end_h, end_c = _one_direction(mode, given, h[number], c[number], weights, lengths)
            found.append(_reversed(outputs, lengths) if place else outputs)
            last_h.append(end_h)
            last_c.append(end_c)
        x = found[0] if directions == 1 else primitives.ConcatV2(found, 2)
    return x, primitives.Pack(last_h, 0), primitives.Pack(last_c, 0)


def _nothing(dtype: Any) -> Any:
    return convert_to_tensor([], dtype)


def _plain(version: Any) -> Any:
    def run(x: Any, h: Any, c: Any, params: Any, mode: str, input_mode: str, direction: str, dropout: float, seed: int,
            seed2: int, training: bool) -> Any:  # fmt: skip
        x, h, c, params = (convert_to_tensor(part) for part in (x, h, c, params))
        found = _run(x, h, c, params, None, mode, input_mode, direction, dropout, seed or seed2, training)
        more = [_nothing(x.dtype)] if version is CudnnRNN else [_nothing(x.dtype), _nothing("int8")]
        return version(*_with_cell(found, mode, x.dtype), *more)

    return run


def _with_cell(found: tuple[Any, Any, Any], mode: str, dtype: Any) -> tuple[Any, Any, Any]:
    return found if mode == "lstm" else (found[0], found[1], _nothing(dtype))


def _with_lengths(
    x: Any, h: Any, c: Any, params: Any, lengths: Any, mode: str, input_mode: str, direction: str, dropout: float,
    seed: int, seed2: int, projection: int, training: bool, time_major: bool,
) -> CudnnRNNV3:  # fmt: skip
    if projection:
        raise UnimplementedError.of(f"CudnnRNNV3: num_proj must be 0; got {projection}")
    x, h, c, params, lengths = (convert_to_tensor(part) for part in (x, h, c, params, lengths))
    if not time_major:
        x, h = (primitives.Transpose(part, [1, 0, 2]) for part in (x, h))
        c = primitives.Transpose(c, [1, 0, 2]) if mode == "lstm" else c
    output, last_h, last_c = _run(
        x, h, c, params, cast(lengths, "int32"), mode, input_mode, direction, dropout, seed or seed2, training
    )
    if not time_major:
        output, last_h, last_c = (primitives.Transpose(part, [1, 0, 2]) for part in (output, last_h, last_c))
    output, last_h, last_c = _with_cell((output, last_h, last_c), mode, x.dtype)
    return CudnnRNNV3(output, last_h, last_c, _nothing(x.dtype), _nothing("int8"))


_MODES = "rnn_mode='lstm', input_mode='linear_input', direction='unidirectional', dropout=0.0, seed=0, seed2=0"
ROWS: list[tuple[str, str, Any]] = [
    ("CudnnRNN", f"input, input_h, input_c, params, {_MODES}, is_training=True", _plain(CudnnRNN)),
    ("CudnnRNNV2", f"input, input_h, input_c, params, {_MODES}, is_training=True", _plain(CudnnRNNV2)),
    (
        "CudnnRNNV3",
        f"input, input_h, input_c, params, sequence_lengths, {_MODES}, num_proj=0, is_training=True, time_major=True",
        _with_lengths,
    ),
]
table.add_rows(ROWS)
