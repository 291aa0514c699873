"""More hooks of monitored sessions: what they log, feed, write down and compute at the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.sessions.session_layers import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from tapeflow._src.compat.v1.sessions.timeline import Timeline
from tapeflow._src.compat.v1.summaries import FileWriterCache, merge_all
from tapeflow._src.compat.v1.train.training_step import get_global_step
from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.logging import get_logger


@public("compat.v1.train.SecondOrStepTimer")
class SecondOrStepTimer:
    """Decides at which steps an action is due that happens every so many steps or seconds.

    >>> timer = tf.compat.v1.train.SecondOrStepTimer(every_steps=10)
    >>> timer.should_trigger_for_step(0)
    True
    """

    def __init__(self, every_secs: float | None = None, every_steps: int | None = None) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._seconds, self._steps = every_secs, every_steps
        self.reset()

    def reset(self) -> None:
        """Forgets when it was due."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due."""
        if self._last_step is None:
            return True
        if self._last_step == step:
            return False
        if self._seconds is not None:
            return time.time() >= self._last_time + self._seconds
        return step >= self._last_step + (self._steps or 0)

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """It happens now; the seconds and steps since the last time."""
        now, before, last = time.time(), self._last_time, self._last_step
        self._last_step, self._last_time = step, now
        return (None, None) if last is None else (now - before, step - last)

    def last_triggered_step(self) -> int | None:
        """When it was due last."""
        return self._last_step


@public("compat.v1.train.LoggingTensorHook")
class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors every so many runs or seconds, or at the end.

    >>> hook = tf.compat.v1.train.LoggingTensorHook({"loss": "loss:0"}, every_n_iter=10)
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        self._tensors = dict(tensors) if isinstance(tensors, dict) else {getattr(t, "name", t): t for t in tensors}
        self._timer = None if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        self._at_end, self._formatter, self._runs, self._due = at_end, formatter, 0, False

    def begin(self) -> None:
        """Finds the tensors."""
        graph = get_default_graph()
        self._tensors = {tag: graph.as_graph_element(t) for tag, t in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for the tensors if they are to be logged."""
        self._due = self._timer is not None and self._timer.should_trigger_for_step(self._runs)
        return SessionRunArgs(self._tensors) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs them."""
        if self._due:
            self._log(run_values.results)
        self._runs += 1

    def end(self, session: Any) -> None:
        """Logs them, if that was wanted."""
        if self._at_end:
            self._log(session.run(self._tensors))

    def _log(self, values: dict[str, Any]) -> None:
        seconds = self._timer.update_last_triggered_step(self._runs)[0] if self._timer is not None else None
        text = ", ".join(f"{tag} = {np.array2string(np.asarray(v))}" for tag, v in values.items())
        if self._formatter is not None:
            text = self._formatter(values)
        elif seconds is not None:
            text += f" ({seconds:.3f} sec)"
        get_logger().info(text)


@public("compat.v1.train.FeedFnHook")
class FeedFnHook(SessionRunHook):
    """Feeds what a function gives, in each run.

    >>> hook = tf.compat.v1.train.FeedFnHook(lambda: {"x:0": 1.})
    """

    def __init__(self, feed_fn: Callable[[], dict[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Feeds the values."""
        return SessionRunArgs([], feed_dict=self.feed_fn())


@public("compat.v1.train.FinalOpsHook")
class FinalOpsHook(SessionRunHook):
    """Computes tensors at the end; `final_ops_values` has their values.

    >>> tf.compat.v1.train.FinalOpsHook("loss:0").final_ops_values
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._fetches, self._feeds, self._values = final_ops, final_ops_feed_dict, None

    final_ops_values = property(lambda self: self._values)

    def end(self, session: Any) -> None:
        """Computes them."""
        if self._fetches is not None:
            self._values = session.run(self._fetches, feed_dict=self._feeds)


@public("compat.v1.train.SummarySaverHook")
class SummarySaverHook(SessionRunHook):
    """Writes summaries every so many steps or seconds.

    >>> hook = tf.compat.v1.train.SummarySaverHook(save_steps=10, output_dir="logs", summary_op="Merge:0")
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: Any = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._folder, self._writer, self._fetch, self._due = output_dir, summary_writer, summary_op, False
        self._scaffold = scaffold
        self._next: int | None = None

    def begin(self) -> None:
        """Finds the global step and opens the file."""
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use SummarySaverHook.")
        if self._fetch is None and self._scaffold is None:
            self._fetch = merge_all()
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step, and for the summaries if they are due."""
        if self._fetch is None and self._scaffold is not None:
            self._fetch = self._scaffold.summary_op
        self._due = self._next is None or self._timer.should_trigger_for_step(self._next)
        wanted = {"global_step": self._step}
        if self._due and self._fetch is not None:
            wanted["summary"] = self._fetch
        return SessionRunArgs(wanted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        step = int(run_values.results["global_step"]) + 1
        if self._next is None or self._due:
            step = int(run_context.session.run(self._step))
        if self._writer is not None and self._next is None:
            log = messages.SessionLog(status=messages.SessionLog.START)
            self._writer.add_session_log(log, step)
        if self._due:
            self._timer.update_last_triggered_step(step)
            found = run_values.results.get("summary", [])
            for summary in found if isinstance(found, list | tuple) else [found]:
                if self._writer is not None:
                    self._writer.add_summary(summary, step)
        self._next = step + 1

    def end(self, session: Any) -> None:
        """Writes what waits to be written."""
        if self._writer is not None:
            self._writer.flush()


@public("compat.v1.train.StepCounterHook")
class StepCounterHook(SessionRunHook):
    """Logs and writes down how many steps there are in a second.

    >>> hook = tf.compat.v1.train.StepCounterHook(every_n_steps=100)
    """

    def __init__(
        self, every_n_steps: int | None = 100, every_n_secs: float | None = None, output_dir: Any = None,
        summary_writer: Any = None,
    ) -> None:  # fmt: skip
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._folder, self._writer = output_dir, summary_writer
        self._steps_per_run = 1
        self._last_step: int | None = None

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        """Says by how much one run moves the global step."""
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        """Finds the global step and opens the file."""
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use StepCounterHook.")
        if self._writer is None and self._folder is not None:
            self._writer = FileWriterCache.get(self._folder)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """The step is wanted."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Logs the number if it is due: the step is read again only then."""
        stale = int(run_values.results)
        if self._timer.should_trigger_for_step(stale + self._steps_per_run):
            step = int(run_context.session.run(self._step))
            if self._timer.should_trigger_for_step(step):
                self._log_speed(step, *self._timer.update_last_triggered_step(step))
        if stale == self._last_step:
            get_logger().warning(
                f"It seems that global step (tf.train.get_global_step) has not been increased. Current value (could be "
                f"stable): {stale} vs previous value: {self._last_step}. You could increase the global step by passing "
                "tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize."
            )
        self._last_step = stale

    def _log_speed(self, step: int, seconds: float | None, steps: int | None) -> None:
        if seconds is None or steps is None:
            return
        speed = steps / max(seconds, 1e-9)
        get_logger().info(f"{self._step.op.name}/sec: {speed:g}")
        if self._writer is not None:
            value = messages.Summary.Value(tag=f"{self._step.op.name}/sec", simple_value=speed)
            self._writer.add_summary(messages.Summary(value=[value]), step)


@public("compat.v1.train.GlobalStepWaiterHook")
class GlobalStepWaiterHook(SessionRunHook):
    """Lets the first run wait until another process has come to a step.

    >>> hook = tf.compat.v1.train.GlobalStepWaiterHook(0)
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wanted = wait_until_step

    def begin(self) -> None:
        """Finds the global step."""
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use _GlobalStepWaiterHook.")

    def before_run(self, run_context: SessionRunContext) -> None:
        """Waits, the first time."""
        while self._wanted > 0 and int(run_context.session.run(self._step)) < self._wanted:
            time.sleep(0.5)
        self._wanted = 0


@public("compat.v1.train.ProfilerHook")
class ProfilerHook(SessionRunHook):
    """Writes the times of the operations of a run every so many steps or seconds, for Chrome's trace viewer.

    >>> hook = tf.compat.v1.train.ProfilerHook(save_steps=100, output_dir="logs")
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._folder, self._show_dataflow, self._show_memory = output_dir, show_dataflow, show_memory
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._due = False
        self._next: int | None = None

    def begin(self) -> None:
        """Finds the global step and opens the file."""
        self._step = get_global_step()
        if self._step is None:
            raise RuntimeError("Global step should be created to use ProfilerHook.")
        self._writer = FileWriterCache.get(self._folder) if self._folder else None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for times if they are due."""
        self._due = self._next is not None and self._timer.should_trigger_for_step(self._next)
        options = messages.RunOptions(trace_level=messages.RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs({"global_step": self._step}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Writes them."""
        stale = int(run_values.results["global_step"])
        if self._next is None:  # the first run is not timed: it has to set everything up
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._due:
            step = int(run_context.session.run(self._step))
            self._timer.update_last_triggered_step(step)
            timeline = Timeline(run_values.run_metadata.step_stats)
            trace = timeline.generate_chrome_trace_format(self._show_dataflow, self._show_memory)
            write_atomically(os.path.join(self._folder, f"timeline-{step}.json"), trace.encode())
            if self._writer is not None:
                self._writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next = step + 1
