"""What ``inspect`` finds, as data."""

from dataclasses import asdict, dataclass, field
from typing import Any

from forebay.formats.faults import Fault
from forebay.formats.find import FolderReport
from forebay.formats.format import ColumnReport, Elements

VERSION = 1
"""Of the JSON form: raised if something in it changes its meaning or goes away."""

AT_MOST = "not all can be read; --check counts those that can"
"""Said by a count of rows, some of which have been found at fault, before all were read."""


@dataclass(frozen=True)
class RowCount:
    """How many rows there are. Where that is not known, `count` is an estimate, or None; `by` says what told.

    A fault that was seen before all were read leaves the number of those that are there, by ``AT_MOST``.
    """

    count: int | None
    exact: bool
    by: str


@dataclass(frozen=True)
class RowBytes:
    """Bytes of the values of a row, of those that were looked at."""

    mean: float
    least: int
    most: int
    looked_at: int


@dataclass(frozen=True)
class Report:
    """Files of one format."""

    path: str
    files: int
    bytes: int
    format: str
    title: str
    told_by: str
    compression: str | None
    rows: RowCount
    columns: list[ColumnReport]
    elements: Elements
    row_bytes: RowBytes | None
    by_number: str
    code: str | None
    details: dict[str, str]
    advice: str
    faults: int
    listed_faults: list[Fault]
    checked: bool


@dataclass(frozen=True)
class Inspection:
    """Everything that was asked about. `faults` are of what could not even be looked into."""

    reports: list[Report] = field(default_factory=list)
    folders: list[FolderReport] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing that was read is at fault."""
        return not self.faults and not any(report.faults for report in self.reports)

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return {"version": VERSION, "sound": self.sound} | asdict(self)
