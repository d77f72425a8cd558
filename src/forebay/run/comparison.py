"""Whether processes bring more than the thread that asks would by itself, found by turns of one and the other."""

# Seconds after which it shows what processes bring, and those of a turn if it comes to turns.
_FIRST = 1.0
_TURN = 0.25
# Large chunks may take longer than that.
_CHUNKS = 3
# The step holds its consumer up if that waits for more than this share of the time; otherwise rates say nothing of it.
_HELD_UP = 0.5
# By so much the thread alone has to be faster, and in so many turns one after another: the load of a machine changes.
_MARGIN = 1.15
_TURNS = 3


class Comparison:
    """Counts what comes out while processes are at work, and while they rest. Decides once.

    A function was measured on one thread, so that processes which make more than that are worth it without any trial.
    On a machine with other things to do both have less of a processor: only turns, one right after another, tell.
    """

    def __init__(self) -> None:
        self.alone = False
        """Whether it is the turn of the thread that asks."""
        self.verdict: str | None = None
        """What speaks for that thread, if it is better; empty if processes are; None as long as nobody knows."""
        self._turns = 0  # Those that processes have lost.
        self._rate = 0.0  # Of processes, in the last turn of theirs.
        self.begin(0)

    def begin(self, passing: int) -> None:
        """Count anew, behind so many chunks that are still of the other's making, or first have to get going."""
        self._passing = passing
        self._since: tuple[float, float] | None = None  # The clock, and what had been waited then.
        self._rows = self._chunks = 0

    def observe(self, now: float, rows: int, waited: float, known: float) -> bool:
        """A chunk has come out; whether the turn is over. `waited` is the sum of what its consumer has waited for the
        step, and `known` the rows a second that the function has been seen to make on one thread."""
        if self.verdict is not None:
            return False
        if self._since is None:
            self._passing -= 1
            if self._passing < 0:
                self._since = now, waited
            return False
        self._rows += rows
        self._chunks += 1
        seconds = now - self._since[0]
        if seconds < (_TURN if self._turns or self.alone else _FIRST) or self._chunks < _CHUNKS:
            return False
        held_up = waited - self._since[1] > _HELD_UP * seconds
        return self._judge(self._rows / seconds, held_up, known)

    def _judge(self, rate: float, held_up: bool, known: float) -> bool:
        if self.alone:
            self._turns = self._turns + 1 if rate > _MARGIN * self._rate else 0
            if not self._turns:
                self.verdict = ""
            elif self._turns == _TURNS:
                self.verdict = (
                    f"it holds the interpreter lock, but processes give {self._rate / rate:.2f} times as many elements "
                    "a second as none do"
                )
                return True
        elif not held_up:
            self.begin(0)
            return False
        elif rate >= known:
            self.verdict = ""
            return False
        self._rate = self._rate if self.alone else rate
        self.alone = not self.alone
        return True
