"""`tf.make_template`: a function whose variables are made by its first call and used again by later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.v1.variables.variable_scope import variable_scope
from tapeflow._src.namespace import public


class Template:
    """A function with variables of its own."""

    def __init__(
        self, name: str, function: Callable[..., Any], unique_name: str | None, arguments: dict[str, Any]
    ) -> None:
        self._name, self._function, self._unique_name, self._arguments = name, function, unique_name, arguments
        self._scope: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._scope is None:
            with variable_scope(self._unique_name, default_name=self._name) as scope:
                result = self._function(*args, **self._arguments, **kwargs)
                self._scope = scope
                return result
        with variable_scope(self._scope, reuse=True):
            return self._function(*args, **self._arguments, **kwargs)

    variable_scope = property(lambda self: self._scope)
    name = property(lambda self: self._name if self._scope is None else self._scope.name)
    var_scope = property(lambda self: self._scope)
    variables = property(lambda self: [] if self._scope is None else self._scope.global_variables())
    trainable_variables = property(lambda self: [] if self._scope is None else self._scope.trainable_variables())


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
    return Template(name_, func_, unique_name_, kwargs)
