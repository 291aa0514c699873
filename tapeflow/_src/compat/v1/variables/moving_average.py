"""`tf.train.ExponentialMovingAverage`: variables that follow others slowly."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.eager_switch import name_scope
from tapeflow._src.compat.v1.variables.variable_scope import beside_the_model
from tapeflow._src.compat.v1.variables.variables import moving_average_variables, trainable_variables
from tapeflow._src.function.trace import init_scope
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros, zeros_like
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import group
from tapeflow._src.variables import Variable, session_graph


@public("train.ExponentialMovingAverage", "compat.v1.train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """Averages of variables that forget: each `apply` moves an average by (1 - decay) of its distance to the variable.

    >>> v = tf.Variable(1.)
    >>> average = tf.train.ExponentialMovingAverage(0.9)
    >>> average.apply([v])
    >>> v.assign(2.)
    <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=2.0>
    >>> average.apply([v])
    >>> average.average(v)
    <tf.Variable 'Variable/ExponentialMovingAverage:0' shape=() dtype=float32, numpy=1.100000023841858>
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._average_by_name: dict[Any, Any] = {}
        self._count_by_name: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    def _current_decay(self, dtype: Any) -> Any:
        decay = cast(self._decay, dtype)
        if self._num_updates is None:
            return decay
        count = cast(self._num_updates, dtype)
        return primitives.Minimum(decay, (1.0 + count) / (10.0 + count))

    def apply(self, var_list: Any = None) -> Any:
        """Moves the averages of the variables, or begins them; in a graph, the operation that does."""
        variables = list(trainable_variables() if var_list is None else var_list)
        updates = []
        with name_scope(self._name) if session_graph() is not None else nullcontext():
            for variable in variables:
                updates.extend(self._moved(variable))
        return None if _core.current_graph() is None else group(*updates)

    def _moved(self, variable: Any) -> list[Any]:
        """The changes of the average of a variable, which begins if there is none."""
        dtype = variable.dtype.base_dtype
        if not dtype.is_floating:
            raise TypeError(f"The variables must be half, float, or double: {variable}")
        key = self._key(variable)
        if key not in self._average_by_name:
            self._begin(key, variable)
        average = self._average_by_name[key]
        rate = 1.0 - self._current_decay(dtype)
        value = convert_to_tensor(variable)
        if key in self._count_by_name:
            return self._debiased(key, average, value, rate)
        return [average.assign_sub((average - value) * rate)]

    @staticmethod
    def _key(variable: Any) -> Any:
        return variable.ref() if hasattr(variable, "ref") else id(variable)

    def _begin(self, key: Any, variable: Any) -> None:
        own = isinstance(variable, _core.Variable)
        name = f"{self._base_name(variable)}/{self._name}"
        graph = session_graph()
        with init_scope():
            start = variable.initial_value if own and graph is not None else variable
            start = convert_to_tensor(start) if own else _zeros_like(variable)
            if own and graph is not None:
                graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, variable)
            with beside_the_model():
                self._average_by_name[key] = Variable(start, trainable=False, name=name)
            if not own and self._zero_debias:
                self._count_by_name[key] = (
                    Variable(zeros_like(start), trainable=False, name=f"{name}/biased"),
                    Variable(convert_to_tensor(0.0, variable.dtype), trainable=False, name=f"{name}/local_step"),
                )

    def _debiased(self, key: Any, average: Any, value: Any, rate: Any) -> list[Any]:
        """An average that began at zero, divided by the weight that the values have so far."""
        biased, count = self._count_by_name[key]
        new = biased - (biased - value) * rate
        steps = count + 1.0
        settled = new / (1.0 - primitives.Pow(1.0 - rate, steps))
        return [biased.assign(new), count.assign(steps), average.assign(settled)]

    def average(self, var: Any) -> Any:
        """The average of a variable, or None if there is none."""
        return self._average_by_name.get(self._key(var))

    def average_name(self, var: Any) -> str:
        """The name that the average of a variable has."""
        found = self.average(var)
        return f"{self._base_name(var)}/{self._name}" if found is None else found.name.partition(":")[0]

    @staticmethod
    def _base_name(variable: Any) -> str:
        return str(getattr(variable, "name", None) or "Variable").partition(":")[0]

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """Variables by the name under which a checkpoint holds them: their average's, where there is one."""
        if moving_avg_variables is None:
            moving_avg_variables = [*trainable_variables(), *moving_average_variables()]
        averaged = {self.average_name(v): v for v in moving_avg_variables}
        graph = _core.current_graph()
        others = [] if graph is None else graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        left_out = {id(v) for v in moving_avg_variables}
        return {self._base_name(v): v for v in others if id(v) not in left_out} | averaged


def _zeros_like(tensor: Any) -> Any:
    """Zeros that do not depend on the tensor, if its shape is known."""
    return zeros(tensor.shape, tensor.dtype) if tensor.shape.is_fully_defined() else zeros_like(tensor)
