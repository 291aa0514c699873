"""`tf.train.ExponentialMovingAverage`: averages of variables over the steps of training."""

from __future__ import annotations

from typing import Any

from tapeflow import _core, primitives
from tapeflow.namespace import public
from tapeflow.ops.arrays import group
from tapeflow.ops.constants import zeros
from tapeflow.ops.conversion import cast, convert_to_tensor
from tapeflow.variables import Variable


@public("train.ExponentialMovingAverage", "compat.v1.train.ExponentialMovingAverage")
class ExponentialMovingAverage:
    """Keeps `average = decay * average + (1 - decay) * value` for variables; `num_updates` makes early decays smaller.

    >>> v = tf.Variable(1.0)
    >>> ema = tf.train.ExponentialMovingAverage(0.9)
    >>> ema.apply([v])
    >>> v.assign(2.0).numpy()
    2.0
    >>> ema.apply([v])
    >>> ema.average(v).numpy()
    1.1
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay, self._num_updates, self._zero_debias, self._name = decay, num_updates, zero_debias, name
        self._average_by_id: dict[int, tuple[Any, Variable]] = {}  # with the variable, whose identity stays its own
        self._steps_by_id: dict[int, Variable] = {}

    name = property(lambda self: self._name, doc="The name that the averages have in theirs.")

    def apply(self, var_list: Any = None) -> Any:
        """Makes the averages, if they are not there, and brings them up to date; in a graph, an operation that does."""
        if var_list is None:
            graph = _core.current_graph()
            if graph is None or not graph.takes_everything:
                raise ValueError("ExponentialMovingAverage.apply: var_list must be given, except in a graph of v1.")
            var_list = graph.get_collection("trainable_variables")
        for variable in var_list:
            if variable.dtype.name not in ("float16", "bfloat16", "float32", "float64"):
                raise TypeError(f"The variables must be half, float, or double: {variable.name}")
            if id(variable) not in self._average_by_id:
                self._average_by_id[id(variable)] = (variable, self._first(variable))
        updates = [self._updated(variable) for variable in var_list]
        graph = _core.current_graph()
        return group(*updates) if graph is not None and graph.takes_everything else None

    def _first(self, variable: Any) -> Variable:
        if not isinstance(variable, _core.Variable) and not _core.is_symbolic(variable):
            raise TypeError("ExponentialMovingAverage.apply: tensors have averages in graphs only; give variables")
        name = self.average_name(variable)
        if isinstance(variable, _core.Variable):
            return Variable(variable.initialized_value(), trainable=False, name=name)
        if not _core.is_symbolic(variable):
            raise TypeError(
                "ExponentialMovingAverage.apply: averages of tensors are made in graphs only; give variables"
            )
        if self._zero_debias:
            self._steps_by_id[id(variable)] = Variable(0.0, trainable=False, name=f"{name}/local_step")
        return Variable(zeros(variable.shape, variable.dtype), trainable=False, name=name)

    def _updated(self, variable: Any) -> Any:
        _, average = self._average_by_id[id(variable)]
        decay = convert_to_tensor(self._decay, "float32")
        if self._num_updates is not None:
            number = cast(self._num_updates, "float32")
            decay = primitives.Minimum(decay, (1.0 + number) / (10.0 + number))
        rate = cast(1.0 - decay, variable.dtype)
        value = convert_to_tensor(variable)
        steps = self._steps_by_id.get(id(variable))
        if steps is None:
            return average.assign_sub((average.read_value() - value) * rate)
        # The average of what was seen, as if nothing had been before: rates add up to one.
        count = steps.read_value() + 1.0
        share = cast((1.0 - decay) / (1.0 - primitives.Pow(decay, count)), variable.dtype)
        return group(average.assign_sub((average.read_value() - value) * share), steps.assign(count))

    def average(self, var: Any) -> Variable | None:
        """The average of a variable, or None."""
        found = self._average_by_id.get(id(var))
        return None if found is None else found[1]

    def average_name(self, var: Any) -> str:
        """The name of the average of a variable."""
        return f"{var.name.rpartition(':')[0] or var.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        """The variables by the names of their averages, to restore averages into them."""
        if moving_avg_variables is None:
            moving_avg_variables = [variable for variable, _ in self._average_by_id.values()]
        return {self.average_name(variable): variable for variable in moving_avg_variables}
