"""How far long work has come: on a terminal as it goes, elsewhere in the log, at times that an injected clock tells."""

import functools
import io
import logging
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.ops import external_shuffle, shuffle_buffer
from forebay.ops.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Shows what it is set to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def no_terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """The standard error output from now on. Not a fixture: pytest puts its own in place when the test begins."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    return out


def work(clock: Clock, seconds: int, wanted: bool | None = None) -> Iterator[int]:
    """Ten rows a second; the second whenever one is over."""
    clock.now = Clock.now
    with Progress("reading", wanted, clock) as progress:
        for second in range(1, seconds + 1):
            clock.now = Clock.now + second
            progress.update(10 * second, "rows")
            yield second


def test_without_a_terminal_the_log_has_a_line_ever_more_rarely(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = no_terminal(monkeypatch)
    with caplog.at_level(logging.INFO, "forebay"):
        for second in work(clock, 2000):
            assert bool(caplog.records) == (second >= 10)
    seconds = [10, 30, 70, 150, 310, 630, 1230, 1830]
    assert caplog.messages == [
        *(f"reading: {10 * each:,} rows, 10/s, {each:,} s so far" for each in seconds),
        "reading: 20,000 rows, 10/s, 2,000 s in all",
    ]
    assert {(record.name, record.levelno) for record in caplog.records} == {("forebay", logging.INFO)}
    assert errors.getvalue() == ""


def test_what_is_soon_done_or_fails_has_no_last_line(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    no_terminal(monkeypatch)
    with caplog.at_level(logging.INFO, "forebay"):
        assert list(work(clock, 9)) == list(range(1, 10))
        assert caplog.messages == []
        running = work(clock, 100)
        while next(running) < 12:
            pass
        with pytest.raises(ValueError, match="no more"):
            running.throw(ValueError("no more"))  # type: ignore[attr-defined]
    assert [message.rpartition(" s ")[2] for message in caplog.messages] == ["so far"]


def test_nothing_is_seen_of_it_by_default(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = no_terminal(monkeypatch)
    assert logging.getLogger("forebay").getEffectiveLevel() == logging.WARNING
    list(work(clock, 100))
    assert (caplog.records, errors.getvalue()) == ([], "")


def test_a_terminal_has_a_line_that_goes_away_and_the_log_none(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with caplog.at_level(logging.INFO, "forebay"):
        list(work(clock, 12))
    lines = sys.stderr.getvalue().split("\r\x1b[K")  # type: ignore[attr-defined]
    assert lines == ["", *(f"reading: {10 * each} rows, 10/s" for each in range(1, 13)), ""]
    assert caplog.messages == []


@pytest.mark.parametrize("wanted", [True, False])
def test_who_asks_for_it_or_not_gets_that_anywhere(
    wanted: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors = no_terminal(monkeypatch)
    with caplog.at_level(logging.INFO, "forebay"):
        list(work(clock, 100, wanted))
    assert (caplog.messages, bool(errors.getvalue())) == ([], wanted)


class ToLog:
    """As those that send everything that is printed to a log: without `isatty`."""

    def write(self, text: str) -> int:
        raise AssertionError("written to")


class Raising(Terminal):
    def isatty(self) -> bool:
        raise RuntimeError("no terminal")


class Gone(Terminal):
    """A terminal that has been closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


class Full(Terminal):
    def flush(self) -> None:
        raise OSError


def closed() -> io.StringIO:
    made = io.StringIO()
    made.close()
    return made


@pytest.mark.parametrize("make", [lambda: None, closed, ToLog, Raising, Gone, Full])
@pytest.mark.parametrize("wanted", [None, True])
def test_without_a_standard_error_output_the_log_has_it(
    make: Any, wanted: bool | None, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if wanted and make is ToLog:
        make = Gone
    monkeypatch.setattr(sys, "stderr", make())
    with caplog.at_level(logging.INFO, "forebay"):
        seconds = list(work(clock, 10, wanted))
    if wanted and make is Raising:
        # It is shown there, if that is asked for.
        assert "10 rows" in sys.stderr.getvalue()  # type: ignore[union-attr]
    else:
        assert len(caplog.messages) == 2
    assert seconds == list(range(1, 11))


@pytest.mark.parametrize("make", [lambda: None, closed, ToLog, Raising])
def test_saving_needs_no_standard_error_output(make: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stderr", make())
    fb.Dataset.range(3).save(tmp_path / "saved")
    assert [int(x) for x in fb.Dataset.load(tmp_path / "saved")] == [0, 1, 2]


def test_a_log_that_cannot_be_written_to_ends_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Handler(logging.Handler):
        tried = 0

        def emit(self, record: logging.LogRecord) -> None:
            self.tried += 1
            raise ValueError("I/O operation on closed file")

    no_terminal(monkeypatch)
    logger, handler = logging.getLogger("forebay"), Handler()
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, "forebay"):
            assert list(work(clock, 40)) == list(range(1, 41))
    finally:
        logger.removeHandler(handler)
    assert handler.tried == 2


def test_a_shuffle_of_everything_tells_how_far_it_has_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    no_terminal(monkeypatch)
    # Six seconds for each look at the clock, of which there is one for every block.
    ticking: Any = functools.partial(next, count(0.0, 6.0))
    monkeypatch.setattr(external_shuffle, "Progress", functools.partial(Progress, clock=ticking))
    dataset = fb.Dataset.from_generator(lambda: iter(range(100))).shuffle(seed=1)
    with caplog.at_level(logging.INFO, "forebay"):
        assert sorted(map(int, dataset.with_options(fb.Options(block_bytes=80)))) == list(range(100))
    assert len(caplog.messages) > 1
    assert all(text.startswith("shuffle at test_progress.py:") for text in caplog.messages)
    assert "reading: 100 elements" in caplog.messages[-1]
    assert caplog.messages[-1].endswith(" s in all")


def test_a_buffer_tells_how_far_it_is_filled_also_on_disk_and_after_a_resume(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    no_terminal(monkeypatch)
    ticking: Any = functools.partial(next, count(0.0, 6.0))
    monkeypatch.setattr(shuffle_buffer, "Progress", functools.partial(Progress, clock=ticking))
    rows = [np.full(1000, number) for number in range(300)]
    dataset = fb.Dataset.from_generator(lambda: iter(rows)).shuffle(200, seed=1)
    dataset = dataset.with_options(fb.Options(memory="1MiB"))
    with caplog.at_level(logging.INFO, "forebay"):
        with iter(dataset) as rest:
            next(rest)
            state = rest.state_dict()
            assert "filling its buffer: 200 of 200 elements" in caplog.messages[-1]
            assert len(caplog.messages) > 1
            expected = [int(row[0]) for row in rest]
        caplog.clear()
        with iter(dataset) as again:
            again.load_state_dict(state)
            assert [int(row[0]) for row in again] == expected
    assert "filling its buffer again: " in caplog.messages[-1]
    assert all(text.startswith("shuffle at test_progress.py:") for text in caplog.messages)
