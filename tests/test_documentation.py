"""Every public function, class and constant-like type says what it is, in one sentence and with examples that run.

An example ends with what it gives: the repr, or the value as nested lists, compared as numbers.
"""

from __future__ import annotations

import contextlib
import doctest
import enum
import io
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tools.surface import public_definitions

# Definitions by identity, with the first of their paths; raw operations and NumPy's own types aside.
documented: dict[int, tuple[str, Any]] = {}
for _path, _value in public_definitions():
    if callable(_value) and not _path.startswith("raw_ops.") and getattr(_value, "__module__", "") != "numpy":
        documented.setdefault(id(_value), (_path, _value))
BY_PATH = dict(sorted(documented.values()))

# What need not show an example: it only exists to be caught, or to be told apart.
without_example = {path for path, value in BY_PATH.items() if isinstance(value, type) and issubclass(value, Exception)}

# Two lists to be shortened, never to be lengthened. Names that still lack a sentence or an example:
still_missing: set[str] = {
    "AggregationMethod",
    "NoneTensorSpec",
    "Tensor",
    "VariableAggregation",
    "VariableSynchronization",
    "__internal__.CompositeTensor",
    "__internal__.nest.is_attrs",
    "__internal__.nest.is_mapping",
    "compat.v1.SparseTensorValue",
    "compat.v1.VariableAggregation",
    "compat.v1.glorot_normal_initializer",
    "compat.v1.glorot_uniform_initializer",
    "compat.v1.initializers.random_normal",
    "compat.v1.initializers.random_uniform",
    "compat.v1.initializers.truncated_normal",
    "compat.v1.initializers.uniform_unit_scaling",
    "compat.v1.initializers.variance_scaling",
    "config.LogicalDevice",
    "config.LogicalDeviceConfiguration",
    "config.PhysicalDevice",
    "config.experimental.enable_op_determinism",
    "config.experimental.enable_tensor_float_32_execution",
    "config.experimental.get_device_details",
    "config.experimental.get_device_policy",
    "config.experimental.get_memory_growth",
    "config.experimental.get_memory_usage",
    "config.experimental.get_synchronous_execution",
    "config.experimental.get_virtual_device_configuration",
    "config.experimental.get_visible_devices",
    "config.experimental.reset_memory_stats",
    "config.experimental.set_device_policy",
    "config.experimental.set_memory_growth",
    "config.experimental.set_synchronous_execution",
    "config.experimental.set_virtual_device_configuration",
    "config.experimental.set_visible_devices",
    "config.experimental.tensor_float_32_execution_enabled",
    "config.get_soft_device_placement",
    "config.optimizer.get_experimental_options",
    "config.optimizer.get_jit",
    "config.optimizer.set_experimental_options",
    "config.optimizer.set_jit",
    "config.set_soft_device_placement",
    "config.threading.get_inter_op_parallelism_threads",
    "config.threading.get_intra_op_parallelism_threads",
    "config.threading.set_inter_op_parallelism_threads",
    "config.threading.set_intra_op_parallelism_threads",
    "constant_initializer",
    "install_as_tensorflow",
    "ones_initializer",
    "random_normal_initializer",
    "random_uniform_initializer",
    "zeros_initializer",
}
# Names whose examples are written with the names of their own module (`flatten(x)`, not `tf.nest.flatten(x)`):
written_from_inside: set[str] = {
    "DType",
    "DeviceSpec",
    "IndexedSlices",
    "IndexedSlicesSpec",
    "Module",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "UnconnectedGradients",
    "__internal__.get_name_scope",
    "__internal__.nest.flatten_up_to",
    "__internal__.nest.get_traverse_shallow_structure",
    "__internal__.nest.list_to_tuple",
    "__internal__.nest.map_structure_up_to",
    "__internal__.nest.sequence_like",
    "__internal__.nest.yield_flat_paths",
    "as_dtype",
    "compat.dimension_at_index",
    "compat.dimension_value",
    "compat.v1.Dimension",
    "compat.v1.OpError",
    "compat.v1.errors.error_code_from_exception_type",
    "compat.v1.errors.exception_type_from_error_code",
    "compat.v1.get_logger",
    "compat.v1.nest.assert_same_structure",
    "compat.v1.nest.flatten",
    "compat.v1.nest.is_nested",
    "compat.v1.nest.map_structure",
    "compat.v1.nest.pack_sequence_as",
    "config.experimental.get_memory_info",
    "config.experimental.list_logical_devices",
    "config.experimental.list_physical_devices",
    "device",
    "name_scope",
    "print",
    "type_spec_from_value",
}

PARSER = doctest.DocTestParser()


def docstring(value: Any) -> str:
    return value.__doc__ or ""


def examples_of(value: Any) -> list[list[doctest.Example]]:
    """The examples in the docstring of a definition and, for a class, of each of its own public methods."""
    texts = [docstring(value)]
    if isinstance(value, type) and not issubclass(value, enum.Enum):
        members = [member for name, member in vars(value).items() if not name.startswith("_")]
        texts += [docstring(member) for member in members if callable(member) or isinstance(member, property)]
    return [found for found in map(PARSER.get_examples, texts) if found]


def test_every_definition_has_a_sentence_and_an_example():
    no_sentence = [p for p, value in BY_PATH.items() if not docstring(value).strip() or not first_sentence(value)]
    no_example = [p for p, value in BY_PATH.items() if p not in without_example and not examples_of(value)]
    missing = (set(no_sentence) | set(no_example)) - still_missing
    assert not missing, (
        f"{len(missing)} public names lack a sentence or a `>>>` example in their docstring:\n"
        + "\n".join(f"tf.{path}{' (no sentence)' if path in no_sentence else ''}" for path in sorted(missing))
    )


def test_the_list_of_what_is_missing_shrinks():
    complete = {p for p in still_missing if p not in BY_PATH or (docstring(BY_PATH[p]) and examples_of(BY_PATH[p]))}
    assert not complete, f"take these out of still_missing: {sorted(complete)}"


def first_sentence(value: Any) -> bool:
    """The first paragraph ends like a sentence."""
    paragraph = docstring(value).strip().partition("\n\n")[0]
    return bool(paragraph) and paragraph.rstrip().endswith((".", ":", "!")) and not paragraph.startswith(">>>")


# --------------------------------------------------------------------------------------------------- running them

WITH_EXAMPLES = [path for path, value in BY_PATH.items() if examples_of(value)]


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_examples(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for examples in examples_of(BY_PATH[path]):
        scope: dict[str, Any] = {"tf": tf, "np": np}
        if path in written_from_inside:
            scope |= vars(sys.modules[BY_PATH[path].__module__])
        for example in examples:
            printed, result = run(example, scope)
            gives = printed or repr(result)
            if example.exc_msg is None and not matches(example.want, printed, result):
                pytest.fail(f"tf.{path}: >>> {example.source}gives\n{gives}\nbut says\n{example.want}", pytrace=False)


def run(example: doctest.Example, scope: dict[str, Any]) -> tuple[str, Any]:
    """Executes one example, as at a prompt; gives what it printed, and the last value that the prompt would show."""
    shown: list[Any] = []
    output = io.StringIO()
    fails = pytest.raises(Exception) if example.exc_msg is not None else contextlib.nullcontext()
    hook, sys.displayhook = sys.displayhook, shown.append
    try:
        with contextlib.redirect_stdout(output), fails:
            exec(compile(example.source, "<example>", "single"), scope)
    finally:
        sys.displayhook = hook
    return output.getvalue(), shown[-1] if shown else None


def matches(want: str, printed: str, result: Any) -> bool:
    if not want:
        return not printed
    shown = printed if result is None else f"{printed}{result!r}\n"
    if squeezed(want) == squeezed(shown) or doctest.OutputChecker().check_output(want, shown, doctest.ELLIPSIS):
        return True
    try:
        expected = eval(want.strip(), {"nan": math.nan, "inf": math.inf, "array": np.array, "tf": tf})
    except Exception:
        return False
    return same(nested(result), expected)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def nested(value: Any) -> Any:
    """Tensors as nested lists; containers as lists of such."""
    if isinstance(value, Mapping):
        return {key: nested(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [nested(item) for item in value]
    if isinstance(value, str | bytes | bool | int | float | complex | None):
        return value
    if isinstance(value, tf.IndexedSlices):
        return nested(tf.convert_to_tensor(value))
    for convert in ("to_list", "as_list"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        return isinstance(got, Mapping) and [*got] == [*expected] and all(same(got[k], expected[k]) for k in got)
    if isinstance(expected, list | tuple):
        return isinstance(got, list) and len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, bool | str | bytes) or isinstance(got, bool | str | bytes):
        if isinstance(expected, str) and isinstance(got, bytes):
            got = got.decode()
        return type(got) is type(expected) and got == expected
    if isinstance(expected, int | float | complex) and isinstance(got, int | float | complex):
        return bool(np.isclose(got, expected, rtol=1e-5, atol=1e-5, equal_nan=True))
    return bool(got == expected)
