"""`tf.make_template`: a function whose variables are made by its first call and used again by later ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.eager_switch import executing_eagerly
from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.compat.v1.variables.variable_store import EagerVariableStore
from tapeflow._src.namespace import public
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import session_graph


class Template(Trackable):
    """A function with variables of its own, which a checkpoint saves by their names below its scope."""

    def __init__(
        self, name: str, function: Callable[..., Any], unique_name: str | None, custom_getter: Any, create_now: bool
    ) -> None:
        self._name, self._function, self._unique_name = name, function, unique_name
        self._custom_getter, self._called = custom_getter, False
        self._globals: list[Any] = []
        self._locals: list[Any] = []
        self._scope: Any = None
        self._store = EagerVariableStore() if executing_eagerly() else None  # a graph keeps its variables itself
        if create_now:
            with self._opened():
                pass

    def _opened(self) -> Any:
        """The scope of the variables: a new one at first, later the same."""
        if self._scope is not None:
            return variable_scope(self._scope, reuse=self._called)
        opened = variable_scope(self._unique_name, default_name=self._name, custom_getter=self._get)
        return _kept(self, opened)

    def _get(self, getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        """A variable that the function asks for, as the custom getter gives it."""

        def recorded(name: str, *args: Any, **kwargs: Any) -> Any:
            variable = getter(name, *args, **kwargs)
            is_local = GraphKeys.LOCAL_VARIABLES in (kwargs.get("collections") or ())
            known = self._locals if is_local else self._globals
            if not any(variable is other for other in known):
                known.append(variable)
                self._track_trackable(variable, name.removeprefix(self.variable_scope_name or ""), overwrite=True)
            return variable

        if self._custom_getter is not None:
            return self._custom_getter(recorded, name, *args, **kwargs)
        return recorded(name, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = self._trainable_variables()
        with self._store.as_default() if self._store else nullcontext(), self._opened():
            result = self._function(*args, **kwargs)
        if self._called and len(self._trainable_variables()) > len(before):
            raise ValueError(
                "Trainable variable created when calling a template after the first time, perhaps you used "
                f"tf.Variable when you meant tf.get_variable: {self._trainable_variables()}"
            )
        self._called = True
        return result

    def _trainable_variables(self) -> list[Any]:
        """Those of the graph that is being built; eagerly, of the template."""
        graph = session_graph()
        if graph is not None:
            return list(graph.get_collection(GraphKeys.TRAINABLE_VARIABLES))
        return self._store.trainable_variables() if self._store else []

    func = property(lambda self: self._function)
    variable_scope = var_scope = property(lambda self: self._scope)
    name = property(lambda self: self._name if self._scope is None else self._scope.name.rpartition("/")[2])

    @property
    def variable_scope_name(self) -> str | None:
        """The beginning of the variables' names; None before the first call."""
        name = None if self._scope is None else self._scope.name
        return f"{name}/" if name and not name.endswith("/") else name

    variables = weights = property(lambda self: [*self._globals, *self._locals])
    global_variables = property(lambda self: list(self._globals))
    local_variables = property(lambda self: list(self._locals))
    trainable_variables = trainable_weights = property(lambda self: [v for v in self._globals if v.trainable])
    non_trainable_variables = non_trainable_weights = property(
        lambda self: [v for v in self.variables if not (v.trainable and any(v is g for g in self._globals))]
    )


@contextmanager
def _kept(template: Template, opened: Any) -> Iterator[None]:
    """Opens the first scope of a template, which keeps it."""
    with opened as scope:
        template._scope = scope
        yield


@public("compat.v1.make_template")
def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """The function, which makes variables when it is called first and then uses them again.

    >>> def scale(x):
    ...     return x * tf.compat.v1.get_variable("w", initializer=2.)
    >>> with tf.Graph().as_default():
    ...     template = tf.compat.v1.make_template("scale", scale)
    ...     results = [template(1.), template(2.)]
    ...     [v.name for v in tf.compat.v1.global_variables()]
    ['scale/w:0']
    """
    if name_ is None:
        raise ValueError("make_template: name cannot be None.")
    if unique_name_ is not None and executing_eagerly():
        raise ValueError("unique_name_ cannot be used when eager execution is enabled.")
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, unique_name_, custom_getter_, create_scope_now_)
