"""The threads that fetch rows for ``interleave``, and whether there are any."""

from collections.abc import Callable

from forebay._native import Errands
from forebay.ops.interleave_schedule import Cycle
from forebay.ops.interleave_slot import Supply
from forebay.run import Site
from forebay.run.crew import Choice, Parking
from forebay.run.executor import ThreadExecutor
from forebay.run.hesitation import Hesitation


class Threads:
    """None at first where the cycle is hesitant. That they are of use after all is remembered in `parking`.

    What they do in Python holds others up. So files that can be read without any are read `ahead` in either case.
    """

    def __init__(
        self, site: Site, supply: Supply, cycle: Cycle, parking: Parking, ahead: Errands | None = None
    ) -> None:
        self._site = site
        self._supply = supply
        self._parking = parking
        self._tuned = cycle.tuned
        known = parking.workers.get(site.key) if cycle.tuned else None
        supply.hesitation = Hesitation() if cycle.hesitant and known is None else None
        self.wanted = known or cycle.threads
        """How many there are to be, if they are of use."""
        self.count = 0 if supply.hesitation else self.wanted
        """How many there are, once rows are asked for."""
        self._executor: ThreadExecutor[None] | None = None
        self._ahead = ahead

    @property
    def running(self) -> bool:
        """Whether rows are being fetched by them."""
        return self._executor is not None

    def tune(self, wanted: int) -> None:
        """Be so many from now on, unless none are of use."""
        hesitation = self._supply.hesitation
        if hesitation and hesitation.over:
            self._parking.choices[self._site.key] = Choice("thread", str(hesitation))
            self._supply.hesitation = hesitation = None
        if wanted != self.count and not hesitation:
            self.count = wanted
            if self._tuned:
                self._parking.workers[self._site.key] = wanted
            if self._executor is not None:
                self._executor.resize(wanted)

    def start(self) -> bool:
        """Have slots ask them for rows, if there are to be any; whether they did not before."""
        if not self.count or self._executor is not None:
            return False
        self._executor = ThreadExecutor(lambda: _call, self.count, str(self._site))
        self._supply.submit = self._executor.submit
        return True

    def stop(self) -> None:
        """End them. Slots fetch their rows themselves from now on."""
        self._supply.submit = None
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def stop_reading(self) -> None:
        """End what reads ahead, after all who may ask it to."""
        if self._ahead is not None:
            self._ahead.stop()

    def ended(self) -> None:
        """All rows have been given: tell what was found out about those of hesitant cycles."""
        if self._supply.hesitation:
            reason = f"{self._supply.hesitation}, and to hand it to a thread would add to that"
            self._parking.choices[self._site.key] = Choice("inline", reason)


def _call(fetch: Callable[[], None]) -> None:
    fetch()
