"""What programs choose when they save and load a SavedModel, and the other names that functions have in one."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.namespace import public


@public("saved_model.experimental.VariablePolicy")
class VariablePolicy(enum.Enum):
    """What a SavedModel says of variables beside their values.

    Variables of a strategy are saved as one under each policy but the last, which is refused.

    >>> tf.saved_model.experimental.VariablePolicy.SAVE_VARIABLE_DEVICES.value
    'save_variable_devices'
    """

    NONE = None
    SAVE_VARIABLE_DEVICES = "save_variable_devices"
    EXPAND_DISTRIBUTED_VARIABLES = "expand_distributed_variables"

    @staticmethod
    def from_obj(obj: Any) -> VariablePolicy:
        """The policy of this name in any case, or the policy itself; NONE for None."""
        if obj is None or isinstance(obj, VariablePolicy):
            return obj or VariablePolicy.NONE
        try:
            return VariablePolicy(str(obj).lower())
        except ValueError:
            known = [policy.value for policy in VariablePolicy]
            raise ValueError(
                f"Received invalid VariablePolicy value: {obj}. It must be a saved_model.experimental.VariablePolicy, "
                f"or one of {known}."
            ) from None


@public("saved_model.SaveOptions")
class SaveOptions:
    """Settings for saving.

    Args:
        namespace_whitelist: Names before `>` of operations that may be saved; there are none here.
        save_debug_info: Whether to write the lines that made operations; they are not written.
        function_aliases: Functions, concrete functions or lists of these by the names under which other programs look
            for them: `LoadOptions(experimental_load_function_aliases=True)` gives them back.
        experimental_debug_stripper: Whether to leave out what checks and prints values.
        experimental_io_device: Which device writes; there is one.
        experimental_variable_policy: A `tf.saved_model.experimental.VariablePolicy` or its value.
        experimental_custom_gradients: Whether to save the functions of custom gradients.
        experimental_image_format: A format for files above 2 GB, which TensorFlow's packages do not write either.
        experimental_skip_saver: Whether to leave out the nodes by which TensorFlow's C++ loader restores variables.
        experimental_sharding_callback: None, as the checkpoint is one file.
        extra_tags: Tags of the graph beside "serve".

    >>> options = tf.saved_model.SaveOptions(extra_tags=["mine"])
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: Any = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Any = None,
    ) -> None:
        policy = VariablePolicy.from_obj(experimental_variable_policy)
        if policy is VariablePolicy.EXPAND_DISTRIBUTED_VARIABLES:
            raise NotImplementedError(
                "saved_model.SaveOptions: variables of a strategy are saved as one; got experimental_variable_policy="
                f"{experimental_variable_policy}. Leave it out, and make the strategy anew when the model is loaded."
            )
        if experimental_image_format:
            raise ValueError("The option `experimental_image_format` is disabled in OSS.")
        if experimental_sharding_callback is not None:
            raise ValueError(
                "saved_model.SaveOptions: experimental_sharding_callback must be None, as a checkpoint is one file; "
                f"got {experimental_sharding_callback!r}"
            )
        self.namespace_whitelist = list(namespace_whitelist or ())
        self.save_debug_info = save_debug_info
        self.function_aliases = dict(function_aliases or {})
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = policy
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = experimental_skip_saver
        self.experimental_sharding_callback = experimental_sharding_callback
        self.extra_tags = extra_tags


@public("saved_model.LoadOptions")
class LoadOptions:
    """Settings for loading.

    Args:
        allow_partial_checkpoint: Whether variables without a value in the checkpoint are made, without a value.
        experimental_io_device: Which device reads; there is one.
        experimental_skip_checkpoint: Whether to make all variables without a value.
        experimental_variable_policy: A `tf.saved_model.experimental.VariablePolicy` or its value.
        experimental_load_function_aliases: Whether the loaded object has a dictionary `function_aliases` of the
            functions to which `SaveOptions(function_aliases=)` gave names.

    >>> options = tf.saved_model.LoadOptions(allow_partial_checkpoint=True)
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: Any = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = experimental_skip_checkpoint
        self.experimental_variable_policy = VariablePolicy.from_obj(experimental_variable_policy)
        self.experimental_load_function_aliases = experimental_load_function_aliases


def traces_of(function: Any) -> list[ConcreteFunction]:
    """The graphs of a function, or those in a list; TypeError for anything else."""
    if isinstance(function, ConcreteFunction):
        return [function]
    if isinstance(function, Function):
        saved = getattr(function, "concrete_functions", None)
        return list(function._traces.concrete) if saved is None else saved
    traces = list(function) if isinstance(function, Iterable) else [function]
    if not all(isinstance(trace, ConcreteFunction) for trace in traces):
        raise TypeError(
            f"saved_model.save: Unsupported type {type(function)}. Functions in `function_aliases` should be created "
            "by tf.function, or concrete functions, or collections of concrete functions."
        )
    return traces


def strip_checks(graph: Any) -> None:
    """Makes nodes that check or print values pass them on, in a graph and its functions."""
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
        if node.op not in ("Assert", "CheckNumerics", "Print", "PrintV2"):
            continue
        passed = 1 if node.op in ("CheckNumerics", "Print") else 0
        ordering = [name if name.startswith("^") else "^" + name.split(":")[0] for name in node.input[passed:]]
        inputs = [*node.input[:passed], *dict.fromkeys(ordering)]
        node.op = "Identity" if passed else "NoOp"
        del node.input[:]
        node.input.extend(inputs)
        for attribute in [name for name in node.attr if not name.startswith("_") and (name != "T" or not passed)]:
            del node.attr[attribute]
