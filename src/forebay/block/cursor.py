"""Where a row is: enough to make a plan continue there, in this process or another."""

from dataclasses import dataclass
from typing import Any

State = dict[str, Any]
"""What an operator needs to continue: plain JSON. ``None`` in its place means the start."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The row that comes `skip` rows after the one that `state` leads to.

    A cursor names a row, not a block: after seeking to it, blocks may be cut elsewhere.
    """

    state: State | None
    skip: int = 0

    def after(self, rows: int) -> "Cursor":
        """The cursor of the row that many rows later."""
        return Cursor(self.state, self.skip + rows) if rows else self

    def to_json(self) -> list[Any]:
        """A JSON value that ``from_json`` reads back."""
        return [self.state, self.skip]

    @staticmethod
    def from_json(value: Any) -> "Cursor":
        """The cursor that ``to_json`` wrote; any other value is a ValueError."""
        state, skip = value
        if not (state is None or isinstance(state, dict)) or not isinstance(skip, int) or skip < 0:
            raise ValueError(f"not a cursor: {value!r}")
        return Cursor(state, skip)


START = Cursor(None)
"""The first row of everything."""
