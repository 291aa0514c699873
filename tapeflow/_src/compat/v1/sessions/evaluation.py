"""Evaluation of a checkpoint: `tensorflow.python.training.evaluation`, which tf-slim and estimators stand on."""

from __future__ import annotations

import time
from typing import Any

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.sessions.monitored_session import MonitoredSession
from tapeflow._src.compat.v1.sessions.scaffold import ChiefSessionCreator
from tapeflow._src.compat.v1.sessions.session_hooks import FinalOpsHook
from tapeflow._src.compat.v1.sessions.session_layers import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tapeflow._src.compat.v1.variables.variable_scope import get_variable
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.logging import get_logger

_control_dependencies = find_public("control_dependencies")
_identity = find_public("identity")


def get_or_create_eval_step() -> Any:
    """The variable that counts the runs of an evaluation."""
    steps = get_default_graph().get_collection(GraphKeys.EVAL_STEP)
    if len(steps) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if steps:
        return steps[0]
    return get_variable(
        "eval_step", [], int64, ZerosInitializer(), trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.EVAL_STEP],
    )  # fmt: skip


def get_latest_eval_step_value(update_ops: Any) -> Any:
    """The number of runs, read after `update_ops` have run."""
    updates = [*update_ops.values()] if isinstance(update_ops, dict) else update_ops
    with _control_dependencies(updates):
        return _identity(get_or_create_eval_step().read_value())


class StopAfterNEvalsHook(SessionRunHook):
    """Asks a session to stop after `num_evals` runs of an evaluation; None lets the inputs end it."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals, self._log_progress = num_evals, log_progress
        self._evals_completed: Any = None
        self._log_frequency = 1 if num_evals is None or num_evals < 20 else num_evals // 10

    def _set_evals_completed_tensor(self, updated_eval_step: Any) -> None:
        self._evals_completed = updated_eval_step

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Fetches the number of runs."""
        return SessionRunArgs({"evals_completed": self._evals_completed})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Asks to stop when there are enough."""
        done, wanted = run_values.results["evals_completed"], self._num_evals
        if self._log_progress and wanted is None:
            get_logger().info("Evaluation [%d]", done)
        elif self._log_progress and (done % self._log_frequency == 0 or done == wanted):
            get_logger().info("Evaluation [%d/%d]", done, wanted)
        if wanted is not None and done >= wanted:
            run_context.request_stop()


def evaluate_once(
    checkpoint_path: str,
    master: str = "",
    scaffold: Any = None,
    eval_ops: Any = None,
    feed_dict: Any = None,
    final_ops: Any = None,
    final_ops_feed_dict: Any = None,
    hooks: Any = None,
    config: Any = None,
) -> Any:
    """Runs `eval_ops` with the variables of a checkpoint until a hook stops it; the values of `final_ops` then."""
    eval_step = get_or_create_eval_step()
    hooks = list(hooks or [])
    if eval_ops is not None:
        eval_ops = _with_update(eval_ops, eval_step.assign_add(1))
        eval_step_value = get_latest_eval_step_value(eval_ops)
        for hook in hooks:
            if isinstance(hook, StopAfterNEvalsHook):
                hook._set_evals_completed_tensor(eval_step_value)
    begin = time.monotonic()
    get_logger().info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%S"))
    creator = ChiefSessionCreator(scaffold, master, config, checkpoint_filename_with_path=checkpoint_path)
    last = FinalOpsHook(final_ops, final_ops_feed_dict)
    with MonitoredSession(creator, [*hooks, last]) as session:
        while eval_ops is not None and not session.should_stop():
            session.run(eval_ops, feed_dict)
    get_logger().info("Finished evaluation after %.5fs", time.monotonic() - begin)
    return last.final_ops_values


def _with_update(eval_ops: Any, update: Any) -> Any:
    """What is run in each step, with the counting among it."""
    if isinstance(eval_ops, dict):
        return {**eval_ops, "update_eval_step": update}
    return [*(eval_ops if isinstance(eval_ops, list | tuple) else [eval_ops]), update]
