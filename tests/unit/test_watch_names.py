"""What ``fb.watch`` calls a container that kept growing."""

import sys
import weakref
from types import FrameType

import numpy as np

from forebay.observe.census import census
from forebay.observe.holders import grown_holders


def test_a_census_finds_who_keeps_them() -> None:
    class Keeper:
        def __init__(self) -> None:
            self.results: dict[int, bytes] = {}

    keeper = Keeper()
    mine: list[object] = []
    before = census(0)
    keeper.results.update((i, bytes(100)) for i in range(5000))
    mine.extend(object() for _ in range(4000))
    found = {each.name: each.length for each in grown_holders(before, census(4000))}
    assert found.get("list mine in test_a_census_finds_who_keeps_them()") == 4000
    assert found.get("dict Keeper.results") == 5000


def test_variables_of_functions_are_found_and_left_as_they_were() -> None:
    def outer() -> set[str]:
        mine: dict[str, list[object]] = {"loss": []}
        seen = locals()
        also: list[object] = []

        def inner() -> set[str]:
            before = census(0)
            mine["loss"].extend(object() for _ in range(4000))
            also.extend(object() for _ in range(5000))
            return {each.name for each in grown_holders(before, census(4000))}

        names = inner()
        assert seen["mine"] is mine
        assert len(also) == 5000
        return names

    names = outer()
    assert "list also in inner()" in names
    assert "list mine['loss'] in inner()" in names


def test_variables_are_let_alone_while_a_debugger_looks() -> None:
    """It writes back what it was shown, so that what had been taken out of that would be gone from the function."""
    mine: list[object] = []
    before = census(0)
    mine.extend(object() for _ in range(4000))
    names = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is looked_at.__code__:
            names.update(each.name for each in grown_holders(before, census(4000)))

    def looked_at(first: list[object]) -> int:
        return len(first)

    earlier = sys.gettrace()
    sys.settrace(trace)
    try:
        assert looked_at(mine) == 4000
    finally:
        sys.settrace(earlier)
    assert names == {"a list of object"}


def test_what_exec_has_assigned_stays() -> None:
    """In Python 3.11 and 3.12 that is kept in the copy of a function's variables, and nowhere else."""
    total = 0
    found: dict[str, int] = {}
    look = "grown_holders(census(0), census(4000))"
    exec("more = 1")
    grown_holders(census(0), census(4000))
    assert eval("more") == 1
    exec(f"total = 5; {look}; found['total'] = total")
    assert found == {"total": 5}
    assert total == 0


def test_a_variable_is_kept_no_longer_than_its_function_has_it() -> None:
    mine = np.zeros(10)
    gone = weakref.ref(mine)
    kept: list[object] = []
    before = census(0)
    kept.extend(object() for _ in range(4000))
    assert [each.length for each in grown_holders(before, census(4000))] == [4000]
    del mine
    assert gone() is None
