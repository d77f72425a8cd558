"""When working ahead on a thread pays."""

# So many blocks tell what comes next.
_WINDOW = 16
# To hand a block over takes both sides some 0.1 ms of processor time together, and the memory of several blocks in turn
# does not stay in the caches. That is the least that has to be gained.
_LITTLE = 1.5e-4
_MUCH = 5e-4


class Overlap:
    """What working ahead can gain is the time in which whoever asks for blocks is busy with them.

    Args:
        ahead: what to do until that is known.
    """

    def __init__(self, ahead: bool) -> None:
        self.ahead = ahead
        """Whether to."""
        self.busy = 0.0
        """Seconds that a block kept them, on average, when that was last looked at."""
        self._given: float | None = None
        self._seconds = 0.0
        self._blocks = 0

    def asked(self, now: float) -> bool:
        """A block is asked for at that time. Returns `ahead`."""
        if self._given is not None:
            self._seconds += now - self._given
            self._blocks += 1
            if self._blocks == _WINDOW:
                self.busy = self._seconds / _WINDOW
                self.ahead = self.busy > (_LITTLE if self.ahead else _MUCH)
                self._seconds, self._blocks = 0.0, 0
        return self.ahead

    def given(self, now: float) -> None:
        """It was handed out at that time."""
        self._given = now
