"""Small tools for writing libraries, under TensorFlow's inner names."""

import doctest
import importlib
import json
import pickle
import threading
import types
import typing

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture(autouse=True)
def alias():
    tf.install_as_tensorflow()


def inner(path):
    return importlib.import_module(f"tensorflow.python.{path}")


def test_registry():
    registry = inner("framework.registry").Registry("shapes")
    registry.register(test_registry)
    registry.register(len, "size")
    assert registry.lookup("size") is len and registry.list() == ["test_registry", "size"]
    with pytest.raises(LookupError, match="shapes registry has no entry for: area"):
        registry.lookup("area")
    with pytest.raises(KeyError, match=r"Registering two shapes with name 'size'.*test_library_tools.py:\d+"):
        registry.register(max, "size")


def test_stack_of_objects_with_lines():
    traced = inner("framework.traceable_stack")
    stack = traced.TraceableStack()

    def push(value):
        stack.push_obj(value, offset=1)

    stack.push_obj("a")
    push("b")
    newer, older = stack.peek_traceable_objs()
    assert newer.filename == __file__ and newer.lineno == older.lineno + 1
    assert list(stack.peek_objs()) == ["b", "a"] and stack.peek_top_obj() == "b"
    copied = stack.copy()
    assert (stack.pop_obj(), stack.pop_obj()) == ("b", "a") and len(stack) == 0 and len(copied) == 2
    found = traced.TraceableObject(1)
    assert found.set_filename_and_line_from_caller(300) == found.HEURISTIC_USED
    assert found.set_filename_and_line_from_caller() == found.SUCCESS and found.filename == __file__


def test_keyword_arguments_only():
    f = inner("util.keyword_args").keyword_args_only(lambda a, b: a - b)
    assert f(b=1, a=3) == 2
    with pytest.raises(ValueError, match="only accepts keyword arguments"):
        f(1, b=2)


def test_groups_exclude_each_other():
    lock = inner("util.lock_util").GroupLock(2)
    seen = []

    def enter(group):
        with lock.group(group):
            seen.append(group)

    with lock.group(0):
        enter(0)
        other = threading.Thread(target=enter, args=(1,))
        other.start()
        other.join(0.05)
        assert seen == [0]
    other.join()
    assert seen == [0, 1]
    with pytest.raises(ValueError, match="group_id=2"):
        lock.acquire(2)


def test_values_for_json():
    convert = inner("util.serialization").get_json_type
    values = [tf.TensorShape([None, 2]), tf.float32, np.float32(1.5), np.array([1, 2]), max]
    assert json.loads(json.dumps(values, default=convert)) == [[None, 2], "float32", 1.5, [1, 2], "max"]
    with pytest.raises(TypeError, match="not JSON-serializable"):
        convert(object())


def test_questions_about_annotations():
    annotations = inner("util.type_annotations")
    assert annotations.is_generic_union(int | None) and annotations.is_generic_union(typing.Union[int, float])  # noqa: UP007
    assert annotations.is_generic_tuple(tuple[int, ...]) and not annotations.is_generic_tuple(tuple)
    assert annotations.is_generic_mapping(typing.Mapping[int, str]) and annotations.is_generic_list(list[int])
    assert annotations.get_generic_type_args(tuple[int, ...]) == (int, Ellipsis)
    forward = typing.ForwardRef("Kind")
    assert annotations.is_forward_ref(forward) and not annotations.is_forward_ref(int)


def test_a_module_that_comes_when_it_is_used(monkeypatch):
    loader, namespace = inner("util.lazy_loader"), {}
    warnings = []
    monkeypatch.setattr(inner("platform.tf_logging"), "warning", warnings.append)
    lazy = loader.LazyLoader("place", namespace, "colorsys", warning="old")
    holder = types.ModuleType("holder")
    holder.lazy = lazy
    doctest.DocTestFinder().find(holder)
    assert namespace == {} and warnings == []
    assert lazy.rgb_to_yiq(0, 0, 0) == (0.0, 0.0, 0.0)
    assert namespace["place"] is importlib.import_module("colorsys") and warnings == ["old"]
    lazy.extra = 1
    assert namespace["place"].extra == 1 and warnings == ["old"]
    del lazy.extra
    assert pickle.loads(pickle.dumps(lazy)) is namespace["place"]
