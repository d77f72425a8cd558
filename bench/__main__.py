"""``python -m bench [WORKLOAD ...] [--quick] [--only LIBRARY ...] [--rounds N] [--out DIR]``."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from bench import chart, report, runner
from bench.results import Outcome, Run
from bench.spec import Workload
from bench.workloads import WORKLOADS

RESULTS = Path(__file__).resolve().parent / "results"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Forebay beside its peers.")
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(names)}; default all")
    parser.add_argument("--quick", action="store_true", help="one round, few rows: a smoke test")
    parser.add_argument("--only", nargs="+", metavar="LIBRARY", help="leave out every other library")
    parser.add_argument("--rounds", type=int, help="how often each contender runs (default 3, quick 1)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON and the chart go")
    chosen = parser.parse_args(arguments)
    chosen.workloads = [name.lower() for name in chosen.workloads]
    unknown = sorted(set(chosen.workloads) - set(names))
    if unknown:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(names)}")
    if chosen.rounds is not None and chosen.rounds < 1:
        parser.error("--rounds must be at least 1")
    return chosen


def main(arguments: list[str]) -> int:
    # As an exception it passes through the call that waits for the child, which then ends the child.
    signal.signal(signal.SIGTERM, _terminated)
    options = parse(arguments)
    chosen = [each for each in WORKLOADS if not options.workloads or each.name in options.workloads]
    run = Run(rounds=options.rounds or (1 if options.quick else 3), quick=options.quick)
    console = Console() if sys.stdout.isatty() else Console(width=160)
    log = Console(stderr=True)
    options.out.mkdir(parents=True, exist_ok=True)
    unfinished = options.out / "partial.json"
    for workload in chosen:
        _run(workload, options.only, run, log)
        report.show(run.results[-1], console)
        run.save(unfinished)
    report.summarise(run, console)

    # Only a whole run may replace the published figures: a part of one would drop the rest.
    whole = len(chosen) == len(WORKLOADS) and not options.quick and not options.only
    base = options.out / ("latest" if whole else "partial")
    unfinished.replace(base.with_suffix(".json"))
    console.print(f"Written: {base.with_suffix('.json')}")
    if chart.draw(run, base.with_suffix(".png")):
        console.print(f"Written: {base.with_suffix('.png')}")
    else:
        console.print("No chart: matplotlib is not installed, or nothing ran.")
    return 0


def _terminated(number: int, frame: FrameType | None) -> None:
    print("Terminated from outside; the workloads finished so far are in partial.json.", file=sys.stderr)
    sys.exit(128 + number)


def _run(workload: Workload, only: list[str] | None, run: Run, log: Console) -> None:
    contenders = [each for each in workload.contenders if not only or each.library in only]
    with Progress(
        SpinnerColumn(), *Progress.get_default_columns(), TimeElapsedColumn(), console=log, transient=True
    ) as progress:
        bar = progress.add_task(workload.name, total=len(contenders) * run.rounds)
        begun = False

        def step(where: str, outcome: Outcome) -> None:
            nonlocal begun
            progress.update(bar, advance=int(begun), description=f"{where}  {outcome.contender.name}")
            begun = True
            if not log.is_terminal:
                log.print(f"{where}  {outcome.contender.name}", highlight=False)

        run.results.append(runner.run(workload, contenders, run.rounds, run.quick, step))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
