"""How every name reaches `tf.*`: definitions name their paths with `public`, `install` sets them; it defines none."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from tapeflow._src import _core
from tapeflow._src.advice import about_missing

Definition = TypeVar("Definition")

_definitions: list[tuple[str, object]] = []
_node_by_function: dict[str, Any] = {}
_composition_by_function: dict[FunctionType, Any] = {}
PACKAGE_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
SOURCE_FOLDER = os.path.join(PACKAGE_FOLDER, "_src", "")
_COMPOSITIONS = tuple(
    os.path.join(SOURCE_FOLDER, *place)
    for place in (
        ["ops", ""],
        ["io", ""],
        ["numpy", ""],
        ["compat", "raw_ops", ""],
        ["compat", "v1", "signatures", "image.py"],
    )
)
_module_by_path: dict[str, ModuleType] = {}


def public(*paths: str, node: Any = None) -> Callable[[Definition], Definition]:
    """Names the paths under `tf` at which the decorated function, class or constant is reached.

    `node` is what TensorFlow 1 calls the nodes of this function, if not by its name: a string, or the primitive that
    TensorFlow has for it.

    >>> @public("math.twice", "twice")
    ... def twice(x):
    ...     return 2 * x
    >>> twice(4)
    8
    """

    def register(definition: Definition) -> Definition:
        _definitions.extend((path, definition) for path in paths)
        if node is not None:
            _node_by_function[paths[0].rpartition(".")[2]] = node
        function: object = definition
        if type(function) is FunctionType:  # what looks like one is public already
            _show_public_name(function, paths[0])
        return definition

    return register


def node_of(function: str) -> Any:
    """What the definition of a public function says about its nodes: a string, a primitive or None.

    >>> node_of("sigmoid_cross_entropy_with_logits")
    'logistic_loss'
    """
    return _node_by_function.get(function)


def public_as(doc: str, *paths: str, node: Any = None) -> Callable[[Definition], Definition]:
    """As `public`, for a function that a factory makes: it gets the name of the first path and the docstring.

    >>> def power(n):
    ...     @public_as(f"`x` to the power {n}.", f"math.power_{n}")
    ...     def function(x):
    ...         return x**n
    ...
    ...     return function
    >>> power(3).__name__
    'power_3'
    """
    namespace, _, name = paths[0].rpartition(".")

    def register(function: Definition) -> Definition:
        assert isinstance(function, FunctionType)
        function.__name__ = function.__qualname__ = name
        function.__module__ = f"tapeflow.{namespace}" if namespace else "tapeflow"
        function.__doc__ = doc
        return public(*paths, node=node)(function)

    return register


_module_by_later_path: dict[str, str] = {}


def public_later(module: str, *paths: str) -> None:
    """Names paths whose definitions stand in a module that is slow to import: it is imported when one is asked for.

    >>> public_later("tapeflow._src.testing.test_case", "test.TestCase")
    """
    _module_by_later_path.update(dict.fromkeys(paths, module))


_package_by_prefix: dict[str, str] = {}


def definitions_later(prefix: str, package: str) -> None:
    """Names a package that defines names below `prefix`: it is imported when one that is not there yet is asked for.

    >>> definitions_later("compat.v1", "tapeflow._src.compat.v1.names")
    """
    _package_by_prefix[prefix] = package


def load_below(path: str) -> bool:
    """Imports the package that defines more names below or around `path`, if there is one that waits.

    A thread that asks while another one imports waits for it; what is imported may ask itself.
    """
    waiting = [p for p in list(_package_by_prefix) if path == p or path.startswith(f"{p}.")]
    if not waiting:
        return False
    with _loading:
        for prefix in waiting:
            if prefix in _being_loaded or prefix not in _package_by_prefix:
                continue
            _being_loaded.add(prefix)
            try:
                importlib.import_module(_package_by_prefix[prefix])
                _install_own_definitions(_module_by_path)
                del _package_by_prefix[prefix]
            finally:
                _being_loaded.discard(prefix)
    return True


_loading = RLock()
_being_loaded: set[str] = set()


Class = TypeVar("Class", bound=type)
_lazy_members: list[_LazyMember] = []


class _LazyMember:
    """A member of a class that a module imported on first use defines; it then takes the place of this one."""

    def __init__(self, cls: type, name: str, mixin: str) -> None:
        self._cls, self._name, self._mixin = cls, name, mixin

    def load(self) -> Any:
        """The member itself, set on the class."""
        module, _, mixin = self._mixin.rpartition(".")
        found = vars(getattr(importlib.import_module(module), mixin))[self._name]
        setattr(self._cls, self._name, found)
        return found

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        found = self.load()
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


def lazy_members(mixin: str, *names: str) -> Callable[[Class], Class]:
    """Decorates a class that has members of the class at the path `mixin`: its module is imported when one is used.

    >>> @lazy_members("fractions.Fraction", "limit_denominator")
    ... class Third:
    ...     numerator, denominator, _numerator, _denominator = 333, 1000, 333, 1000
    >>> Third().limit_denominator(10)
    Fraction(1, 3)
    """

    def decorate(cls: Class) -> Class:
        for name in names:
            member = _LazyMember(cls, name, mixin)
            _lazy_members.append(member)
            setattr(cls, name, member)
        return cls

    return decorate


_loader_by_path: dict[str, str] = {}


def package_later(path: str, loader: str) -> None:
    """Names a path at which a package of others stands: the module `loader` imports it when it is asked for.

    >>> package_later("keras", "tapeflow._src.compat.tensorflow.keras")
    """
    _loader_by_path[path] = loader


def load_later_definitions() -> None:
    """Imports the modules of all paths that wait, for tools that list the surface."""
    for prefix in [*_package_by_prefix]:
        load_below(prefix)
    for module in sorted({*_module_by_later_path.values()}):
        importlib.import_module(module)
    while _lazy_members:
        _lazy_members.pop().load()


def _later_definition(module: ModuleType, name: str) -> Any:
    path = f"{module.__name__}.{name}".partition(".")[2]
    waiting = _module_by_later_path.get(path)
    if waiting is None:
        loader = _loader_by_path.get(path)
        return None if loader is None else importlib.import_module(loader).load(path)
    importlib.import_module(waiting)
    return installed(registered_definitions()[path])


def _show_public_name(function: FunctionType, path: str) -> None:
    """Lets a function such as `abs_`, renamed to spare a builtin, print and pickle as the public `tapeflow.abs`."""
    namespace, _, name = path.rpartition(".")
    if function.__name__ != name and "<locals>" not in function.__qualname__:
        function.__name__ = function.__qualname__ = name
        function.__module__ = f"tapeflow.{namespace}" if namespace else "tapeflow"


def install(root: ModuleType, definitions: Iterable[tuple[str, object]] = ()) -> None:
    """Sets every public definition, and the given ones, on `root` and on the namespace modules below it.

    >>> from types import ModuleType
    >>> install(house := ModuleType("house"), [("kitchen.table", 4)])
    >>> house.kitchen.table
    4
    """
    modules = {"": root}
    _answer_missing_names(root)
    if root.__name__ != __name__.partition(".")[0]:
        _install_definitions(modules, definitions)
        return
    _install_own_definitions(modules, definitions)
    for path in _module_by_later_path:
        namespace = path.rpartition(".")[0]
        if namespace not in modules:
            _open_namespace(namespace, modules, {})
    _module_by_path.update(modules)


_installed_count = 0  # how many of `_definitions` have been set
_installed_paths: set[str] = set()
_waiting_definitions: list[tuple[str, object]] = []


def _install_own_definitions(modules: dict[str, ModuleType], more: Iterable[tuple[str, object]] = ()) -> None:
    global _installed_count
    count = len(_definitions)
    # A name whose module waits is set by that module, though the definition may stand in another one.
    known = [*_waiting_definitions, *_definitions[_installed_count:count]]
    _waiting_definitions[:] = [entry for entry in known if _waits(entry[0])]
    definitions = (*(entry for entry in known if not _waits(entry[0])), *more)
    _install_definitions(modules, definitions)
    _installed_paths.update(path for path, _ in definitions)
    _installed_count = count


def _waits(path: str) -> bool:
    module = _module_by_later_path.get(path)
    return module is not None and module not in sys.modules


def _install_definitions(modules: dict[str, ModuleType], definitions: Iterable[tuple[str, object]]) -> None:
    object_by_path: dict[str, object] = {}
    for path, definition in definitions:
        if object_by_path.setdefault(path, definition) is not definition:
            first, second = _describe(object_by_path[path]), _describe(definition)
            raise ImportError(f"tf.{path} has two definitions: {first} and {second}. Rename one of them.")
    for path, definition in object_by_path.items():
        namespace, _, name = path.rpartition(".")
        module = modules.get(namespace)
        if module is None:
            module = _open_namespace(namespace, modules, object_by_path)
        _set_name(module, name, installed(definition))


def installed(definition: object) -> Any:
    """What stands under the public name: the definition itself, or the callable that can trace a composition."""
    if type(definition) is not FunctionType or not definition.__code__.co_filename.startswith(_COMPOSITIONS):
        return definition
    composition = _composition_by_function.get(definition)
    if composition is None:
        composition = _composition_by_function[definition] = _core.Composition(definition)
    return composition


def find_public(path: str) -> Any:
    """The object at a public path.

    >>> find_public("math.sin")
    <tf.sin>
    """
    found: Any = _module_by_path[""]
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _public_path(function: object) -> str:
    return next(path for path, definition in _definitions if definition is function)


_core.register_objects({"find_public": find_public, "public_path": _public_path})


def registered_definitions() -> dict[str, object]:
    """What `public` has named so far, by path."""
    return dict(_definitions)


def installed_namespaces() -> dict[str, ModuleType]:
    """The namespace modules by path, as `{"math": <module 'tapeflow.math'>, ...}`; the empty path is the package."""
    return dict(_module_by_path)


_holders: list[ModuleType] = []


def hold_public_objects(module: ModuleType) -> None:
    """Says that a module beside the namespaces holds public objects under names of its own."""
    _holders.append(module)


def modules_with_public_objects() -> list[ModuleType]:
    """The namespaces, and the other modules that hold public objects."""
    return [*_module_by_path.values(), *_holders]


def missing_name(module: ModuleType, name: str) -> AttributeError:
    """The error for a name that `module` does not have, with the nearest name that it has.

    >>> from types import ModuleType
    >>> kitchen = ModuleType("kitchen")
    >>> kitchen.table = 4
    >>> missing_name(kitchen, "tabel").args[0]
    "module 'kitchen' has no attribute 'tabel'. Did you mean 'table'?"
    """
    message = f"module {module.__name__!r} has no attribute {name!r}"
    path = module.__name__.partition(".")[2]
    if (hint := about_missing(path, name)) is not None:
        message += f". {hint}"
    elif module is _module_by_path.get("") and not name.startswith("_") and _is_v1_name(name):
        message += (
            f". It is a name of TensorFlow 1: tf.compat.v1.{name}. A program that was written for TensorFlow 1 runs "
            "with `tapeflow run --v1`"
        )
    elif not name.startswith("_"):
        from difflib import get_close_matches  # a slow import that only a mistake pays for

        names = (known for known in vars(module) if not known.startswith("_"))
        nearest = get_close_matches(name, names, n=1)
        if nearest:
            message += f". Did you mean {nearest[0]!r}?"
    # With `name` given and `obj` not, the interpreter adds no second suggestion of its own to the traceback.
    return AttributeError(message, name=name)


def _open_namespace(path: str, modules: dict[str, ModuleType], object_by_path: dict[str, object]) -> ModuleType:
    """The module at `path`: one that exists (`tapeflow/_src/config.py` holds `tf.config`), else a new one."""
    if path in object_by_path:
        raise ImportError(f"tf.{path} is both a namespace and a definition: {_describe(object_by_path[path])}.")
    above, _, name = path.rpartition(".")
    parent = modules.get(above)
    if parent is None:
        parent = _open_namespace(above, modules, object_by_path)
    full_name = f"{modules[''].__name__}.{path}"
    module = sys.modules.get(full_name)
    if module is None:
        module = ModuleType(full_name, f"Public names of `tf.{path}`.")
        module.__package__ = full_name
        sys.modules[full_name] = module
    if not hasattr(module, "__path__"):
        module.__path__ = []  # a package without files: `import tensorflow.compat.v1` asks each parent for a path
    modules[path] = module
    _answer_missing_names(module)
    setattr(parent, name, module)
    return module


def _set_name(module: ModuleType, name: str, definition: object) -> None:
    """Sets one name; it may hide a submodule (`tf.function` hides the folder `function`), but nothing else."""
    present = vars(module).get(name, definition)
    if present is not definition and not isinstance(present, ModuleType):
        raise ImportError(f"{module.__name__}.{name} is {_describe(present)} already, and {_describe(definition)} too.")
    setattr(module, name, definition)


def public_names(module: ModuleType) -> list[str]:
    """What `dir` shows of a namespace: its public names, those of definitions that are imported later included.

    >>> public_names(tf.autodiff)
    ['ForwardAccumulator']
    """
    path = module.__name__.partition(".")[2]
    load_below(path)
    below = f"{path}." if path else ""
    loaded = (path for path, loader in _loader_by_path.items() if _is_there(loader))
    paths = (*_installed_paths, *_module_by_path, *_module_by_later_path, *loaded)
    return sorted({p[len(below) :].partition(".")[0] for p in paths if p.startswith(below)} - {""})


def _is_there(loader: str) -> bool:
    """Whether the package is installed that the module `loader` imports."""
    return bool(importlib.import_module(loader).is_installed())


def _answer_missing_names(module: ModuleType) -> None:
    if "__getattr__" not in vars(module):

        def names() -> list[str]:
            return sorted({*public_names(module), *(name for name in vars(module) if name.startswith("__"))})

        vars(module)["__dir__"] = names

        def answer(name: str) -> Any:
            found = _later_definition(module, name)
            is_name = name == "__all__" or not name.startswith("__")
            if found is None and is_name and load_below(module.__name__.partition(".")[2]):
                found = vars(module).get(name)
            if found is None:
                found = _definition_of_today(module, name)
                if found is None:
                    raise missing_name(module, name)
            setattr(module, name, found)
            return found

        vars(module)["__getattr__"] = answer


_V1 = ".compat.v1"
path_by_v1_path: dict[str, str] = {}  # names of `tf.compat.v1` that have another path now: {"log": "math.log"}


def _definition_of_today(module: ModuleType, name: str) -> Any:
    """What `tf.compat.v1.math.sin` means where it has no definition of its own: `tf.math.sin`."""
    _, v1, below = module.__name__.partition(_V1)
    if not v1 or name.startswith("__"):
        return None
    path = f"{below[1:]}.{name}" if below else name
    found: Any = _module_by_path.get("")
    for part in path_by_v1_path.get(path, path).split("."):
        found = getattr(found, part, None)
    return found


def _is_v1_name(name: str) -> bool:
    """Whether TensorFlow 1 had `tf.name`."""
    v1 = _V1[1:]
    load_below(v1)
    return name in vars(_module_by_path[v1]) or name in path_by_v1_path


def _describe(definition: object) -> str:
    place = getattr(definition, "__module__", None)
    return f"{definition!r} of {place}" if isinstance(place, str) else repr(definition)
