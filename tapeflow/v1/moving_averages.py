"""`tf.train.ExponentialMovingAverage`: a shadow of each variable that follows it slowly."""

from __future__ import annotations

from typing import Any

from tapeflow import _core
from tapeflow.namespace import find_public, public
from tapeflow.types.dtypes import float32
from tapeflow.v1.collections import GraphKeys
from tapeflow.v1.variable_scope import get_variable
from tapeflow.v1.variables import moving_average_variables, trainable_variables
from tapeflow.variables import Variable


@public("train.ExponentialMovingAverage", "compat.v1.train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """Shadows of variables: each `apply` makes `shadow = decay * shadow + (1 - decay) * variable`.

    >>> v = tf.Variable(1.)
    >>> averages = tf.train.ExponentialMovingAverage(decay=0.5)
    >>> averages.apply([v])
    >>> v.assign(3.).numpy(), averages.apply([v]), averages.average(v).numpy()
    (3.0, None, 2.0)
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        if zero_debias:
            raise NotImplementedError("ExponentialMovingAverage: zero_debias is not available")
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._shadow_by_id: dict[int, tuple[Any, Any]] = {}

    name = property(lambda self: self._name)

    def apply(self, var_list: Any = None) -> Any:
        """Moves the shadows; makes those that are missing, with the values the variables have now."""
        variables = trainable_variables() if var_list is None else list(var_list)
        fresh = [v for v in variables if id(v) not in self._shadow_by_id]
        for variable in fresh:
            if not variable.dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {variable.name}")
            self._shadow_by_id[id(variable)] = (variable, self._make_shadow(variable))
        decay = self._current_decay()
        in_graph = _core.current_graph() is not None
        updates = []
        for variable in variables:
            shadow = self.average(variable)
            if in_graph or variable not in fresh:
                step = (shadow.read_value() - variable.read_value()) * find_public("cast")(1.0 - decay, shadow.dtype)
                updates.append(shadow.assign_sub(step))
        return find_public("group")(*updates, name=self._name) if in_graph else None

    def _make_shadow(self, variable: Any) -> Any:
        name = self.average_name(variable)
        graph = _core.current_graph()
        if graph is None or not graph.takes_everything:
            return Variable(variable.read_value(), trainable=False, name=name)
        keys = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES]
        graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, variable)
        with graph.name_scope(None):
            first = variable.initialized_value()
            return get_variable(name, initializer=first, trainable=False, collections=keys[:1])

    def _current_decay(self) -> Any:
        if self._num_updates is None:
            return self._decay
        count = find_public("cast")(self._num_updates, float32)
        return find_public("minimum")(find_public("cast")(self._decay, float32), (1.0 + count) / (10.0 + count))

    def average(self, var: Any) -> Any:
        """The shadow of a variable, or None."""
        found = self._shadow_by_id.get(id(var))
        return None if found is None else found[1]

    def average_name(self, var: Any) -> str:
        """The name of a variable's shadow."""
        return f"{var.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """Which variable gets which value of a checkpoint, so that variables begin with their shadows."""
        shadowed = list(moving_avg_variables or [*trainable_variables(), *moving_average_variables()])
        known = {self.average_name(v): v for v in shadowed}
        graph = _core.current_graph()
        taken = {id(v) for v in shadowed}
        others = [] if graph is None else graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        shadows = {id(shadow) for _, shadow in self._shadow_by_id.values()}
        return known | {v.name.removesuffix(":0"): v for v in others if id(v) not in taken | shadows}
