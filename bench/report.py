"""Tables for people: one per workload, then which targets were reached and which were missed."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.results import Outcome, Run, WorkloadResult
from bench.spec import MB, ROWS_PER_SECOND, Unit, Verdict

BUSY = 0.1


def show(result: WorkloadResult, console: Console) -> None:
    """Print one workload's table and its targets."""
    workload = result.workload
    ours = [name for name in workload.ratios_of if result.value(name) is not None]
    throughput = workload.unit == ROWS_PER_SECOND
    firsts = any(outcome.first is not None for outcome in result.outcomes)
    table = Table(title=f"{workload.name}  {escape(workload.title)}", title_justify="left", caption=workload.notes)
    table.add_column("contender")
    table.add_column(workload.unit.name, justify="right")
    table.add_column("min to max", justify="right")
    if firsts:
        table.add_column("first epoch", justify="right")
        table.add_column("CPU µs/row", justify="right")
    if throughput:
        table.add_column("rows", justify="right")
        table.add_column("RSS growth", justify="right")
    for name in ours:
        table.add_column(f"{name} is ahead by", justify="right")
    table.add_column("setting")
    for outcome in result.outcomes:
        row = [outcome.contender.name, *_figures(outcome, workload.unit, firsts)]
        row += [_ahead(result, name, outcome.contender.name) for name in ours]
        style = "bold" if outcome.contender.library == "forebay" else "dim" if outcome.contender.reference else ""
        note = outcome.problem or outcome.contender.note
        table.add_row(*row, f"[red]{escape(note)}[/red]" if outcome.problem else escape(note), style=style)
    console.print(table)
    for verdict in result.verdicts():
        console.print(f"  {_mark(verdict)}  {escape(verdict.target)}: {escape(verdict.measured)}")
    console.print()


def summarise(run: Run, console: Console) -> None:
    """Say in one place which targets were missed, and what could not be judged."""
    verdicts = [(result.workload.name, verdict) for result in run.results for verdict in result.verdicts()]
    reached = sum(verdict.reached is True for _, verdict in verdicts)
    console.print(f"[bold]{reached} of {len(verdicts)} targets reached.[/bold]")
    for name, verdict in verdicts:
        if verdict.reached is not True:
            line = f"{name}  {verdict.target}: {verdict.measured}"
            console.print(f"  {_mark(verdict)}  {escape(line)}")
    others = run.others_share()
    if others > BUSY:
        console.print(
            f"[yellow]Other processes had {others:.0%} of the machine while this ran, and contenders with "
            "threads of their own suffer most from that. Repeat it on a quiet machine.[/yellow]"
        )
    if run.quick:
        console.print("A quick run shows that everything works; its figures mean little.")


def _figures(outcome: Outcome, unit: Unit, firsts: bool) -> list[str]:
    if outcome.median is None or outcome.spread is None:
        return [""] * (2 + 2 * firsts + 2 * (unit == ROWS_PER_SECOND))
    low, high = outcome.spread
    cells = [quantity(outcome.median, unit), f"{quantity(low, unit)} to {quantity(high, unit)}"]
    if firsts:
        cells.append("" if outcome.first is None else quantity(outcome.first, unit))
        cells.append("" if outcome.cpu is None else f"{outcome.cpu:.3g}")
    if unit == ROWS_PER_SECOND:
        growth = "" if outcome.growth is None else f"{outcome.growth / MB:,.0f} MB"
        cells += [f"{outcome.rows:,}", growth]
    return cells


def quantity(value: float, unit: Unit) -> str:
    """Three figures, which is more than the noise leaves meaningful."""
    if not unit.higher_is_better:
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def _ahead(result: WorkloadResult, ours: str, other: str) -> str:
    ratio = result.ahead(ours, other) if other != ours else None
    return "" if ratio is None else f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def _mark(verdict: Verdict) -> str:
    if verdict.reached is None:
        return "[yellow]not judged[/yellow]"
    return "[green]reached[/green]" if verdict.reached else "[red bold]MISSED[/red bold]"
