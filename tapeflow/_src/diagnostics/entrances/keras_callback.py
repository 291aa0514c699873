"""`tf.debugging.doctor_callback()`: a doctor for `model.fit`, as a Keras callback."""

from __future__ import annotations

import importlib
from typing import Any

from tapeflow._src.diagnostics.doctor import Doctor
from tapeflow._src.namespace import public


@public("debugging.doctor_callback")
def doctor_callback(mode: str = "full", steps: int | None = None) -> Any:
    """A Keras callback that watches `model.fit` and prints a report when training ends.

    Args:
      mode: As in `tf.debugging.Doctor`.
      steps: After so many steps the doctor stops watching.

    Returns:
      A `keras.callbacks.Callback`; its attribute `doctor` is the `tf.debugging.Doctor`.

    >>> callback = tf.debugging.doctor_callback  # model.fit(x, y, callbacks=[callback()])
    """
    callbacks = importlib.import_module("keras.callbacks")

    class DoctorCallback(callbacks.Callback):  # type: ignore[name-defined, misc]
        """Opens the doctor when training begins and closes it when it ends."""

        def __init__(self) -> None:
            super().__init__()
            self.doctor = Doctor(steps=steps, mode=mode)

        def on_train_begin(self, logs: Any = None) -> None:
            self.doctor.__enter__()

        def on_train_end(self, logs: Any = None) -> None:
            self.doctor.stop()
            print(self.doctor)

    return DoctorCallback()
