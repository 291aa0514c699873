"""`tf.Module`, which finds the variables of an object tree, and `tf.name_scope`, which names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from threading import local
from typing import Any, TypeVar

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.types import nest_paths
from tapeflow._src.types.trackable import HELD, AutoTrackable, NoDependency

Method = TypeVar("Method", bound=Callable[..., Any])


class _NameScopes(local):
    """The scope in which a thread is: empty, or a path that ends with a slash."""

    prefix = ""


_scopes = _NameScopes()


@public("name_scope")
class name_scope:  # noqa: N801  TensorFlow's name for it
    """A context in which the names of new variables begin with `name`; scopes nest.

    A `name` that ends with a slash is a whole path by itself, and the empty name leaves all scopes.

    >>> with tf.name_scope("layer") as path:
    ...     path
    'layer/'
    """

    __slots__ = ("_name", "_outer")

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._outer: list[Any] = []

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    def __enter__(self) -> str:
        graph = _core.current_graph()
        if graph is not None and graph.graph_mode:
            self._outer.append((graph, graph.scope))
            return str(graph.enter_name_scope(self._name))
        outer, name = _scopes.prefix, self._name
        self._outer.append(outer)
        _scopes.prefix = prefix = name if not name or name[-1] == "/" else f"{outer}{name}/"
        if graph is not None:
            _mark_scope(graph, name)
        return prefix

    def __exit__(self, *exception: object) -> None:
        outer = self._outer.pop()
        if isinstance(outer, tuple):
            graph, scope = outer
            graph.scope = scope
            return
        _scopes.prefix = outer
        graph = _core.current_graph()
        if graph is not None and not graph.graph_mode:
            _leave_mark(graph)


def _mark_scope(graph: Any, name: str) -> None:
    """Records in the graph of a function that the nodes from here on are in a scope; their names are made on demand."""
    open_scopes = graph.__dict__.setdefault("open_scopes", [""])
    inner = name if not name or name[-1] == "/" else _core.Graph.unique_name(graph, open_scopes[-1] + name) + "/"
    open_scopes.append(inner)
    graph.__dict__.setdefault("scope_marks", []).append((graph.node_count, inner))


def _leave_mark(graph: Any) -> None:
    open_scopes = graph.__dict__.get("open_scopes", ())
    if len(open_scopes) > 1:
        open_scopes.pop()
        graph.scope_marks.append((graph.node_count, open_scopes[-1]))


@public("get_current_name_scope", "__internal__.get_name_scope")
def current_name_scope() -> str:
    """The path of the scope that surrounds the caller, without a slash at its end.

    >>> with tf.name_scope("a"), tf.name_scope("b"):
    ...     tf.get_current_name_scope()
    'a/b'
    """
    return variable_name_prefix().rstrip("/")


def variable_name_prefix() -> str:
    """What the name of a new variable begins with: empty, or the path of the scope and a slash."""
    graph = _core.current_graph()
    return graph.scope if graph is not None and graph.graph_mode else _scopes.prefix


_PLAIN = (str, bytes, int, float, complex, type(None), type)  # values that hold nothing to save


@public("Module")
class Module(AutoTrackable):
    """An object whose attributes hold variables and other modules, directly or in lists, tuples and dictionaries.

    >>> class Layer(tf.Module):
    ...     pass
    >>> Layer().name
    'layer'
    """

    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset([HELD])

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _snake_case(type(self).__name__)
        if not (name.isascii() and name.isidentifier()):
            raise ValueError(
                f"{name!r} is not a valid module name. "
                "Module names must be valid Python identifiers (e.g. a valid class name)."
            )
        self._name = name
        with name_scope(name) as path:
            self._name_scope = name_scope(path)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is NoDependency:
            self.__dict__.get(HELD, {}).pop(name, None)
            object.__setattr__(self, name, value.value)
            return
        object.__setattr__(self, name, value)
        held = self.__dict__.get(HELD)
        if isinstance(value, _PLAIN) or not self.__dict__.get("_self_setattr_tracking", True):
            if held is not None:
                held.pop(name, None)
            return
        if held is None:
            held = self.__dict__[HELD] = {}
        held[name] = value
        restoration = self.__dict__.get("_restoration")
        if restoration is not None:  # a checkpoint holds values for what comes later
            restoration.attribute_set(self, name, value)

    @property
    def name(self) -> str:
        """The name that was given, or that of the class in snake case."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """The scope of this module, to be entered with `with`."""
        return self._name_scope

    @property
    def variables(self) -> tuple[Any, ...]:
        """All variables of this module and of its submodules, each once, those of the module itself first."""
        return tuple(self._flatten(predicate=_is_variable, expand_composites=True))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that training changes."""
        return tuple(self._flatten(predicate=_is_trainable, expand_composites=True))

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables that training leaves alone."""
        return tuple(self._flatten(predicate=_is_not_trainable, expand_composites=True))

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules below this one, each once."""
        return tuple(self._flatten(predicate=_is_module))

    def _flatten(
        self,
        recursive: bool = True,
        predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None,
        with_path: bool = False,
        expand_composites: bool = False,
    ) -> Iterator[Any]:
        """The values among the attributes for which `predicate` holds, with their paths if asked for.

        Attributes come in alphabetical order; those of submodules follow after the module's own. Without paths each
        value comes once; with paths, once for each path that leads to it.
        """
        traversal = _Traversal(recursive, predicate, attribute_traversal_key, with_path, expand_composites)
        return traversal.visit(self, ())

    @classmethod
    def with_name_scope(cls, method: Method) -> Method:
        """Decorates a method so that it runs in the name scope of its module."""

        @wraps(method)
        def method_in_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return method_in_scope  # type: ignore[return-value]


class _Traversal:
    """One pass over a module; `seen` keeps the values met so far, `inside` the modules on the present path."""

    def __init__(
        self,
        recursive: bool,
        predicate: Callable[[Any], bool] | None,
        attribute_traversal_key: Callable[[str], Any] | None,
        with_path: bool,
        expand_composites: bool,
    ) -> None:
        self.recursive = recursive
        self.predicate = predicate
        self.attribute_traversal_key = attribute_traversal_key
        self.with_path = with_path
        self.expand_composites = expand_composites
        self.seen: set[int] = set()
        self.inside: list[int] = []

    def visit(self, module: Module, path: nest_paths.Path) -> Iterator[Any]:
        if not path:
            self.seen.add(id(module))
        submodules = []
        for leaf_path, leaf in self._leaves(module, path):
            if not self.with_path:
                if id(leaf) in self.seen:
                    continue
                self.seen.add(id(leaf))
            if self.predicate is None or self.predicate(leaf):
                yield (leaf_path, leaf) if self.with_path else leaf
            if self.recursive and isinstance(leaf, Module):
                submodules.append((leaf_path, leaf))
        for leaf_path, submodule in submodules:
            if id(submodule) not in self.inside:
                self.inside.append(id(submodule))
                yield from self.visit(submodule, leaf_path)
                self.inside.pop()

    def _leaves(self, module: Module, path: nest_paths.Path) -> Iterator[tuple[nest_paths.Path, Any]]:
        attributes = vars(module)
        for name in sorted(attributes, key=self.attribute_traversal_key):
            if name in module._TF_MODULE_IGNORED_PROPERTIES:
                continue
            try:
                leaves = nest_paths.flatten_with_tuple_paths(attributes[name], self.expand_composites)
            except Exception as error:
                raise ValueError(f"Error processing property {name!r} of {attributes[name]!r}") from error
            for leaf_path, leaf in leaves:
                yield (*path, name, *leaf_path), leaf


def _is_variable(value: Any) -> bool:
    return isinstance(value, _core.Variable)


def _is_trainable(value: Any) -> bool:
    return isinstance(value, _core.Variable) and value.trainable


def _is_not_trainable(value: Any) -> bool:
    return isinstance(value, _core.Variable) and not value.trainable


def _is_module(value: Any) -> bool:
    return isinstance(value, Module)


def _snake_case(name: str) -> str:
    """`ResNet2D` becomes `res_net2_d`, and `HTTPServer` becomes `http_server`."""
    words = name[:1]
    for i in range(1, len(name)):
        begins_word = name[i].isupper() and (
            name[i - 1].islower() or name[i - 1].isdigit() or name[i + 1 : i + 2].islower()
        )
        words += f"_{name[i]}" if begins_word else name[i]
    return words.lower()
