"""`tf.compat.v1.train.Optimizer`: from a loss to gradients, from gradients to new values; in graphs and eagerly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.autodiff.graph_gradients import gradients
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.variables.variable_scope import beside_the_model
from tapeflow._src.compat.v1.variables.variables import VariableV1, trainable_variables
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.distribute.context import ReduceOp, get_replica_context, has_strategy, updating
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.indexed_slices import IndexedSlices

Values = dict[str, Any]


@public("compat.v1.train.Optimizer")
class Optimizer:
    """Changes variables so that a loss becomes smaller. A subclass gives the slots and the formula.

    >>> v = tf.Variable(1.)
    >>> tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(lambda: v ** 2)
    >>> v.numpy()
    np.float32(0.8)
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    slots: Mapping[str, float] = MappingProxyType({})  # what is kept for each variable, and with which value it begins

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._name, self._use_locking = name, use_locking
        self._slot_by_key: dict[tuple[str, int], Any] = {}
        self._kept: list[Any] = []  # the variables with slots: their identities stay theirs

    def get_name(self) -> str:
        """The name that was given."""
        return self._name

    # ---- gradients

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """One step downhill: in a graph the operation that takes it; eagerly `loss` is a function."""
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if all(dx is None for dx, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support gradients, "
                f"between variables {[str(v) for _, v in pairs]} and loss {loss}."
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Any]]:
        """The gradient of the loss by each variable, as pairs (gradient or None, variable)."""
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH.  "
                f"Not {gate_gradients}"
            )
        if callable(loss):
            return self._gradients_of_function(loss, var_list, grad_loss)
        if _core.current_graph() is None:
            raise RuntimeError(
                "`loss` passed to Optimizer.compute_gradients should be a function when eager execution is enabled."
            )
        variables = trainable_variables() if var_list is None else _listed(var_list)
        if not variables:
            raise ValueError("No variables to optimize.")
        if _core.is_tensor(loss) and not loss.dtype.is_floating:
            wanted = "[tf.float32, tf.float64, tf.float16, tf.bfloat16]"
            raise ValueError(f"Invalid type {loss.dtype!r} for {loss.name}, expected: {wanted}.")
        found = gradients(loss, variables, None if grad_loss is None else [grad_loss], stop_gradients=None)
        return list(zip(found, variables))

    def _gradients_of_function(self, loss: Any, var_list: Any, grad_loss: Any) -> list[tuple[Any, Any]]:
        with GradientTape() as tape:
            if var_list is not None:
                tape.watch(_listed(var_list))
            value = loss()
        variables = list(tape.watched_variables()) if var_list is None else _listed(var_list)
        return list(zip(tape.gradient(value, variables, grad_loss), variables))

    # ---- updates

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Any = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Any:
        """Changes the variables by their gradients and adds one to `global_step`; in a graph, the operation for it."""
        pairs = list(grads_and_vars)
        if observers.apply_gradients is not None:
            observers.apply_gradients(self, pairs)
        if not pairs:
            raise ValueError("No variables provided.")
        wanted = [(dx, variable) for dx, variable in pairs if dx is not None]
        if not wanted:
            raise ValueError(f"No gradients provided for any variable: {[v.name for _, v in pairs]}.")
        for dx, _ in wanted:
            if not _core.is_tensor(dx) and not isinstance(dx, IndexedSlices):
                raise TypeError(f"Gradient must be a Tensor, IndexedSlices, or None: {dx}")
        if has_strategy():
            replica = get_replica_context()
            if replica is None:
                raise RuntimeError(
                    "Use `_distributed_apply()` instead of `apply_gradients()` in a cross-replica context."
                )
            if replica.num_replicas_in_sync > 1:
                return replica.merge_call(self._distributed_apply, args=(wanted, global_step, name))
        for _, variable in wanted:
            if isinstance(variable, _core.Tensor):
                raise NotImplementedError(f"Trying to update a Tensor {variable!r}; variables can be updated")
        return self._apply_pairs(wanted, global_step, name, [nullcontext()])

    def _distributed_apply(
        self, distribution: Any, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        """Adds the gradients of all replicas, and changes the variables in each replica of this process by the sums."""
        sums = distribution._reduce(ReduceOp.SUM, [dx for dx, _ in grads_and_vars], None)
        pairs = [(dx, variable) for dx, (_, variable) in zip(sums, grads_and_vars)]
        places = [distribution._at_replica(number) for number in range(distribution._replicas_here)]
        with updating():
            return self._apply_pairs(pairs, global_step, name, places)

    def _apply_pairs(self, pairs: list[tuple[Any, Any]], global_step: Any, name: str | None, places: list[Any]) -> Any:
        """Changes the variables in each of some places, which are blocks."""
        graph = _core.current_graph()
        in_graph = graph is not None and graph.graph_mode
        self._create_slots([variable for _, variable in pairs])
        updates = []
        scope: Any = graph.name_scope(name or self._name) if in_graph else nullcontext()
        with scope as path:
            for place in places:
                with place:
                    updates += self._updates(pairs, global_step, path)
        if not in_graph:
            return None
        operation = graph.add_group(updates, path[:-1], exact=True)
        graph.add_to_collection(GraphKeys.TRAIN_OP, operation)
        return operation

    def _updates(self, pairs: list[tuple[Any, Any]], global_step: Any, path: Any) -> list[Any]:
        self._prepare()
        updates = [self._own_update(dx, variable) or self._apply(dx, variable) for dx, variable in pairs]
        updates += self._last_updates()
        if path is not None and hasattr(self, "_finish"):
            updates = [self._finish(updates, path)]
        if global_step is not None:
            updates.append(global_step.assign_add(cast(1, global_step.dtype)))
        return updates

    def _prepare(self) -> None:
        """What has to be computed once for all variables."""

    def _last_updates(self) -> list[Any]:
        """Updates that belong to no single variable."""
        return []

    def _formula(self, value: Any, dy: Any, slots: Values) -> tuple[Any, Values]:
        """The new value and the new slots, element by element."""
        raise NotImplementedError

    def _apply(self, dx: Any, variable: Any) -> list[Any]:
        if isinstance(dx, IndexedSlices):
            return self._apply_rows(dx, variable)
        slots = {name: self.get_slot(variable, name) for name in self._slot_names()}
        value, new = self._formula(variable.read_value(), dx, {k: s.read_value() for k, s in slots.items()})
        updates = [slots[name].assign(new[name]) for name in slots]
        return [*updates, variable.assign(self._constrained(variable, value))]

    def _apply_rows(self, dx: IndexedSlices, variable: Any) -> list[Any]:
        """The formula for the rows that the gradient has; the others stay as they are, slots included."""
        dy, updated = summed_rows(dx, variable)
        slots = {name: self.get_slot(variable, name) for name in self._slot_names()}
        old = {name: slot.read_value() for name, slot in slots.items()}
        before = variable.read_value()
        value, new = self._formula(before, dy, old)
        updates = [slots[name].assign(primitives.SelectV2(updated, new[name], old[name])) for name in slots]
        return [*updates, variable.assign(primitives.SelectV2(updated, value, before))]

    @staticmethod
    def _constrained(variable: Any, value: Any) -> Any:
        return value if variable.constraint is None else variable.constraint(value)

    @staticmethod
    def _as(number: Any, dtype: Any) -> Any:
        """A setting, which may be a number, a tensor or a function, as a tensor."""
        return cast(convert_to_tensor(number() if callable(number) else number), dtype)

    # ---- what a program's own optimizer may define, as TensorFlow's optimizers do, and call

    def _own_update(self, dx: Any, variable: Any) -> list[Any] | None:
        """The update by `_apply_dense`, `_apply_sparse` or a resource variant; None if the class has none of them."""
        rows = isinstance(dx, IndexedSlices)
        for name in ("_apply_sparse", "_resource_apply_sparse") if rows else ("_apply_dense", "_resource_apply_dense"):
            method = getattr(self, name, None)
            if method is not None:
                return [
                    method(dx.values, variable, dx.indices)
                    if name == "_resource_apply_sparse"
                    else method(dx, variable)
                ]
        if rows and (hasattr(self, "_apply_dense") or hasattr(self, "_resource_apply_dense")):
            return self._own_update(convert_to_tensor(dx), variable)
        return None

    @staticmethod
    def _call_if_callable(param: Any) -> Any:
        return param() if callable(param) else param

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        key = (slot_name, _key(var))
        if key not in self._slot_by_key:
            with beside_the_model():
                path = f"{_plain_name(var)}/{op_name}"
                self._slot_by_key[key] = VariableV1(val, trainable=False, name=path)
            self._kept.append(var)
        return self._slot_by_key[key]

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self._get_or_make_slot(var, self._filled(0.0, var), slot_name, op_name)

    # ---- slots

    @staticmethod
    def _filled(number: Any, variable: Any) -> Any:
        return lambda: primitives.BroadcastTo(cast(number, variable.dtype), variable.shape.as_list())

    def _slot_names(self) -> list[str]:
        return list(self.slots)

    def _first_slot_value(self, name: str, variable: Any) -> Any:
        return self._filled(self.slots[name], variable)

    def _create_slots(self, variables: list[Any]) -> None:
        for variable in variables:
            for name in self._slot_names():
                self._get_or_make_slot(variable, self._first_slot_value(name, variable), name, self._name)

    def get_slot(self, var: Any, name: str) -> Any:
        """What is kept under this name for a variable, or None."""
        return self._slot_by_key.get((name, _key(var)))

    def get_slot_names(self) -> list[str]:
        """The names of what is kept for each variable."""
        return sorted({name for name, _ in self._slot_by_key})

    def variables(self) -> list[Any]:
        """The variables of the optimizer itself."""
        return list(self._slot_by_key.values())


def summed_rows(dx: IndexedSlices, variable: Any) -> tuple[Any, Any]:
    """A sparse gradient as a dense one, and which rows it has, in a shape that broadcasts with it."""
    rows = variable.shape[0]
    indices = primitives.Reshape(dx.indices, [-1])
    dy = primitives.UnsortedSegmentSum(dx.values, indices, rows)
    counts = primitives.UnsortedSegmentSum(cast(indices >= 0, "int32"), indices, rows)
    return dy, primitives.Reshape(counts > 0, [rows] + [1] * (variable.shape.rank - 1))


def _listed(variables: Any) -> list[Any]:
    return list(variables) if isinstance(variables, list | tuple) else [variables]


def _key(variable: Any) -> Any:
    return variable._unique_id


def _plain_name(variable: Any) -> str:
    return str(variable.name.rpartition(":")[0])
