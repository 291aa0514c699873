"""`tf.test.TestCase`: what passes, what fails and with which words; sessions, threads, seeds."""

import dataclasses
import subprocess
import sys
import unittest
from collections import namedtuple

import numpy as np
import pytest

import tapeflow as tf

Point = namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Pair:
    left: object
    right: object


@pytest.fixture
def case():
    class Case(tf.test.TestCase):
        def test(self):
            pass

    one = Case("test")
    one.setUp()
    yield one
    one.tearDown()


CLOSE = [
    ([1.0, 2.0], [1.0, 2.0 + 1e-9]),
    (tf.constant([1.0]), np.array([1.0])),
    (tf.Variable([1.0]), [1.0]),
    ({"a": [1.0], "b": {"c": 2.0}}, {"a": tf.constant([1.0]), "b": {"c": 2.0}}),
    ([tf.ones([2]), tf.ones([3, 1])], [np.ones(2), np.ones((3, 1))]),
    (Point(1.0, [2.0]), Point(tf.constant(1.0), [2.0])),
    (Pair(1.0, [2.0]), Pair(1.0, tf.constant([2.0]))),
    (np.nan, np.nan),
    (tf.ragged.constant([[1.0], []]), [[1.0], []]),
    ([tf.ragged.constant([[1.0], []]), tf.ones([2])], [[[1.0], []], tf.ones([2])]),
    ({"x": 1.0, "y": [2.0]}, Point(1.0, [2.0])),
    (tf.constant(1.0, tf.bfloat16), 1.0),
]


@pytest.mark.parametrize(("a", "b"), CLOSE)
def test_close(case, a, b):
    case.assertAllClose(a, b)


NOT_CLOSE = [
    ([1.0, 2.0], [1.0, 2.1], r"not close where = \(array\(\[1\]\),\)"),
    ({"a": [1.0]}, {"a": [2.0]}, r"Mismatched value: a\[a\] is different from b\[a\]"),
    ({"a": 1.0}, {"b": 1.0}, "mismatched keys"),
    ([1.0], [[1.0]], r"Shape mismatch: expected \(1,\), got \(1, 1\)"),
    (1.0, np.nan, "Mismatched value"),
    ([tf.ones([2]), tf.ones([3])], [tf.ones([2])], "Mismatched length|Shape mismatch"),
]


@pytest.mark.parametrize(("a", "b", "what"), NOT_CLOSE)
def test_not_close(case, a, b, what):
    with pytest.raises(AssertionError, match=what):
        case.assertAllClose(a, b)
    case.assertNotAllClose(a, b)


def test_structures_of_other_kinds_are_not_compared(case):
    for a, b in (({"a": 1.0}, [1.0]), (1.0, {"a": 1.0})):
        with pytest.raises(ValueError, match="Can't compare dict to non-dict"):
            case.assertAllClose(a, b)


def test_close_according_to_type(case):
    case.assertAllCloseAccordingToType(np.float16(1.0), np.float16(1.0009))
    case.assertAllCloseAccordingToType(tf.constant(1.0, tf.bfloat16), 1.009)
    with pytest.raises(AssertionError):
        case.assertAllCloseAccordingToType(1.0, 1.0009)


def test_equal(case):
    case.assertAllEqual([1, 2], tf.constant([1, 2]))
    case.assertAllEqual("a", tf.constant("a"))
    case.assertAllEqual(["a", b"b"], tf.constant(["a", "b"]))
    case.assertAllEqual([np.nan], tf.constant([np.nan]))
    case.assertAllEqual(tf.ragged.constant([["a"], []]), [["a"], []])
    for a, b, what in (
        ([1, 2], [1, 3], "not equal lhs"),
        ([1], [[1]], "Shape mismatch"),
        (["a"], ["b"], "not equal where"),
        (1, 2, "not equal lhs"),
    ):
        with pytest.raises(AssertionError, match=what):
            case.assertAllEqual(a, b)
        case.assertNotAllEqual(a, b)
    with pytest.raises(AssertionError, match="equal at all elements"):
        case.assertNotAllEqual([1], [1])


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (
            lambda c: c.assertAllInRange([1.0, 5.0], 0.0, 2.0),
            r"1 of the 2 element\(s\) are outside the range \[0.0, 2.0\]",
        ),
        (lambda c: c.assertAllInRange([1.0], 1.0, 2.0, open_lower_bound=True), r"range \(1.0, 2.0\]"),
        (lambda c: c.assertAllInSet([1, 2], [1]), r"1 unique element\(s\) are not in the set \[1\]: \[2\]"),
        (lambda c: c.assertAllGreater([1, 2], 1), "not greater than 1"),
        (lambda c: c.assertAllLess([1, 2], 2), "not less than 2"),
        (lambda c: c.assertAllGreaterEqual([1, 2], 2), "not greater than or equal to 2"),
        (lambda c: c.assertAllLessEqual([1, 2], 1), "not less than or equal to 1"),
        (lambda c: c.assertNear(1.0, 2.0, 0.5), "1.000000 != 2.000000"),
        (lambda c: c.assertArrayNear([1.0], [2.0], 0.1), "1.000000 != 2.000000"),
        (lambda c: c.assertNDArrayNear(np.ones(2), np.zeros(2), 0.1), "apart"),
        (lambda c: c.assertShapeEqual(np.zeros([2]), tf.zeros([3])), "not equal"),
        (lambda c: c.assertDTypeEqual(tf.constant(1.0), tf.int32), "float32"),
        (lambda c: c.assertLen([1], 2), r"has length of 1, expected 2"),
        (lambda c: c.assertEmpty([1]), "is not empty"),
        (lambda c: c.assertNotEmpty([]), "is empty"),
        (lambda c: c.assertBetween(3, 0, 2), "not between"),
        (lambda c: c.assertStartsWith("abc", "b"), "does not start with"),
        (lambda c: c.assertEndsWith("abc", "b"), "does not end with"),
        (lambda c: c.assertContainsSubset([1, 2], [1]), "Missing elements"),
        (lambda c: c.assertNoCommonElements([1], [1]), "Common elements"),
        (lambda c: c.assertContainsSubsequence([1, 2, 3], [3, 1]), "not a subsequence"),
        (lambda c: c.assertContainsExactSubsequence([1, 2, 3], [1, 3]), "not a subsequence"),
        (lambda c: c.assertContainsInOrder(["b", "a"], "ab"), "Did not find 'a'"),
        (lambda c: c.assertTotallyOrdered([2], [1]), "not ordered"),
        (lambda c: c.assertSameElements([1, 1], [2]), "First"),
        (lambda c: c.assertSameStructure({"a": [1]}, {"a": [2]}), r"a\['a'\]\[0\] is 1 but"),
        (lambda c: c.assertRegexMatch("abc", ["x", "y"]), "matches none"),
        (lambda c: c.assertJsonEqual("[1]", "[2]"), "is 1 but"),
        (lambda c: c.assertUrlEqual("http://a/?x=1&y=2", "http://a/?x=1"), "differ"),
        (lambda c: c.assertSequenceAlmostEqual([1.0], [1.1]), "1.0 != 1.1"),
    ],
)
def test_refusals(case, call, what):
    with pytest.raises(AssertionError, match=what):
        call(case)


def test_what_passes(case):
    case.assertAllInRange([1.0, 2.0], 0.0, 2.0)
    case.assertAllInSet([1, 2], {1, 2})
    case.assertShapeEqual(np.zeros([2]), tf.zeros([2]))
    case.assertDTypeEqual(tf.constant(1.0), tf.float32)
    case.assertItemsEqual([1, 2], [2, 1])
    case.assertSameElements([1, 1, 2], [2, 1])
    case.assertContainsInOrder(["a", "b"], "a, b")
    case.assertTotallyOrdered([1], [2, 2], [3])
    case.assertUrlEqual("http://a/?x=1&y=2", "http://a/?y=2&x=1")
    case.assertMappingEqual({"a": 1}, {"a": 1})
    case.assertDataclassEqual(Pair(1, 2), Pair(1, 2))
    case.assertCommandSucceeds([sys.executable, "-c", "print('hi')"], [b"hi"])
    case.assertDeviceEqual("/device:CPU:0", "/cpu:0")


def test_errors(case):
    with case.assertRaisesOpError("Matrix size|inner dimensions"):
        tf.matmul([[1.0]], [[1.0], [2.0]])
    with case.assertRaisesWithPredicateMatch(ValueError, lambda error: "x" in str(error)):
        raise ValueError("x")
    with case.assertRaisesIncompatibleShapesError():
        tf.ones([2]) + tf.ones([3])
    with case.assertRaisesWithLiteralMatch(ValueError, "a.b"):
        raise ValueError("a.b")
    with pytest.raises(AssertionError, match="Exception of type"), case.assertRaisesOpError("xx"):
        raise tf.errors.InvalidArgumentError(None, None, "yy")
    with pytest.raises(AssertionError, match="not raised"), case.assertRaisesOpError("xx"):
        pass


def test_evaluate(case):
    found = case.evaluate({"a": tf.constant([1]), "b": (tf.Variable(2.0), None, 3)})
    assert found["a"].tolist() == [1]
    assert found["b"] == (2.0, None, 3)
    sparse = case.evaluate(tf.sparse.from_dense([0, 5]))
    assert isinstance(sparse, tf.compat.v1.SparseTensorValue)
    with case.session() as session:
        assert session.run(tf.constant(3)) == 3


def test_sessions_of_graphs(case):
    with tf.Graph().as_default(), case.cached_session() as session:
        x = tf.compat.v1.placeholder(tf.float32)
        y = x * 2.0
        assert session.run(y, {x: 3.0}) == 6.0
        assert case.evaluate(tf.constant(4.0)) == 4.0
        case.assertAllClose(tf.constant([1.0]) * 2.0, [2.0])
    graph = tf.Graph()
    with graph.as_default():
        z = tf.constant(5.0)
    with case.session(graph=graph) as session:
        assert session.run(z) == 5.0


def test_threads_and_streams(case, tmp_path):
    thread = case.checkedThread(lambda: 1 / 0)
    thread.start()
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        thread.join()
    with open(tmp_path / "stream", "w") as stream, case.captureWritesToStream(stream) as captured:
        stream.write("hello")
        assert captured.contents() == "hello"


def test_files(case):
    file = case.create_tempfile("a/b.txt", "text")
    assert file.read_text() == "text"
    assert file.full_path.startswith(case.get_temp_dir())


def test_each_test_begins_with_the_same_numbers():
    found = []

    class Tests(tf.test.TestCase):
        def test_one(self):
            found.append(tf.random.normal([3]).numpy().tolist())

        def test_two(self):
            found.append(tf.random.normal([3]).numpy().tolist())

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Tests).run(result)
    assert result.testsRun == 3, "test_session is counted, and skipped"
    assert [reason for _, reason in result.skipped] == ["Not a test."]
    assert not result.errors and not result.failures
    assert found[0] == found[1]


def test_a_program_of_tests_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import tapeflow as tf\n"
        "class Tests(tf.test.TestCase):\n"
        "    def test_good(self):\n        self.assertAllClose(tf.square(2.), 4.)\n"
        "    def test_bad(self):\n        self.assertAllClose(tf.square(2.), 5.)\n"
        "if __name__ == '__main__':\n    tf.test.main()\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode != 0
    assert "failures=1" in done.stderr
    assert "Mismatched value" in done.stderr


def test_unittest_is_loaded_only_when_asked_for():
    code = "import sys, tapeflow; assert 'unittest' not in sys.modules; tapeflow.test.TestCase"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_machine():
    assert tf.test.is_gpu_available() is False
    assert tf.test.gpu_device_name() == ""
    assert tf.compat.v1.test.TestCase is tf.test.TestCase


def test_dictionaries_of_tensors(case):
    case.assertEqual({"x": tf.constant([1.0, 2.0]), "n": tf.constant([1])}, {"x": np.array([1.0, 2.0]), "n": [1]})
    with pytest.raises(AssertionError):
        case.assertEqual({"x": tf.constant([1.0, 2.0])}, {"x": tf.constant([1.0, 3.0])})
    with pytest.raises(AssertionError):
        case.assertEqual({"x": tf.constant([1.0])}, {"y": tf.constant([1.0])})
    with pytest.raises(AssertionError):
        case.assertEqual({"x": 1}, {"x": 2})


def test_texts_in_arrays_of_objects(case):
    case.assertAllEqual(np.array(["a", "b"], object), ["a", "b"])
    case.assertAllEqual(np.array(["a", "b"], object), tf.constant(["a", "b"]))
    with pytest.raises(AssertionError):
        case.assertAllEqual(np.array(["a", "b"], object), ["a", "c"])


def test_messages_are_equal_to_their_texts():
    case = tf.test.TestCase()
    case.assertProtoEquals("dtype: DT_FLOAT tensor_shape {} float_val: 10.0", tf.make_tensor_proto(10.0))
    with pytest.raises(AssertionError):
        case.assertProtoEquals("dtype: DT_FLOAT tensor_shape {} float_val: 11.0", tf.make_tensor_proto(10.0))


def test_numbers_may_be_arrays_of_one_element():
    case = tf.test.TestCase()
    case.assertNear(np.array([1.0]), tf.constant([1.25]), 0.5)
    with pytest.raises(AssertionError, match=r"1\.0+ != 2\.0+"):
        case.assertNear(np.array([[1.0]]), 2.0, 0.5)
