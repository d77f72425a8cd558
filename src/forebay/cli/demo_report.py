"""What the demo says at its end."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from forebay.cli.demo_data import Written
from forebay.cli.demo_train import Training

MB = 1_000_000
_NEXT_STEPS = (
    "Call .explain() on a dataset: it prints the plan as written and as it runs.",
    "Read README.md: the same with your own arrays, in ten lines.",
    "Run `make bench`: the same work through tf.data, torch and others.",
)


@dataclass(frozen=True)
class Outcome:
    """What was measured; memory and sizes in bytes."""

    budget: int
    epochs: int
    written: Written
    training: Training
    held: int
    accuracy: float
    peak: int
    state_size: int
    same_batches: int
    resume_seconds: float

    def problems(self) -> list[str]:
        """What did not go as promised."""
        found = []
        if self.peak > self.budget:
            found.append(
                f"Over budget: the process grew by {self.peak / MB:,.0f} MB, {self.budget / MB:,.0f} MB were allowed."
            )
        if not self.training.every_row_once:
            found.append("Rows were lost or came twice: not every row was seen exactly once in each epoch.")
        if self.same_batches < len(self.training.expected):
            found.append(
                f"The resumed run differed: {self.same_batches} of {len(self.training.expected)} batches were the same."
            )
        return found

    def show(self, console: Console) -> None:
        """Figures, with what they mean beside them, and where to go from here."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for name, text in (
            ("Data", self._data()),
            ("Training", self._speed()),
            ("Model", self._model()),
            ("Memory", self._memory()),
            ("Shuffle", self._shuffle()),
            ("Resume", self._resume()),
        ):
            table.add_row(name, text)
        console.print("\n[bold]What happened[/]")
        console.print(table)
        console.print("\n[bold]Next[/]")
        for number, step in enumerate(_NEXT_STEPS, 1):
            console.print(f"{number}. {step}")

    def _data(self) -> str:
        size = self.written.size
        return (
            f"{self.written.rows:,} rows, {size / MB:,.1f} MB on disk, {size / self.budget:.1f} times the budget (just "
            "written, so the system may still have it in its file cache)"
        )

    def _speed(self) -> str:
        run = self.training
        bandwidth = run.rows_per_second * self.written.size / self.written.rows / MB
        return (
            f"{run.rows_per_second:,.0f} rows/s ({bandwidth:,.0f} MB/s), the model's own work included: {run.rows:,} "
            f"rows in {run.seconds:.1f} s, {run.waited / run.seconds:.0%} of it spent waiting for data"
        )

    def _model(self) -> str:
        return (
            f"loss {self.training.loss:.3f}, {self.accuracy:.1%} right on {self.held:,} rows that it never saw; "
            f"the rule that made the labels gets {self.written.best_accuracy:.1%}"
        )

    def _memory(self) -> str:
        return (
            f"the process grew by {self.peak / MB:,.1f} MB at its peak: {self.peak / self.budget:.0%} of the budget "
            f"of {self.budget / MB:,.0f} MB, {self.peak / self.written.size:.0%} of the data"
        )

    def _shuffle(self) -> str:
        counted = "each was counted exactly once" if self.training.every_row_once else "NOT each came exactly once"
        return (
            f"uniform over all {self.training.rows_per_epoch:,} training rows, without a buffer and anew in every "
            f"epoch; {counted}"
        )

    def _resume(self) -> str:
        return (
            f"stopped after batch {self.training.saved_after:,} of epoch {self.epochs}: the state on disk takes "
            f"{self.state_size:,} bytes; a new iterator gave a batch after {1000 * self.resume_seconds:,.0f} ms, "
            f"and {self.same_batches} of {len(self.training.expected)} batches that followed were the same to the byte"
        )
