"""The operations of the core as Python callables, by TensorFlow's operation name: `primitives.MatMul(a, b)`."""

from tapeflow import _core

_rows = _core.op_functions()

# (public path, function) for `namespace.install`: each primitive under its public names. `ops/raw.py` gives raw_ops.
definitions = [(path, function) for _, function, _, paths, _ in _rows for path in paths]

# What the tests ask about every primitive: its gradient, family and dtypes, by operation name.
facts_by_name = {name: facts for name, _, _, _, facts in _rows}

globals().update({name: function for name, function, _, _, _ in _rows})
