"""``forebay inspect``: what is in a file or a folder."""

import json
import sys
from contextlib import AbstractContextManager
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from forebay.cli.output import console, memory_size, plain, progress, told
from forebay.formats.faults import Fault
from forebay.formats.find import FolderReport, Group
from forebay.formats.inspect import Advance
from forebay.formats.inspect import inspect as look_into
from forebay.formats.report import AT_MOST, Inspection, Report
from forebay.formats.shown import size_text

_SHOWN_FAULTS = 20


def inspect(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, patterns, folders, or URLs.")],
    head: Annotated[int, typer.Option(min=0, help="How many elements to show.")] = 3,
    full: Annotated[bool, typer.Option("--full", help="Read everything, for exact numbers.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Read everything, and list all that is damaged.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    memory: Annotated[str, typer.Option(callback=memory_size, help="The most memory to use for it.")] = "256MiB",
) -> None:
    """Tell what is in files: format, rows, columns, a few elements, sizes, damage.

    Formats are recognised by what is in a file, then by its name. Unless
    --full or --check is given, no more than 64 MiB of each format are read, and
    numbers that are estimates are called that. The exit code is 1 if something
    is missing or damaged.
    """
    with told():
        found = look_into(paths, head=head, full=full, check=check, memory=memory, watch=_watch)
        if as_json:
            json.dump(found.to_json(), sys.stdout, indent=1)
            sys.stdout.write("\n")
        else:
            _show(found, check)
    if not found.sound:
        raise typer.Exit(1)


def _watch(group: Group) -> "AbstractContextManager[Advance]":
    return progress(f"reading {group.format.title}", 1.0)


def _show(found: Inspection, check: bool) -> None:
    out = console()
    for folder in found.folders:
        # What is all of one format is told below.
        if len(folder.parts) != 1:
            _show_folder(out, folder)
    for report in found.reports:
        _show_report(out, report, check)
    if found.faults:
        _show_faults(out, found.faults, len(found.faults))


def _show_folder(out: Console, folder: FolderReport) -> None:
    out.print(plain(folder.path, "bold"))
    out.print(f"  {folder.files:,} files, {size_text(folder.bytes)}")
    table = Table("  format", "files", "size", box=None, padding=(0, 2, 0, 0))
    for part in folder.parts:
        packed = f", {part.compression}" if part.compression else ""
        table.add_row(f"  {part.title}{packed}", f"{part.files:,}", size_text(part.bytes))
    out.print(table)
    out.print()


def _show_report(out: Console, report: Report, check: bool) -> None:
    out.print(plain(report.path, "bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(report, check):
        table.add_row(f"  {name}", plain(value))
    out.print(table)
    if report.columns:
        out.print()
        out.print(_columns(report))
    if report.elements:
        out.print()
        out.print(_elements(report))
    if report.code is not None:
        out.print()
        # Not wrapped, to be pasted.
        out.print(plain(report.code, "cyan"), soft_wrap=True)
    if report.faults:
        out.print()
        _show_faults(out, report.listed_faults, report.faults)
    out.print()


def _lines(report: Report, check: bool) -> list[tuple[str, str]]:
    packed = f", compressed with {report.compression}" if report.compression else ""
    told_by = "" if report.told_by == "content" else f" (by its {report.told_by})"
    files = "" if report.files == 1 else f" in {report.files:,} files"
    lines = [("format", f"{report.title}{packed}{told_by}"), ("size", f"{size_text(report.bytes)}{files}")]
    rows = report.rows
    if rows.count is not None:
        good = " that can be read" if report.faults else ""
        about = "at most" if rows.by == AT_MOST else "about"
        lines.append(("rows", f"{rows.count:,}{good}" if rows.exact else f"{about} {rows.count:,}, {rows.by}"))
    elif rows.by:
        lines.append(("rows", rows.by))
    if report.row_bytes is not None:
        size = report.row_bytes
        some = "" if size.looked_at == rows.count else f" (of {size.looked_at:,} rows)"
        lines.append(("bytes in a row", f"{size.mean:,.1f} on average, {size.least:,} to {size.most:,}{some}"))
        lines.append(("by number", _by_number(report.by_number)))
    lines += list(report.details.items())
    if report.advice:
        lines.append(("to read it", report.advice))
    if report.checked and not report.faults:
        lines.append(("checked", "everything was read, nothing is damaged"))
    elif check and report.row_bytes is not None and not report.checked:
        lines.append(("checked", "not to the end: there is no way to go on behind the fault below"))
    return lines


def _by_number(how: str) -> str:
    return f"with {how}: shuffle() then needs no buffer" if how.startswith("index") else how


def _columns(report: Report) -> Table:
    table = Table("  column", "dtype", "shape", "values", "present", box=None, padding=(0, 2, 0, 0))
    for column in report.columns:
        shape = "differs" if column.shape is None else str(column.shape).replace("None", "?")
        values = "" if column.values is None else "{} to {}".format(*column.values)
        if column.values is not None and column.values[0] == column.values[1]:
            values = str(column.values[0])
        present = "" if column.present == 1 else f"{column.present:.1%}"
        table.add_row(plain(f"  {column.name}"), column.dtype, shape, values, present)
    return table


def _elements(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, element in enumerate(report.elements):
        for i, (name, value) in enumerate(element.items()):
            table.add_row("" if i else f"  [{number}]".replace("[", r"\["), plain(name), plain(value))
    return table


def _show_faults(out: Console, faults: list[Fault], count: int) -> None:
    out.print(f"{count:,} {'fault' if count == 1 else 'faults'}", style="bold red")
    for fault in faults[:_SHOWN_FAULTS]:
        where = f"{fault.place}: " if fault.file else ""
        out.print(plain(f"  {where}{fault.reason}"), soft_wrap=True)
    if count > _SHOWN_FAULTS:
        out.print(f"  and {count - _SHOWN_FAULTS:,} more; --json lists up to 1,000")
