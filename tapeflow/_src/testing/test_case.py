"""`tf.test.TestCase`: a test case that compares tensors, variables and nested structures of them."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import re
import sys
import threading
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.eager_switch import executing_eagerly
from tapeflow._src.compat.v1.graph.graph import defaults, reset_default_graph
from tapeflow._src.compat.v1.sessions.fetches import RaggedTensorValue
from tapeflow._src.compat.v1.sessions.session import Session, get_default_session
from tapeflow._src.namespace import public
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.random.seeds import set_seed
from tapeflow._src.testing.assertions import Assertions
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.errors import InvalidArgumentError, OpError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorValue

_RAGGED = (RaggedTensor, RaggedTensorValue)

_SEED = 87654321


class _EagerSession:
    """What stands for a session where there is none: `run` gives the values of tensors."""

    def __init__(self, case: TestCase) -> None:
        self._case = case

    def run(self, fetches: Any, feed_dict: Any = None, *_: Any) -> Any:
        """The values of `fetches`."""
        if feed_dict:
            raise NotImplementedError(
                "feed_dict is not supported when eager execution is enabled (in this case, sess.run(t))"
            )
        return self._case.evaluate(fetches)


class CheckedThread:
    """A thread of a test; an error in it is one of the test when it is joined."""

    def __init__(self, case: TestCase, target: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self._case, self._target, self._error = case, target, None
        self._args, self._kwargs = args or (), kwargs or {}
        self._thread = threading.Thread(target=self._run)
        self._joined = True

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except Exception as error:
            self._error = error  # type: ignore[assignment]

    def start(self) -> None:
        """Starts it."""
        self._joined = False
        self._thread.start()

    def join(self) -> None:
        """Waits for its end."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._case.fail(f"Error in checkedThread: {self._error!r}")

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()


def _value(tensor: Any) -> Any:
    """One leaf as NumPy has it."""
    if isinstance(tensor, SparseTensor):
        return SparseTensorValue(*map(_value, (tensor.indices, tensor.values, tensor.dense_shape)))
    if isinstance(tensor, RaggedTensor):
        return tensor
    if isinstance(tensor, IndexedSlices):
        shape = None if tensor.dense_shape is None else _value(tensor.dense_shape)
        return IndexedSlices(_value(tensor.values), _value(tensor.indices), shape)
    return tensor.numpy() if hasattr(tensor, "numpy") else tensor


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, list | tuple | Mapping) and not dataclasses.is_dataclass(value)


@public("test.TestCase")
class TestCase(Assertions):
    """A `unittest.TestCase` for programs with tensors; each test begins with the same random seeds.

    >>> class Tests(tf.test.TestCase):
    ...     def test_square(self):
    ...         self.assertAllClose(tf.square([1., 2.]), [1., 4.])
    >>> Tests("test_square").debug()
    """

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._cached_session: Any = None

    def setUp(self) -> None:
        super().setUp()
        if self._testMethodName == "test_session":
            self.skipTest("Not a test.")
        self._threads = []
        self._cached_session = None
        random.seed(_SEED)
        np.random.seed(_SEED)
        defaults.graphs.clear()
        reset_default_graph()
        set_seed(_SEED)

    def tearDown(self) -> None:
        for thread in self._threads:
            if not thread._joined:
                self.fail("A checkedThread did not terminate")
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None
        super().tearDown()

    # ---- values

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, or of a structure of them, as NumPy arrays; in a graph, a session runs them."""
        if executing_eagerly():
            return nest.map_structure(self._evaluated, tensors)
        session = get_default_session() or self._cached_session
        if session is None:
            with self.test_session() as session:
                return session.run(tensors)
        return session.run(tensors)

    def _evaluated(self, x: Any) -> Any:
        if x is None:
            return None
        return self.evaluate(x()) if callable(x) else _value(x)

    def evaluate_if_both_tensors(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Both values, computed together if both are tensors."""
        if _core.is_tensor(a) and _core.is_tensor(b):
            a, b = self.evaluate([a, b])
        return a, b

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A session of a graph, as a context; without graphs, an object that evaluates eagerly."""
        if executing_eagerly() and graph is None:
            yield _EagerSession(self)
            return
        with Session(graph=graph, config=config) as session, session.graph.as_default():
            yield session

    @contextlib.contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """The one session of this test, as a context."""
        if executing_eagerly():
            yield _EagerSession(self)
            return
        if self._cached_session is None:
            self._cached_session = Session(graph=graph, config=config)
        session = self._cached_session
        with session.graph.as_default(), session.as_default():
            yield session

    @contextlib.contextmanager
    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = True, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A session as a context: the test's one, unless a graph is given."""
        with self.cached_session() if graph is None else self.session(graph, config) as session:
            yield session

    test_session.__test__ = False  # type: ignore[attr-defined]

    def checkedThread(self, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> CheckedThread:  # noqa: N802
        """A thread whose errors are errors of the test."""
        thread = CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread

    def _array(self, value: Any) -> np.ndarray:
        if isinstance(value, IndexedSlices | SparseTensor):
            self.fail(f"{type(value).__name__} is no array; compare its parts")
        if hasattr(value, "read_value") or _core.is_tensor(value) or getattr(value, "is_weak", False):
            value = self.evaluate(value)
        elif hasattr(value, "numpy"):
            value = value.numpy()
        try:
            found = np.asarray(value)
        except ValueError:  # rows of different sizes
            found = np.asarray(value, dtype=object)
        if found.dtype.kind in "UO" and any(isinstance(x, str) for x in found.flat):  # texts are bytes in tensors
            encoded = (x.encode() if isinstance(x, str) else x for x in found.flat)
            found = np.fromiter(encoded, object, found.size).reshape(found.shape)
        elif found.dtype.kind == "S":
            found = found.astype(object)
        return found

    def _rows(self, value: Any) -> Any:
        """The rows of a ragged tensor as lists."""
        if isinstance(value, RaggedTensor) and not executing_eagerly():
            value = self.evaluate(value)
        return value.to_list() if isinstance(value, _RAGGED) else value

    # TensorFlow's names of these, which test cases of libraries call and override
    def _GetNdArray(self, a: Any) -> np.ndarray:  # noqa: N802
        return self._array(a)

    def _evaluateTensors(self, a: Any, b: Any) -> tuple[Any, Any]:  # noqa: N802
        return self.evaluate_if_both_tensors(a, b)

    # ---- nearly equal

    def assertAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fails unless |a - b| <= atol + rtol |b| everywhere, in tensors, arrays, and structures of them."""
        a, b = self.evaluate_if_both_tensors(a, b)
        self._close(a, b, rtol, atol, msg, "")

    def _close(self, a: Any, b: Any, rtol: float, atol: float, msg: str | None, path: str) -> None:
        if isinstance(a, _RAGGED) or isinstance(b, _RAGGED):
            a, b = self._rows(a), self._rows(b)
        a, b = (x._asdict() if hasattr(x, "_asdict") else x for x in (a, b))
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"Can't compare dict to non-dict, a{path} vs b{path}. {msg or ''}")
        if isinstance(a, Mapping):
            if set(a) != set(b):
                what = f"mismatched keys: a{path} has keys {sorted(a)}, but b{path} has keys {sorted(b)}"
                self.fail(self._formatMessage(msg, what))
            for key in a:
                self._close(a[key], b[key], rtol, atol, msg, f"{path}[{key}]")
        elif dataclasses.is_dataclass(a) and type(a) is type(b):
            for field in dataclasses.fields(a):
                names = getattr(a, field.name), getattr(b, field.name)
                self._close(*names, rtol, atol, msg, f"{path}.{field.name}")
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and self._differ_inside(a, b):
            if len(a) != len(b):
                what = f"Mismatched length: a{path} has {len(a)} items, but b{path} has {len(b)} items"
                self.fail(self._formatMessage(msg, what))
            for i, (x, y) in enumerate(zip(a, b)):
                self._close(x, y, rtol, atol, msg, f"{path}[{i}]")
        else:
            self._arrays_close(self._array(a), self._array(b), rtol, atol, msg, path)

    @staticmethod
    def _differ_inside(a: Any, b: Any) -> bool:
        """Whether these sequences are structures, not the rows of arrays."""
        if any(isinstance(x, _RAGGED) for x in (*a, *b)):
            return True
        if not executing_eagerly() and any(hasattr(x, "read_value") or _core.is_symbolic(x) for x in (*a, *b)):
            return True
        try:
            arrays = [np.asarray([getattr(x, "numpy", lambda x=x: x)() for x in s]) for s in (a, b)]
        except (ValueError, NotImplementedError):
            return True
        return any(x.dtype == object for x in arrays)

    def _arrays_close(self, a: np.ndarray, b: np.ndarray, rtol: float, atol: float, msg: str | None, path: str) -> None:
        shown = f" with contents {b}." if b.ndim <= 3 or b.size < 500 else "."
        self.assertEqual(a.shape, b.shape, f"Shape mismatch: expected {a.shape}, got {b.shape}{shown}")
        a, b = (x.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else x for x in (a, b))
        if a.dtype == object or a.dtype == bool:
            return self.assertAllEqual(a, b, msg)
        if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            return None
        off = (np.abs(a - b) > atol + rtol * np.abs(b)) | (np.isnan(a) != np.isnan(b))
        lines = [
            f"Mismatched value: a{path} is different from b{path}. ",
            f"not close where = {np.nonzero(np.atleast_1d(off))}",
        ]
        if a.ndim:
            x, y = a[off], b[off]
            lines += [f"not close lhs = {x}", f"not close rhs = {y}", f"not close dif = {np.abs(x - y)}"]
            lines += [f"not close tol = {atol + rtol * np.abs(y)}"]
        lines += [f"dtype = {a.dtype}, shape = {a.shape}"]
        text = "\n".join(([msg] if msg else []) + lines)
        return np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=text, equal_nan=True)

    def assertAllCloseAccordingToType(  # noqa: N802
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """As assertAllClose, with more tolerance for float32, float16 and bfloat16."""
        a, b = self.evaluate_if_both_tensors(a, b)
        a, b = self._array(a), self._array(b)
        names = {a.dtype.name, b.dtype.name}
        for name, relative, absolute in (
            ("float32", float_rtol, float_atol),
            ("float16", half_rtol, half_atol),
            ("bfloat16", bfloat16_rtol, bfloat16_atol),
        ):
            if name in names:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(  # noqa: N802
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fails if assertAllClose does not."""
        try:
            self.assertAllClose(a, b, rtol, atol)
        except AssertionError:
            return
        self.fail(f"{msg or ''}The two values are close at all elements. ")

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two numbers differ by at most `err`."""
        f1, f2 = (np.asarray(x).item() for x in (f1, f2))  # arrays of one element are numbers here
        what = f"{f1:f} != {f2:f} +/- {err:f} (difference: {abs(f1 - f2):g}){f' ({msg})' if msg else ''}"
        self.assertTrue(f1 == f2 or abs(f1 - f2) <= err, what)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless the numbers of two lists differ by at most `err`."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2):
            self.assertNear(float(f1), float(f2), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless the distance of two arrays is below `err`."""
        distance = np.linalg.norm(self._array(ndarray1) - self._array(ndarray2))
        self.assertTrue(distance < err, msg or f"the arrays are {distance} apart; at most {err} is allowed")

    # ---- equal

    def assertDictEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two dictionaries have the same keys and equal values; real tensors may differ a little."""
        try:
            super().assertDictEqual(a, b, msg)
        except Exception:
            if not any(_core.is_tensor(x) or isinstance(x, np.ndarray) for x in [*a.values(), *b.values()]):
                raise
            self.assertSameElements(a, b, msg)
            for key, value in a.items():
                is_real = self._array(value).dtype.kind == "f"
                (self.assertAllClose if is_real else self.assertAllEqual)(value, b[key], msg=key)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless all elements are equal; NaN is equal to NaN."""
        if isinstance(a, _RAGGED) or isinstance(b, _RAGGED):
            return self.assertEqual(_plain(self._rows(a)), _plain(self._rows(b)), msg)
        a, b = self.evaluate_if_both_tensors(a, b)
        a, b = self._array(a), self._array(b)
        shown = f" with contents {b}." if b.ndim <= 3 or b.size < 500 else "."
        self.assertEqual(a.shape, b.shape, f"{msg or ''}Shape mismatch: expected {a.shape}, got {b.shape}{shown}")
        same = np.asarray(a == b)
        if a.ndim == 0 and DType in (type(a[()]), type(b[()])):  # a dtype is equal to its name
            same = np.asarray(_dtype_name(a[()]) == _dtype_name(b[()]))
        if a.dtype.kind in "fc" and b.dtype.kind in "fc":
            same = same | (np.isnan(a) & np.isnan(b))
        if not same.all():
            lines = [msg] if msg else []
            lines += [f"not equal where = {np.nonzero(np.atleast_1d(~same))}"]
            if a.ndim:
                lines += [f"not equal lhs = {a[~same]!r}", f"not equal rhs = {b[~same]!r}"]
            else:
                lines += [f"not equal lhs = {a!r}", f"not equal rhs = {b!r}"]
            np.testing.assert_array_equal(a, b, err_msg="\n".join(lines))
            self.fail("\n".join(lines))
        return None

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails if all elements are equal."""
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(f"The two values are equal at all elements. {msg or ''}")

    # ---- all elements

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Fails unless all elements are greater."""
        self.assertGreater(self._array(a).min(), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Fails unless all elements are less."""
        self.assertLess(self._array(a).max(), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Fails unless all elements are greater or equal."""
        self.assertGreaterEqual(self._array(a).min(), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:  # noqa: N802
        """Fails unless all elements are less or equal."""
        self.assertLessEqual(self._array(a).max(), comparison_target)

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:  # noqa: N802
        """Fails unless all elements are in a set."""
        strange = np.setdiff1d(self._array(target), list(expected_set))
        if strange.size:
            self.fail(f"{strange.size} unique element(s) are not in the set {expected_set}: {strange}")

    def assertAllInRange(  # noqa: N802
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fails unless all elements are between two bounds."""
        array = self._array(target)
        if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
            self.fail(
                f"The value of {target} does not have an ordered numeric type, instead it has type: {array.dtype}"
            )
        low = array <= lower_bound if open_lower_bound else array < lower_bound
        high = array >= upper_bound if open_upper_bound else array > upper_bound
        outside = np.argwhere(low | high | np.isnan(array.astype(np.float64)))
        if len(outside):
            left, right = "(" if open_lower_bound else "[", ")" if open_upper_bound else "]"
            rows = "\n".join(f"  {[*map(int, index)]} : {array[tuple(index)]}" for index in outside[:10])
            self.fail(
                f"{len(outside)} of the {array.size} element(s) are outside the range {left}{lower_bound}, "
                f"{upper_bound}{right}. Subscript(s) and value(s) of the offending elements:\n{rows}"
            )

    # ---- forms

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two arrays or tensors have one shape."""
        shapes = []
        for value in (input_a, input_b):
            if not hasattr(value, "shape"):
                raise TypeError(f"assertShapeEqual takes arrays and tensors; got {type(value).__name__}")
            shapes.append(list(value.shape))
        self.assertAllEqual(shapes[0], shapes[1], msg=msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:  # noqa: N802
        """Fails unless an array or tensor has a data type."""
        found = as_dtype(target.dtype if hasattr(target, "dtype") else self._array(target).dtype)
        self.assertEqual(found, as_dtype(expected_dtype))

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two names mean one device."""
        one, other = (str(d or "").replace("/device:", "/").lower() for d in (device1, device2))
        self.assertEqual(one, other, msg or f"Devices {device1} and {device2} are not equal.")

    def assertProtoEquals(  # noqa: N802
        self, expected_message_maybe_ascii: Any, validate_message: Any, msg: str | None = None, **_: Any
    ) -> None:
        """Fails unless two messages, or a message and its text, are equal."""
        expected, found = expected_message_maybe_ascii, validate_message
        if not hasattr(expected, "DESCRIPTOR"):
            from google.protobuf import text_format  # few tests compare messages

            expected = text_format.Merge(str(expected), type(found)())
        self.assertEqual(expected, found, msg)

    # ---- errors

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # noqa: N802
        self, exception_type: Any, expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Fails unless an error is raised that a pattern is found in, or a function is true of."""
        try:
            yield
        except exception_type as error:
            if callable(expected_err_re_or_predicate):
                fits = expected_err_re_or_predicate(error)
            else:
                text = error.message if isinstance(error, OpError) else str(error)
                fits = re.search(expected_err_re_or_predicate, text)
            if not fits:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
            return
        self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:  # noqa: N802
        """Fails unless one of `tf.errors` is raised that a pattern is found in."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(self, exception_type: Any = InvalidArgumentError) -> Any:  # noqa: N802
        """Fails unless an error about shapes that do not go together is raised."""
        pattern = r"Incompatible shapes|Dimensions must be equal|required broadcastable shapes"
        return self.assertRaisesWithPredicateMatch(exception_type, pattern)


def _dtype_name(value: Any) -> Any:
    return value.name if isinstance(value, DType) else value.decode() if isinstance(value, bytes) else value


def _plain(value: Any) -> Any:
    """Nested lists of numbers and bytes."""
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
        return [_plain(x) for x in value] if isinstance(value, list) else value
    return value.encode() if isinstance(value, str) else value


@public("test.main")
def main(argv: Any = None) -> None:
    """Runs all tests of the program's file.

    >>> tf.test.main
    <function main at ...>
    """
    unittest.main(argv=sys.argv if argv is None else argv)
