"""`tf.data.Options`: settings of datasets, kept and merged. Only `deterministic` has an effect."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tapeflow._src.namespace import public

AUTOTUNE = -1
public("data.AUTOTUNE", "data.experimental.AUTOTUNE")(AUTOTUNE)


@public("data.experimental.AutoShardPolicy")
class AutoShardPolicy(enum.IntEnum):
    """How a dataset is divided among workers.

    >>> tf.data.experimental.AutoShardPolicy.DATA.value
    2
    """

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


@public("data.experimental.ExternalStatePolicy")
class ExternalStatePolicy(enum.Enum):
    """What happens to state outside of a dataset when it is saved.

    >>> tf.data.experimental.ExternalStatePolicy.WARN.value
    0
    """

    WARN = 0
    IGNORE = 1
    FAIL = 2


@public("data.experimental.AutotuneAlgorithm")
class AutotuneAlgorithm(enum.Enum):
    """How TensorFlow chooses numbers of threads.

    >>> tf.data.experimental.AutotuneAlgorithm.DEFAULT.value
    0
    """

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Settings:
    """Settings with fixed names and types; each has a default, or is a group of settings."""

    _types: Mapping[str, type] = MappingProxyType({})
    _defaults: Mapping[str, Any] = MappingProxyType({})
    _groups: Mapping[str, type] = MappingProxyType({})

    def __init__(self) -> None:
        self.__dict__["_set"] = {name: group() for name, group in self._groups.items()}

    def __getattr__(self, name: str) -> Any:
        if name not in self._types and name not in self._groups:
            raise AttributeError(f"{type(self).__name__} has no property {name}.")
        return self._set.get(name, self._defaults.get(name))

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._types.get(name) or self._groups.get(name)
        if kind is None:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        if self.__dict__.get("_frozen"):
            raise ValueError(
                "Mutating `tf.data.Options()` returned by `tf.data.Dataset.options()` has no effect. Use "
                "`tf.data.Dataset.with_options(options)` to set or update dataset options."
            )
        if not isinstance(value, kind):
            raise TypeError(f'Property "{name}" must be of type {kind}, got: {value} (type: {type(value)})')
        self._set[name] = value

    def _freeze(self) -> None:
        """Lets nobody change these settings any more."""
        self.__dict__["_frozen"] = True
        for group in self._groups:
            self._set[group]._freeze()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._set == other._set

    __hash__ = None  # type: ignore[assignment]

    def _take(self, other: _Settings) -> None:
        """Takes over what is set in other settings."""
        for name, value in other._set.items():
            if name in self._groups:
                self._set[name]._take(value)
            elif isinstance(value, list) and isinstance(self._set.get(name), list):
                self._set[name] = [*self._set[name], *value]
            else:
                self._set[name] = value


@public("data.ThreadingOptions", "data.experimental.ThreadingOptions")
class ThreadingOptions(_Settings):
    """Settings for threads.

    >>> tf.data.ThreadingOptions().private_threadpool_size
    """

    _types = MappingProxyType({"max_intra_op_parallelism": int, "private_threadpool_size": int})


@public("data.experimental.AutotuneOptions")
class AutotuneOptions(_Settings):
    """Settings for the choice of numbers of threads.

    >>> tf.data.experimental.AutotuneOptions().enabled
    """

    _types = MappingProxyType(
        {
            "autotune_algorithm": AutotuneAlgorithm,
            "enabled": bool,
            **dict.fromkeys(["cpu_budget", "initial_parallelism", "min_parallelism", "ram_budget"], int),
        }
    )


@public("data.experimental.DistributeOptions")
class DistributeOptions(_Settings):
    """Settings for several workers.

    >>> tf.data.experimental.DistributeOptions().num_devices
    """

    _types = MappingProxyType({"auto_shard_policy": AutoShardPolicy, "num_devices": int})
    _defaults = MappingProxyType({"auto_shard_policy": AutoShardPolicy.AUTO})


@public("data.experimental.OptimizationOptions")
class OptimizationOptions(_Settings):
    """Settings for the optimisation of datasets.

    >>> tf.data.experimental.OptimizationOptions().map_fusion
    """

    _types = MappingProxyType(
        dict.fromkeys(
            [
                "apply_default_optimizations",
                "filter_fusion",
                "filter_parallelization",
                "inject_prefetch",
                "map_and_batch_fusion",
                "map_and_filter_fusion",
                "map_fusion",
                "map_parallelization",
                "noop_elimination",
                "parallel_batch",
                "seq_interleave_prefetch",
                "shuffle_and_repeat_fusion",
                "warm_start",
            ],
            bool,
        )
    )


@public("data.experimental.ServiceOptions")
class ServiceOptions(_Settings):
    """Settings for a data service.

    >>> tf.data.experimental.ServiceOptions().pinned
    """

    _types = MappingProxyType({"pinned": bool})


@public("data.Options", "compat.v1.data.Options")
class Options(_Settings):
    """Settings of a dataset. `deterministic` says whether parallel stages keep the order; others have no effect.

    >>> options = tf.data.Options()
    >>> options.deterministic = True
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    True
    """

    _types = MappingProxyType(
        {
            "dataset_name": str,
            "experimental_external_state_policy": ExternalStatePolicy,
            "framework_type": list,
            **dict.fromkeys(
                ["deterministic", "experimental_slack", "experimental_symbolic_checkpoint", "experimental_warm_start"],
                bool,
            ),
        }
    )
    _groups = MappingProxyType(
        {
            "autotune": AutotuneOptions,
            "experimental_distribute": DistributeOptions,
            "experimental_optimization": OptimizationOptions,
            "experimental_service": ServiceOptions,
            "threading": ThreadingOptions,
        }
    )

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__("deterministic" if name == "experimental_deterministic" else name)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__("deterministic" if name == "experimental_deterministic" else name, value)

    @property
    def experimental_threading(self) -> ThreadingOptions:
        """The v1 name of `threading`."""
        result: ThreadingOptions = self.threading
        return result

    def merge(self, options: Options) -> Options:
        """These settings, with those that are set in `options` in place of them."""
        merged = Options()
        merged._take(self)
        merged._take(options)
        return merged
