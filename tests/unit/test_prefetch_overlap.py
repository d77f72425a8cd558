"""With AUTOTUNE, working ahead is given up where nothing is gained by it, and taken up again; rows stay as they are."""

import time

import pytest

import forebay as fb
from forebay import AUTOTUNE, Dataset
from forebay.run.overlap import Overlap
from unit.prefetching import ROW_BY_ROW, assert_no_thread_is_left, workers


class Consumer:
    """Asks for blocks that take a second to make, by a clock of its own."""

    def __init__(self, ahead: bool) -> None:
        self.overlap = Overlap(ahead)
        self._now = 100.0

    def take(self, blocks: int, busy: float) -> bool:
        """So many blocks, busy with each for so long; whether the next ones are made ahead."""
        for _ in range(blocks):
            self.overlap.asked(self._now)
            self.overlap.given(self._now + 1.0)
            self._now += 1.0 + busy
        return self.overlap.ahead


def test_who_does_nothing_with_blocks_gains_nothing() -> None:
    consumer = Consumer(ahead=True)
    assert consumer.take(10, busy=1e-5)
    assert not consumer.take(20, busy=1e-5)
    assert consumer.overlap.busy == pytest.approx(1e-5, rel=1e-3)


def test_who_is_busy_with_them_does_and_one_long_pause_counts() -> None:
    assert Consumer(ahead=True).take(100, busy=5e-3)
    consumer = Consumer(ahead=False)
    consumer.take(8, busy=1e-5)
    consumer.take(1, busy=0.5)
    assert consumer.take(8, busy=1e-5)


def test_between_the_two_it_stays_as_it_is() -> None:
    assert Consumer(ahead=True).take(100, busy=3e-4)
    assert not Consumer(ahead=False).take(100, busy=3e-4)


def test_the_thread_goes_and_comes_back_and_no_row_is_lost() -> None:
    dataset = Dataset.range(1_000_000).prefetch(AUTOTUNE).with_options(ROW_BY_ROW)
    with iter(dataset) as it:
        count = 0
        while count == 0 or workers():
            assert next(it) == count
            count += 1
        assert count > 16
        assert it.stats()[0].workers == 0
        state = it.state_dict()
        while not workers():
            time.sleep(0.001)  # Busy with the element.
            assert next(it) == count
            count += 1
        assert next(it) == count
    assert_no_thread_is_left()
    with iter(dataset) as again:
        again.load_state_dict(state)
        assert next(again) == state["position"]


def test_what_was_found_is_told_and_remembered(capsys: pytest.CaptureFixture[str]) -> None:
    dataset = Dataset.range(100_000).prefetch(AUTOTUNE).with_options(ROW_BY_ROW)
    with iter(dataset) as it:
        while not it.stats()[0].elements or workers():
            next(it)
    dataset.explain()
    assert "inline: whoever asks is busy for" in capsys.readouterr().out
    with iter(dataset) as it:
        next(it)
        assert not workers()


def test_an_error_comes_behind_the_rows_before_it_without_a_thread() -> None:
    def fails(x: int) -> int:
        if x == 50_000:
            raise ValueError("fifty thousand")
        return x

    it = iter(Dataset.range(100_000).map(fails).prefetch(AUTOTUNE).with_options(ROW_BY_ROW))
    for i in range(50_000):
        assert next(it) == i
    with pytest.raises(fb.FunctionError, match=r"element 50000: .*fifty thousand"):
        next(it)
    it.close()
    assert_no_thread_is_left()


def test_without_the_tuner_or_with_a_number_there_is_always_one() -> None:
    untuned = fb.Options(block_bytes=1)
    untuned.autotune.enabled = False
    for dataset in (
        Dataset.range(2_000).prefetch(AUTOTUNE).with_options(untuned),
        Dataset.range(2_000).prefetch(3).with_options(ROW_BY_ROW),
    ):
        with iter(dataset) as it:
            for _ in range(1_000):
                next(it)
            assert len(workers()) == 1
