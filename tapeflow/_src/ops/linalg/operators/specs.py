"""Type specs of linear operators: one class of specs for each class of operators, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.types import nest, spec_names
from tapeflow._src.types.tensor_spec import TypeSpec, type_spec_from_value


class LinearOperatorSpec(TypeSpec):
    """The spec of a linear operator: specs of its tensors and operators, and its other arguments."""

    value_type: Any

    def __init__(
        self, param_specs: dict[str, Any], non_tensor_params: dict[str, Any], prefer_static_fields: tuple[str, ...] = ()
    ) -> None:
        self._param_specs = param_specs
        self._non_tensor_params = non_tensor_params
        self._prefer_static_fields = tuple(prefer_static_fields)

    @classmethod
    def from_operator(cls, operator: Any) -> LinearOperatorSpec:
        """The spec of an operator that exists; names do not matter."""
        components, plain = operator._divided_arguments()
        for key in plain:  # what the operator made of an argument, if it keeps it
            made = getattr(operator, key, getattr(operator, f"_{key}", plain[key]))
            plain[key] = plain[key] if _core.is_tensor(made) else made
        specs = nest.map_structure(type_spec_from_value, components)
        return cls(specs, plain, operator._composite_tensor_prefer_static_fields)

    @property
    def _component_specs(self) -> dict[str, Any]:
        return self._param_specs

    def _serialize(self) -> tuple[Any, ...]:
        return self._param_specs, self._non_tensor_params, self._prefer_static_fields

    def _to_components(self, value: Any) -> Any:
        return value._divided_arguments()[0]

    def _from_components(self, components: Any) -> Any:
        return self.value_type(**components, **self._non_tensor_params)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._param_specs!r}, {self._non_tensor_params!r})"


def spec_class_of(kind: type) -> type[LinearOperatorSpec]:
    """A class of specs for a class of operators; specs of the public operators can be written into SavedModels."""
    made: type[LinearOperatorSpec] = type(f"{kind.__name__}Spec", (LinearOperatorSpec,), {"value_type": kind})
    if kind.__module__.rpartition(".")[0] == __name__.rpartition(".")[0]:
        spec_names.register(f"tf.linalg.{made.__name__}")(made)
    return made
