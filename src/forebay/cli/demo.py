"""``forebay demo``: train from data larger than a memory budget, stop, resume, and say what was measured."""

import inspect
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from forebay.cli.demo_data import ROW_BYTES, Written, lies_in_memory, room_missing, write
from forebay.cli.demo_memory import MemoryMeter
from forebay.cli.demo_report import MB, Outcome
from forebay.cli.demo_train import Training, pipeline, resume, split


def demo(
    megabytes: Annotated[int, typer.Option(min=2, help="Size of the data to make, in MB.")] = 512,
    rows: Annotated[
        int | None, typer.Option(min=2000, help=f"Rows to make, {ROW_BYTES} bytes each, instead of --megabytes.")
    ] = None,
    budget: Annotated[int, typer.Option(min=1, help="Memory that training may add to the process, in MB.")] = 128,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Fixes the data, and its order in every epoch.")] = 0,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", exists=True, file_okay=False, writable=True, help="Where to put the temporary data."),
    ] = None,
) -> None:
    """Train from data larger than a memory budget, stop halfway, resume exactly.

    The data is made on the spot in a temporary directory, which is removed at
    the end, also after Ctrl-C. The exit code is 1 if the process outgrew the
    budget, or if a row was lost, came twice, or differed after the resume.
    """
    console = Console(highlight=False)
    rows = rows or megabytes * MB // ROW_BYTES
    parent = folder or Path(tempfile.gettempdir())
    missing = room_missing(parent, rows)
    if missing:
        console.print(f"{parent} is short of {missing / MB:,.0f} MB: free some, give --dir, or ask for less data.")
        raise typer.Exit(1)
    try:
        with _Stop() as stop, tempfile.TemporaryDirectory(prefix="forebay-demo-", dir=parent) as made:
            outcome = _run(console, Path(made), rows, budget * MB, epochs, seed, stop)
    except KeyboardInterrupt:
        console.print("Stopped; the temporary data has been removed.")
        raise typer.Exit(128 + (stop.number or signal.SIGINT)) from None
    outcome.show(console)
    problems = outcome.problems()
    for problem in problems:
        console.print(f"\n[bold red]{problem}[/]")
    if problems:
        raise typer.Exit(1)


class _Stop:
    """SIGTERM becomes an exception as Ctrl-C does, so that what is on disk is removed.

    One that comes in the middle of an import may be lost to callbacks of the interpreter's; ``check`` raises it again.
    """

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> "_Stop":
        self._before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        self._lost = sys.unraisablehook
        sys.unraisablehook = self._heard
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._lost

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        self.check()

    def _heard(self, lost: "sys.UnraisableHookArgs") -> None:
        """What is lost is printed, but for this one, which is not."""
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            self._lost(lost)

    def check(self) -> None:
        if self.number:
            raise KeyboardInterrupt


def _run(console: Console, folder: Path, rows: int, budget: int, epochs: int, seed: int, stop: _Stop) -> Outcome:
    # The zero lies before anything is made: memory that writing the data leaves behind counts as growth.
    meter = MemoryMeter()
    written = _make_data(console, folder, rows, seed, stop)
    _introduce(console, written, budget)
    with meter:
        held, kept = split(folder)
        training = Training(pipeline(*kept, seed), len(kept[1]), folder / "iterator-state.json")
        _train(console, training, epochs, meter, stop)
        accuracy = training.model.accuracy(*held)
        # From the files once more, as a new process would.
        afresh = pipeline(*split(folder)[1], seed)
        batches, seconds = resume(afresh, training.state_file, len(training.expected))
    return Outcome(
        budget=budget,
        epochs=epochs,
        written=written,
        training=training,
        held=len(held[1]),
        accuracy=accuracy,
        peak=meter.peak_growth,
        state_size=training.state_file.stat().st_size,
        same_batches=sum(came == expected for came, expected in zip(batches, training.expected)),
        resume_seconds=seconds,
    )


def _make_data(console: Console, folder: Path, rows: int, seed: int, stop: _Stop) -> Written:
    console.print(f"Writing {rows * ROW_BYTES / MB:,.0f} MB of data to {folder}")
    if lies_in_memory(folder):
        console.print("[yellow]That directory is itself kept in memory: --dir on a disk gives a truer picture.[/]")
    began = time.perf_counter()
    with _bar(console, DownloadColumn(), TransferSpeedColumn()) as bar:
        task = bar.add_task("Writing", total=rows * (ROW_BYTES + 1))
        written = write(folder, rows, seed, partial(_advance, bar, task, stop))
    console.print(f"Wrote {rows:,} rows in {time.perf_counter() - began:.1f} s")
    return written


def _introduce(console: Console, written: Written, budget: int) -> None:
    times = written.size / budget
    fits = "" if times > 1 else " (it would fit: --megabytes makes more)"
    console.print(f"Memory budget: {budget / MB:,.0f} MB; the data is {times:.1f} times as large{fits}")
    console.print("\nTraining a model from this pipeline, where x is the file on disk:")
    body = textwrap.dedent(inspect.getsource(pipeline).split('"""')[2])
    console.print(textwrap.indent(body.strip(), "    "), markup=False, style="cyan")
    console.print()


def _advance(bar: Progress, task: TaskID, stop: _Stop, count: float) -> None:
    stop.check()
    bar.advance(task, count)


def _train(console: Console, training: Training, epochs: int, meter: MemoryMeter, stop: _Stop) -> None:
    def numbers() -> str:
        memory = f"memory +{meter.growth / MB:,.0f} MB"
        return f"loss {training.loss:.3f}   {training.rows_per_second:,.0f} rows/s   {memory}"

    for epoch in range(1, epochs + 1):
        name = f"Epoch {epoch}/{epochs}"
        with _bar(console, TaskProgressColumn(), _Live(numbers)) as bar:
            task = bar.add_task(name, total=training.rows_per_epoch)
            training.run_epoch(epoch == epochs, partial(_advance, bar, task, stop))
        console.print(f"{name}   {numbers()}")


def _bar(console: Console, *columns: ProgressColumn) -> Progress:
    """A progress bar on a terminal; nothing where output is kept, as in a log."""
    named = TextColumn("{task.description}")
    return Progress(named, BarColumn(24), *columns, console=console, transient=True, disable=not console.is_terminal)


class _Live(ProgressColumn):
    """Text that is asked for whenever the bar is drawn, rather than made after every batch."""

    max_refresh = 0.1

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        """What it says now."""
        return Text(self._text())
