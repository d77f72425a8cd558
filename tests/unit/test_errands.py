"""A thread for jobs: in order, with what they return or raise, and gone when it is told to stop."""

import threading
from queue import SimpleQueue

import pytest

from forebay.run.errands import Errands


def test_jobs_are_done_in_order_on_one_other_thread() -> None:
    errands = Errands("test")
    done: list[int] = []
    threads: set[int] = set()

    def job(number: int) -> int:
        done.append(number)
        threads.add(threading.get_ident())
        return number

    handed = [errands.do(lambda number=number: job(number)) for number in range(20)]
    assert [errand.result() for errand in handed] == list(range(20)) == done
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    errands.stop()


def test_an_error_is_raised_to_who_asks_and_the_next_job_is_done() -> None:
    errands = Errands("test")
    failing = errands.do(lambda: 1 // 0)
    fine = errands.do(lambda: 7)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert fine.result() == 7
    errands.stop()


def test_stopping_ends_the_thread_and_drops_what_waits() -> None:
    errands = Errands("test")
    begun: SimpleQueue[None] = SimpleQueue()
    go_on: SimpleQueue[None] = SimpleQueue()
    dropped: list[int] = []
    first = errands.do(lambda: (begun.put(None), go_on.get()))
    errands.do(lambda: dropped.append(1))
    begun.get()
    before = threading.active_count()
    stopper = threading.Thread(target=errands.stop)
    stopper.start()
    while not errands._stopping:
        pass
    go_on.put(None)
    stopper.join()
    assert first.done
    assert dropped == []
    assert threading.active_count() < before


def test_stopping_before_the_first_job_is_nothing() -> None:
    Errands("test").stop()
