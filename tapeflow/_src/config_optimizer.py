"""`tf.config.optimizer`: options of TensorFlow's graph optimizer, kept and given back; plans do not depend on them."""

from __future__ import annotations

from typing import Any

from tapeflow._src import config
from tapeflow._src.namespace import public


@public("config.optimizer.get_jit")
def get_jit() -> str:
    """What `set_jit` was given: the empty string or "autoclustering".

    >>> tf.config.optimizer.get_jit()
    ''
    """
    return config._settings.jit


@public("config.optimizer.set_jit")
def set_jit(enabled: bool | str) -> None:
    """Sets whether functions shall be compiled; there is no compiler, so it has no effect.

    >>> tf.config.optimizer.set_jit(False)
    >>> tf.config.optimizer.get_jit()
    ''
    """
    config._settings.jit = "autoclustering" if enabled in (True, "autoclustering") else ""


@public("config.optimizer.get_experimental_options")
def get_experimental_options() -> dict[str, Any]:
    """The options that `set_experimental_options` was given.

    >>> tf.config.optimizer.get_experimental_options()["disable_meta_optimizer"]
    False
    """
    return dict(config._settings.optimizer_options)


@public("config.optimizer.set_experimental_options")
def set_experimental_options(options: dict[str, Any]) -> None:
    """Sets options of TensorFlow's graph optimizer, which have no effect.

    >>> tf.config.optimizer.set_experimental_options({"constant_folding": True})
    >>> tf.config.optimizer.get_experimental_options()["constant_folding"]
    True
    """
    config._settings.optimizer_options.update(options)
