"""Progress bars on stderr for training and for grids of runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from awatt.reproduce.plan import in_words

if TYPE_CHECKING:
    from awatt.reproduce.suites import Run
    from awatt.research.runs import TrainingConfig
    from awatt.research.training import Step

_UPDATE_INTERVAL = 0.1  # seconds; drawing the bar must not slow training down


class _LiveBar:
    """Shows its bar while the ``with`` block runs, on a terminal only: elsewhere it would leave an empty line."""

    bar: Progress

    def __enter__(self) -> Self:
        if self.bar.console.is_terminal and not self.bar.disable:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar.live.is_started:
            self.bar.stop()


class TrainingProgress(_LiveBar):
    """A bar for the current epoch (loss, last validation, speed, time left) and one line per finished epoch."""

    def __init__(self, schedule: TrainingConfig, quiet: bool) -> None:
        self.schedule, self.quiet = schedule, quiet
        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} episodes, loss {task.fields[loss]:.4f}"),
            TextColumn("{task.fields[rate]:.0f}/s{task.fields[validation]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=quiet,
            transient=True,
        )
        self.task = self.bar.add_task("epoch 1", total=schedule.episodes_per_epoch, loss=0.0, rate=0.0, validation="")
        self.began = self.shown = 0.0

    def on_step(self, step: Step) -> None:
        """Show the progress after a training step."""
        now = time.monotonic()
        if step.done <= self.schedule.episodes_per_step:
            self.bar.reset(self.task, description=f"{step.stage}, epoch {step.epoch}", total=step.total)
            self.began = now
        if now - self.shown >= _UPDATE_INTERVAL or step.done == step.total:
            rate = step.done / max(now - self.began, 1e-9)
            self.bar.update(self.task, completed=step.done, loss=step.loss, rate=rate)
            self.shown = now

    def on_epoch(self, entry: dict[str, Any]) -> None:
        """Print one line for an epoch that has been validated."""
        validation = f", AUC {entry['val_auc']:.4f}, F1 {entry['val_macro_f1']:.4f}"
        self.bar.update(self.task, validation=validation)
        if not self.quiet:
            mark = "  [green]best[/]" if entry["best"] else ""
            rate = self.schedule.episodes_per_epoch / max(entry["train_seconds"], 1e-9)
            self.console.print(
                f"{entry['stage']:<9} epoch {entry['epoch']:>3}  loss {entry['loss']:.4f}"
                f"  val AUC {entry['val_auc']:.4f}  F1 {entry['val_macro_f1']:.4f}  {rate:.0f} episodes/s{mark}",
                soft_wrap=True,  # one line in log files as well
            )


class GridProgress(_LiveBar):
    """A bar over many runs, weighted by their estimated time, and one line per finished run."""

    def __init__(self, seconds: Mapping[Run, float], jobs: int) -> None:
        self.seconds, self.jobs, self.done, self.began = seconds, jobs, 0, time.monotonic()
        self.console = Console(stderr=True, highlight=False)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[left]} left, "),
            TimeElapsedColumn(),
            TextColumn("so far"),
            console=self.console,
            transient=True,
        )
        total = sum(seconds.values())
        self.task = self.bar.add_task(self._count(), total=total, left=in_words(total / jobs))

    def on_done(self, run: Run, result: Mapping[str, Any]) -> None:
        """Print a finished run's results and update the time left."""
        self.done += 1
        self.bar.update(self.task, advance=self.seconds[run], description=self._count())
        task = self.bar.tasks[0]
        speed = task.completed / max(
            time.monotonic() - self.began, 1e-9
        )  # estimated seconds of work per second, over all jobs
        self.bar.update(self.task, left=in_words((task.total or 0) / speed - task.completed / speed))
        test = result["test"]
        numbers = f"AUC {test['auc']:.4f}  F1 {100 * test['macro_f1']:.2f}  {result['seconds']:.0f} s"
        self.console.print(f"{run.name:<60} {numbers}", soft_wrap=True, markup=False)

    def _count(self) -> str:
        return f"{self.done} of {len(self.seconds)} runs"
