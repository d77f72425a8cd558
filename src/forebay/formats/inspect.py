"""What is in files and folders: ``inspect``."""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

import forebay as fb
from forebay.errors import ForebayError
from forebay.formats.faults import Faults, passed_over
from forebay.formats.find import Group, find
from forebay.formats.format import Facts, Reading
from forebay.formats.report import AT_MOST, Inspection, Report, RowBytes, RowCount
from forebay.formats.survey import Limits, Survey, look
from forebay.plan.site import unplaced

# As much of the contents as is read to count rows and look at their sizes, and as many rows where they are counted.
_LOOK_BYTES, _LOOK_ROWS = 64 << 20, 1000
_MEMORY = "256MiB"
_EVERY_FAULT = _EVERY_ROW = 1 << 62

Advance = Callable[[float], None]
"""Told which share of a group's files has been read, as far as that is known."""
Watch = Callable[[Group], "AbstractContextManager[Advance]"]


def _unwatched(group: Group) -> "AbstractContextManager[Advance]":
    return nullcontext(lambda share: None)


def inspect(
    paths: "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]",
    *,
    head: int = 3,
    full: bool = False,
    check: bool = False,
    look_bytes: int = _LOOK_BYTES,
    memory: str | int = _MEMORY,
    watch: Watch = _unwatched,
) -> Inspection:
    """What is in files: format, rows, columns, the first elements, sizes, faults, and how to open them.

    Args:
        paths: paths, patterns, folders, or URLs that fsspec knows.
        head: how many elements to show of each format.
        full: read everything, for exact numbers.
        check: read everything, to find all faults.
        look_bytes: read so much of the contents of each format otherwise.
        memory: the budget for that.
        watch: gives what is told how far it has come, for each group of files.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/a.jsonl"
    >>> with open(path, "w") as file:
    ...     _ = file.write('{"x": 1}\\n{"x": 2}\\n')
    >>> report = inspect(path).reports[0]
    >>> report.format, report.rows.count, report.columns[0].dtype, report.elements[1]
    ('json', 2, 'int64', {'x': '2'})
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options = fb.Options(memory=memory)
    found = find(os.fspath(path) for path in given)
    limits = Limits() if full or check else Limits(_LOOK_ROWS, look_bytes)
    with unplaced():
        reports = [_report(group, head, limits, check, options, watch) for group in found.groups]
    return Inspection(reports, found.folders, found.faults.listed)


def _report(group: Group, head: int, limits: Limits, check: bool, options: fb.Options, watch: Watch) -> Report:
    format, files = group.format, group.files
    faults = Faults()
    watcher = format.watch()
    survey = Survey(watcher, head)
    facts, code, failure = Facts(), None, None
    with passed_over(faults):
        try:
            facts, code = format.facts(files), format.code(files)
        except ForebayError as error:
            failure = error
        if format.open is not None:
            try:
                _look(group, options, survey, _limits(group, facts, limits, head), facts, watch)
            except ForebayError as error:
                faults.add(error, files.paths[0])
    known = {fault.file for fault in faults.listed}
    for fault in facts.faults:
        if not survey.complete and fault.path not in known:
            faults.add(fault)
    if failure is not None and not faults.count:
        # Otherwise reading has met the same, and named it.
        faults.add(failure, files.paths[0])
    imports = "import glob" if code and "glob.glob(" in code else None
    lines = [line for line in (imports, f"ds = {code}" if code else None, watcher.code()) if line]
    return Report(
        path=_path(group),
        files=len(files.paths),
        bytes=files.bytes,
        format=format.name,
        title=format.title,
        told_by=group.told_by,
        compression=files.compression,
        rows=_rows(group, facts, survey, faults),
        columns=survey.columns(),
        elements=survey.elements(),
        row_bytes=_row_bytes(survey),
        by_number=format.by_number(files) if format.open is not None else "no",
        code="\n".join(lines) if lines else None,
        details=facts.details | watcher.details(),
        advice=format.advice,
        faults=faults.count,
        listed_faults=faults.listed,
        checked=check and survey.complete,
    )


def _look(group: Group, options: fb.Options, survey: Survey, limits: Limits, facts: Facts, watch: Watch) -> None:
    assert group.format.open is not None
    some = group.format.look_rows is not None and limits != Limits()
    reading = Reading("skip", _EVERY_FAULT, rows=limits.rows if some else None)
    dataset = group.format.open(group.files, reading).with_options(options)
    with watch(group) as advance:
        look(dataset, survey, limits, lambda seen: advance(_share(group, facts, seen)))
    if some and facts.rows is not None and facts.rows > limits.rows:
        survey.complete = False


def _limits(group: Group, facts: Facts, limits: Limits, head: int) -> Limits:
    """Where rows are not counted yet, as many as the bytes allow; of what takes long to read, only a few.

    These few are the same ones every time, however many bytes they are.
    """
    if limits == Limits():
        return limits
    if group.format.look_rows is not None:
        return Limits(max(group.format.look_rows, head))
    return Limits(_EVERY_ROW if facts.rows is None else max(limits.rows, head), limits.bytes)


def _read(group: Group, survey: Survey) -> float | None:
    """How many bytes of the files were read before the last block, about; None if nothing tells."""
    if survey.place is None:
        return None
    file, at = survey.place
    return sum(group.files.sizes[:file]) + at / group.files.head.ratio


def _share(group: Group, facts: Facts, survey: Survey) -> float:
    if facts.rows:
        return min(survey.rows / facts.rows, 1.0)
    return min((_read(group, survey) or 0) / max(group.files.bytes, 1), 1.0)


def _rows(group: Group, facts: Facts, survey: Survey, faults: Faults) -> RowCount:
    if survey.complete:
        return RowCount(survey.rows, True, "all were read")
    if facts.rows is not None and faults.count:
        return RowCount(facts.rows, False, AT_MOST)
    if facts.rows is not None:
        return RowCount(facts.rows, True, "an index or a header tells")
    read = _read(group, survey)
    if read and survey.before:
        count = round(survey.before / read * group.files.bytes)
        return RowCount(max(count, survey.rows), False, f"estimated from the first {survey.before:,}")
    return RowCount(None, False, "not known" if group.format.open is not None else "")


def _row_bytes(survey: Survey) -> RowBytes | None:
    if not survey.rows:
        return None
    return RowBytes(survey.total / survey.rows, survey.least, survey.most, survey.rows)


def _path(group: Group) -> str:
    """What files are called together."""
    files = group.files
    if len(files.paths) == 1:
        return files.paths[0]
    if group.format.folder:
        return files.head.path
    return files.pattern or f"{files.paths[0]} and {len(files.paths) - 1:,} more"
