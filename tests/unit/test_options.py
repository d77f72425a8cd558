"""Options: inherited, overridden, harmless to the elements, and part of no state."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset, Options
from forebay.options import DEFAULTS
from unit.support import SETTINGS, plain


def in_force(**given: Any) -> Options:
    """The defaults with some fields set."""
    return dataclasses.replace(DEFAULTS, **given)


def test_defaults() -> None:
    assert Dataset.range(3).options() == in_force(optimize=True, block_bytes=2 << 20)
    assert Options() == Options(optimize=None, block_bytes=None)


def test_later_options_win_field_by_field() -> None:
    dataset = Dataset.range(3).with_options(Options(optimize=False, block_bytes=5))
    assert dataset.map(abs).batch(2).options() == in_force(optimize=False, block_bytes=5)
    assert dataset.with_options(Options(block_bytes=7)).options() == in_force(optimize=False, block_bytes=7)
    assert dataset.with_options(Options(optimize=True)).take(1).options() == in_force(optimize=True, block_bytes=5)
    assert dataset.with_options(Options()).options() == in_force(optimize=False, block_bytes=5)


def test_options_of_several_inputs() -> None:
    one = Dataset.range(3).with_options(Options(block_bytes=5))
    other = Dataset.range(3).with_options(Options(optimize=False, block_bytes=6))
    assert Dataset.zip(one, other).options() == in_force(optimize=False, block_bytes=6)
    assert one.concatenate(other).with_options(Options(block_bytes=9)).options().block_bytes == 9


def test_options_are_copied_on_the_way_in_and_out() -> None:
    options = Options(block_bytes=5)
    dataset = Dataset.range(3).with_options(options)
    options.block_bytes = 6
    assert dataset.options().block_bytes == 5
    dataset.options().block_bytes = 7
    assert dataset.options().block_bytes == 5
    assert Dataset.range(3).options().block_bytes == 2 << 20


def test_a_field_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError):
        Options(threads=3)


def test_no_option_changes_an_element() -> None:
    def build() -> Dataset[Any]:
        return Dataset.range(50).shuffle(7, seed=1).map(lambda x: x * 2).filter(lambda x: x % 3 > 0).batch(4)

    expected = plain(list(build()))
    for options in SETTINGS:
        assert plain(list(build().with_options(options))) == expected


def test_the_block_size_is_in_bytes() -> None:
    sizes: list[int] = []

    def watch(column: Any) -> Any:
        sizes.append(len(column))
        return column

    source = Dataset.range(5000)
    for block_bytes, most in ((1, 1), (80, 10), (8000, 1000)):
        sizes.clear()
        assert len(list(source.map(watch, batched=True).with_options(fb.Options(block_bytes=block_bytes)))) == 5000
        assert max(sizes) == most
        # The first block is small, so that the first element comes at once.
        assert sizes[0] == 1


@pytest.mark.parametrize("size", ["9" * 400, 10**400, 1 << 63, "0.1B", -1, 1.5, True, "2 parsecs"])
@pytest.mark.parametrize("name", ["memory", "spill_limit"])
def test_sizes_that_cannot_be(name: str, size: Any) -> None:
    with pytest.raises(fb.PlanError, match=f"Options.{name}=.*a size is"):
        fb.Options(**{name: size})


def test_counts_may_be_numbers_of_numpy() -> None:
    options = fb.Options(block_bytes=np.int32(4096), remote=fb.RemoteOptions(retries=np.uint8(0)))
    options.autotune.cpu_budget = np.int64(2)
    options.check()
    kept = (options.block_bytes, options.remote.retries, options.autotune.cpu_budget)
    assert kept == (4096, 0, 2)
    assert {type(count) for count in kept} == {int}
    assert list(Dataset.range(3).with_options(options)) == [0, 1, 2]


@pytest.mark.parametrize("count", [np.int64(0), np.float64(8), np.bool_(True), 0, True, "8"])
def test_counts_that_cannot_be(count: Any) -> None:
    with pytest.raises(fb.PlanError, match=r"Options\.block_bytes must be a whole number of at least 1, got"):
        fb.Options(block_bytes=count)


def test_options_are_printed_as_what_is_set() -> None:
    options = fb.Options(memory="1GiB", optimize=False)
    assert repr(options) == "Options(optimize=False, memory='1GiB')"
    options.autotune.cpu_budget = 2
    assert repr(options) == "Options(optimize=False, memory='1GiB', autotune=Autotune(cpu_budget=2))"
    assert repr(fb.RemoteOptions(retries=0)) == "RemoteOptions(retries=0)"
