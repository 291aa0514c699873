"""`tf.compat.v1.train.MonitoredTrainingSession`: a monitored session with the hooks that training wants."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.sessions.monitored_session import CheckpointSaverHook, MonitoredSession
from tapeflow._src.compat.v1.sessions.scaffold import ChiefSessionCreator, Scaffold, WorkerSessionCreator
from tapeflow._src.compat.v1.sessions.session_hooks import StepCounterHook, SummarySaverHook
from tapeflow._src.namespace import public

_DEFAULT: Any = object()  # not the same as None, which means never


@public("compat.v1.train.MonitoredTrainingSession")
def monitored_training_session(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Any = None,
    hooks: Any = None,
    chief_only_hooks: Any = None,
    save_checkpoint_secs: Any = _DEFAULT,
    save_summaries_steps: Any = _DEFAULT,
    save_summaries_secs: Any = _DEFAULT,
    config: Any = None,
    stop_grace_period_secs: int = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: int = 7200,
    save_checkpoint_steps: Any = _DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
) -> MonitoredSession:
    """A session for training: variables are restored from the folder or initialised, and saved as it goes on.

    >>> with tf.Graph().as_default():
    ...     step = tf.compat.v1.train.get_or_create_global_step()
    ...     train = tf.compat.v1.assign_add(step, 1)
    ...     stop = tf.compat.v1.train.StopAtStepHook(last_step=3)
    ...     with tf.compat.v1.train.MonitoredTrainingSession(hooks=[stop]) as session:
    ...         while not session.should_stop():
    ...             last = session.run(train)
    >>> int(last)
    3
    """
    summary_steps, summary_seconds = _chosen(save_summaries_steps, save_summaries_secs, 100, None)
    saving_steps, saving_seconds = _chosen(save_checkpoint_steps, save_checkpoint_secs, None, 600)
    scaffold = scaffold or Scaffold()
    every = list(hooks or [])
    if not is_chief:
        return MonitoredSession(WorkerSessionCreator(scaffold, master, config, max_wait_secs), every)
    every = [*(chief_only_hooks or []), *every]
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            every.append(StepCounterHook(log_step_count_steps, output_dir=summary_dir))
        if summary_steps or summary_seconds:
            every.append(SummarySaverHook(summary_steps, summary_seconds, summary_dir, scaffold=scaffold))
    if checkpoint_dir and (saving_steps or saving_seconds):
        every.append(CheckpointSaverHook(checkpoint_dir, saving_seconds, saving_steps, scaffold=scaffold))
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(creator, every, stop_grace_period_secs)


def _chosen(steps: Any, seconds: Any, default_steps: Any, default_seconds: Any) -> tuple[Any, Any]:
    """The defaults if neither is given, else what is given."""
    if steps is _DEFAULT and seconds is _DEFAULT:
        return default_steps, default_seconds
    return None if steps is _DEFAULT else steps, None if seconds is _DEFAULT else seconds
