"""`public` collects and `install` sets: aliases, modules, conflicts and the error for a missing name."""

import importlib
import inspect
import pickle
import subprocess
import sys
import types
import weakref
from types import ModuleType

import pytest

import tapeflow as tf
from tapeflow._src import namespace
from tools.surface import SURFACE


@pytest.fixture
def house():
    yield ModuleType("house")
    for name in [name for name in sys.modules if name.startswith("house.")]:
        del sys.modules[name]


def test_paths_become_modules(house):
    table, lamp = object(), object()
    namespace.install(house, [("kitchen.table", table), ("kitchen.shelf.lamp", lamp), ("table", table)])
    assert house.table is house.kitchen.table is table
    assert house.kitchen.shelf.lamp is lamp
    assert sys.modules["house.kitchen.shelf"] is house.kitchen.shelf
    assert house.kitchen.shelf.__name__ == "house.kitchen.shelf"
    assert house.kitchen.__doc__


def test_one_path_has_one_definition(house):
    with pytest.raises(ImportError, match=r"tf.kitchen.table has two definitions"):
        namespace.install(house, [("kitchen.table", object()), ("kitchen.table", object())])


def test_the_same_definition_twice_is_one(house):
    namespace.install(house, [("table", 4), ("table", 4)])
    namespace.install(house, [("table", 4)])
    assert house.table == 4


def test_a_definition_is_no_namespace(house):
    with pytest.raises(ImportError, match=r"tf.kitchen is both a namespace and a definition"):
        namespace.install(house, [("kitchen", object()), ("kitchen.table", object())])


def test_a_definition_may_hide_a_module_but_nothing_else(house):
    house.kitchen = ModuleType("house.kitchen")
    namespace.install(house, [("kitchen", len)])
    assert house.kitchen is len
    house.cellar = 5
    with pytest.raises(ImportError, match=r"house.cellar is 5 already"):
        namespace.install(house, [("cellar", len)])


def test_existing_modules_become_namespaces(house):
    sys.modules["house.kitchen"] = kitchen = ModuleType("house.kitchen")
    namespace.install(house, [("kitchen.table", 4)])
    assert house.kitchen is kitchen
    assert kitchen.table == 4


def test_missing_names(house):
    namespace.install(house, [("kitchen.table", 4)])
    with pytest.raises(AttributeError) as error:
        _ = house.kitchen.tabel
    assert str(error.value) == "module 'house.kitchen' has no attribute 'tabel'. Did you mean 'table'?"
    with pytest.raises(AttributeError) as error:
        _ = house.kitchen.quartz
    assert str(error.value) == "module 'house.kitchen' has no attribute 'quartz'"
    with pytest.raises(AttributeError, match=r"module 'house' has no attribute 'kitchn'. Did you mean 'kitchen'?"):
        _ = house.kitchn
    assert not hasattr(house.kitchen, "__wrapped__")


def test_the_traceback_has_one_suggestion():
    program = "import tapeflow as tf; tf.nest.flaten"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: module 'tapeflow.nest' has no attribute 'flaten'. Did you mean 'flatten'?"
    )


def test_public_returns_what_it_is_given():
    assert namespace.public()(5) == 5


def test_namespaces_of_the_package():
    assert tf.nest.flatten is importlib.import_module("tapeflow.nest").flatten
    assert namespace.installed_namespaces()["nest"] is tf.nest
    assert namespace.installed_namespaces()[""] is tf
    from tapeflow.compat import v1

    assert v1 is tf.compat.v1


def test_functions_keep_or_show_their_public_name():
    assert tf.get_current_name_scope.__name__ == "get_current_name_scope"
    assert tf.nest.flatten.__module__ == "tapeflow._src.types.nest"
    for function in (tf.get_current_name_scope, tf.nest.flatten):
        assert pickle.loads(pickle.dumps(function)) is function


def test_missing_names_of_every_namespace():
    program = """
import tapeflow as tf
for module in (tf, tf.compat.v1, tf.math, tf.compat.v1.train):
    try:
        module.no_such_name
    except AttributeError as error:
        print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [
        f"module 'tapeflow{path}' has no attribute 'no_such_name'"
        for path in ("", ".compat.v1", ".math", ".compat.v1.train")
    ]


def test_the_first_tensorflow_is_imported_when_it_is_asked_for():
    program = """
import sys
import types
import weakref
import tapeflow as tf
assert "tapeflow._src.compat.v1.sessions.session" not in sys.modules
assert tf.compat.v1.metrics.accuracy and tf.compat.v1.Session and tf.queue.FIFOQueue and tf.Graph
assert "Session" in dir(tf.compat.v1)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    subprocess.run(
        [sys.executable, "-c", "from tapeflow.compat.v1 import *; Session, metrics, placeholder"], check=True
    )


@pytest.mark.parametrize("path", sorted(namespace.installed_namespaces()))
def test_dir_is_the_surface(path):
    """`dir` of a namespace: the names of the stored surface, those of definitions that are imported later included."""
    module = namespace.installed_namespaces()[path]
    below = f"{path}." if path else ""
    stored = {line.partition("(")[0].partition(" = ")[0] for line in SURFACE.read_text().splitlines()}
    expected = {line[len(below) :].partition(".")[0] for line in stored if line.startswith(below)}
    if not path:
        expected |= {"array_api", "keras", "losses", "metrics", "optimizers", "initializers"}
    if path == "compat":
        expected.add("v2")
    if path == "compat.v1":
        expected.add("keras")
    shown = {name for name in dir(module) if not (name.startswith("__") and name.endswith("__"))}
    assert shown == {name for name in expected if not (name.startswith("__") and name.endswith("__"))}


def test_public_functions_are_functions_to_programs_that_look():
    for function in (tf.nn.relu, tf.nn.softmax):
        assert inspect.isfunction(function) and function.__class__ is types.FunctionType
        assert not inspect.iscoroutinefunction(function)
        assert pickle.loads(pickle.dumps(function)) is function
    assert "features" in inspect.signature(tf.nn.relu).parameters


@pytest.mark.parametrize("path", ["compat.v1.placeholder", "keras.layers.Dense", "test.TestCase"])
def test_names_that_several_threads_ask_for_first(path):
    program = f"""
import sys, threading
import tapeflow as tf

sys.setswitchinterval(1e-6)
start, found = threading.Barrier(8), []

def ask():
    start.wait()
    found.append(tf.{path})

threads = [threading.Thread(target=ask) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len(set(found)))
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert found.stdout.split() == ["8", "1"], found.stderr


@pytest.mark.parametrize("function", [tf.sin, tf.raw_ops.Sin, tf.reduce_mean, tf.compat.v1.reduce_sum])
def test_functions_can_be_referred_to_weakly(function):
    names = weakref.WeakKeyDictionary({function: "name"})
    assert names[function] == "name"
    assert weakref.ref(function)() is function
