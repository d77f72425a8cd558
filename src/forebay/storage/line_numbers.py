"""Which line of a file a place is in, for errors: found by reading the file once more up to there."""

from forebay.storage.input_file import is_url

# More than that, nobody is to wait for. Files elsewhere would have to be fetched again.
_MOST = 1 << 30
_PIECE = 1 << 20


class LineNumbers:
    """Goes on from the last place that it was asked for, so that all of a file's faults cost one reading of it."""

    def __init__(self) -> None:
        # Replaced as a whole: errors of functions are told on other threads than those of files.
        self._known = ("", 0, 1)

    def at(self, path: str, offset: int) -> int | None:
        """The number of the line that a byte is in, from 1 on; None if it takes too long to find out."""
        known, start, line = self._known
        if known != path or start > offset:
            start, line = 0, 1
        path_here = path.removeprefix("file://")
        if offset - start > _MOST or is_url(path_here):
            return None
        try:
            with open(path_here, "rb") as file:
                file.seek(start)
                while start < offset:
                    piece = file.read(min(_PIECE, offset - start))
                    if not piece:
                        return None
                    start += len(piece)
                    line += piece.count(b"\n")
        except OSError:
            return None
        self._known = (path, offset, line)
        return line
