"""`tf.__internal__.distribute.combinations`: test methods that run once for each strategy that this machine can run.

Strategies for GPUs, TPUs, parameter servers and several machines have names; their tests are skipped, and say why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src.compat.tensorflow.internal_names import test_combinations
from tapeflow._src.compat.tensorflow.internal_names.test_combinations import generate_for
from tapeflow._src.config import (
    LogicalDeviceConfiguration,
    forget_devices_used,
    list_physical_devices,
    logical_device_count,
    set_logical_device_configuration,
)
from tapeflow._src.distribute.context import get_strategy
from tapeflow._src.distribute.strategies import MirroredStrategy, OneDeviceStrategy
from tapeflow._src.namespace import find_public, public


class NamedDistribution:
    """A strategy with a name for the tests that get it, and what it needs."""

    def __init__(
        self,
        name: str,
        distribution_fn: Callable[[], Any] | None,
        required_gpus: int | None = None,
        required_physical_gpus: int = 0,
        required_tpu: bool = False,
        use_cloud_tpu: bool = False,
        has_chief: bool = False,
        num_workers: int = 1,
        num_ps: int = 0,
        share_gpu: bool = True,
        pool_runner_fn: Any = None,
        no_xla: bool = False,
    ) -> None:
        self._name, self._distribution_fn, self.runner = name, distribution_fn, pool_runner_fn
        self.required_gpus, self.required_physical_gpus = required_gpus, required_physical_gpus
        self.required_tpu, self.use_cloud_tpu = required_tpu, use_cloud_tpu
        self.has_chief, self.num_workers, self.num_ps = has_chief, num_workers, num_ps
        self.share_gpu, self.no_xla = share_gpu, no_xla

    @property
    def strategy(self) -> Any:
        """A new strategy."""
        if self._distribution_fn is None:
            raise ValueError(f"{self._name}: there is no such strategy")
        return self._distribution_fn()

    @property
    def obstacle(self) -> str | None:
        """Why this machine cannot run the strategy, or None."""
        gpus = max(self.required_gpus or 0, self.required_physical_gpus)
        available = len(list_physical_devices("GPU"))
        if gpus > available:
            return f"Only {available} of {gpus} required GPUs are available."
        if self.required_tpu:
            return "Test requires a TPU, but it's not available."
        if self.num_ps:
            return "Test requires parameter servers, but there are none."
        if self.num_workers + self.has_chief > 1:
            return f"Test requires {self.num_workers} workers, and runs in one process."
        return None

    def __repr__(self) -> str:
        return self._name


class _Distributions(test_combinations.TestCombination):
    """Skips what the machine cannot run, and makes the strategies."""

    def should_execute_combination(self, kwargs: dict[str, Any]) -> tuple[bool, str | None]:
        found = [value for value in kwargs.values() if isinstance(value, NamedDistribution)]
        wanted = max(int(kwargs.get("required_gpus") or 0), int(kwargs.get("required_physical_gpus") or 0))
        if wanted or kwargs.get("required_tpus") or kwargs.get("required_tpu"):
            found.append(NamedDistribution("", None, wanted, required_tpu=not wanted))
        if int(kwargs.get("num_workers") or 1) > 1:
            found.append(NamedDistribution("", None, num_workers=kwargs["num_workers"]))
        obstacle = next((one.obstacle for one in found if one.obstacle), None)
        return (obstacle is None, obstacle)

    def parameter_modifiers(self) -> list[test_combinations.ParameterModifier]:
        optional = ["use_var_policy", "required_gpus", "required_physical_gpus", "required_tpus", "required_tpu"]
        optional += ["use_cloud_tpu", "has_chief", "num_workers", "num_ps", "share_gpu", "runner"]
        return [_Strategy(), *map(test_combinations.OptionalParameter, optional)]


class _Strategy(test_combinations.ParameterModifier):
    """Gives a test the strategy itself, and what it asks about it."""

    def modified_arguments(self, kwargs: dict[str, Any], requested_parameters: Sequence[str]) -> dict[str, Any]:
        found = {name: value for name, value in kwargs.items() if isinstance(value, NamedDistribution)}
        changed = {name: value.strategy for name, value in found.items()}
        facts = ("has_chief", "num_workers", "num_ps", "share_gpu", "runner")
        for one in found.values():
            changed.update({name: getattr(one, name) for name in facts if name in requested_parameters})
        return changed


class _Generate(functools.partial[Any]):
    """A decorator of a test method or class: it runs for all combinations of arguments, strategies among them.

    >>> combine = tf.__internal__.test.combinations.combine
    >>> strategies = tf.__internal__.distribute.combinations
    >>> callable(strategies.generate(combine(distribution=[strategies.one_device_strategy])))
    True
    """


_default = (test_combinations.EagerGraphCombination(), test_combinations.TFVersionCombination(), _Distributions())


def _generate_for(combinations: list[Any], test_combinations: Sequence[Any] = ()) -> Any:
    return generate_for(combinations, (*_default, *test_combinations))


generate = public("__internal__.distribute.combinations.generate")(_Generate(_generate_for))


@public("__internal__.distribute.combinations.in_main_process")
def in_main_process() -> bool:
    """Whether this is the process that runs the tests, and not one of its workers: always.

    >>> tf.__internal__.distribute.combinations.in_main_process()
    True
    """
    return True


def _two_cpus() -> Any:
    if logical_device_count() < 2:
        forget_devices_used()  # the tests before this one have used the only device
        (processor,) = list_physical_devices("CPU")
        set_logical_device_configuration(processor, [LogicalDeviceConfiguration()] * 2)
    return MirroredStrategy(["/cpu:0", "/cpu:1"])


_named = {
    "default_strategy": NamedDistribution("Default", get_strategy),
    "one_device_strategy": NamedDistribution("OneDeviceCPU", lambda: OneDeviceStrategy("/cpu:0")),
    "one_device_strategy_gpu": NamedDistribution("OneDeviceGPU", None, 1),
    "tpu_strategy": NamedDistribution("TPU", None, required_tpu=True),
    "tpu_strategy_packed_var": NamedDistribution("TPUPackedVar", None, required_tpu=True),
    "tpu_strategy_one_core": NamedDistribution("TPUOneCore", None, required_tpu=True),
    "cloud_tpu_strategy": NamedDistribution("CloudTPU", None, required_tpu=True, use_cloud_tpu=True),
    "mirrored_strategy_with_one_cpu": NamedDistribution("Mirrored1CPU", lambda: MirroredStrategy(["/cpu:0"])),
    "mirrored_strategy_with_two_cpus": NamedDistribution("Mirrored2CPUs", _two_cpus),
    "mirrored_strategy_with_one_gpu": NamedDistribution("Mirrored1GPU", None, 1),
    "mirrored_strategy_with_gpu_and_cpu": NamedDistribution("MirroredCPUAndGPU", None, 1),
    "mirrored_strategy_with_two_gpus": NamedDistribution("Mirrored2GPUs", None, 2),
    "mirrored_strategy_with_two_gpus_no_merge_call": NamedDistribution(
        "Mirrored2GPUsNoMergeCall", None, required_physical_gpus=2
    ),
    "central_storage_strategy_with_two_gpus": NamedDistribution("CentralStorage2GPUs", None, 2),
    "central_storage_strategy_with_gpu_and_cpu": NamedDistribution("CentralStorageCPUAndGPU", None, 1),
    "multi_worker_mirrored_2x1_cpu": NamedDistribution("MultiWorkerMirrored2x1CPU", None, num_workers=2),
    "multi_worker_mirrored_2x1_gpu": NamedDistribution("MultiWorkerMirrored2x1GPU", None, 1, num_workers=2),
    "multi_worker_mirrored_2x2_gpu": NamedDistribution("MultiWorkerMirrored2x2GPU", None, 2, num_workers=2),
    "multi_worker_mirrored_4x1_cpu": NamedDistribution("MultiWorkerMirrored4x1CPU", None, num_workers=4),
    **{
        f"parameter_server_strategy_{workers}worker_2ps_{device}": NamedDistribution(
            f"ParameterServer{workers}Worker2PS{device.upper()}", None, gpus, num_workers=workers, num_ps=2
        )
        for workers in (1, 3)
        for device, gpus in (("cpu", 0), ("1gpu", 1))
    },
}
for _name, _value in _named.items():
    public(f"__internal__.distribute.combinations.{_name}")(_value)


@public("__internal__.distribute.multi_process_runner.test_main")
def test_main() -> None:
    """Runs the tests of the program, as `tf.test.main`: no other processes are made.

    >>> callable(tf.__internal__.distribute.multi_process_runner.test_main)
    True
    """
    find_public("test.main")()


test_main.__test__ = False  # type: ignore[attr-defined]
