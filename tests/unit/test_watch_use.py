"""Using ``fb.watch``: who counts steps and epochs, what it tells of objects, pictures, misuse."""

import io
import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay.block import LEAF, Block, column_from_rows
from forebay.observe.census import census, grown_types
from forebay.observe.holders import grown_holders
from forebay.observe.report import report
from forebay.observe.verdict import Verdict
from forebay.run import observers
from unit.support import python
from unit.watched import run

# Who counts


def test_without_steps_a_clock_counts() -> None:
    verdict = run("""
        kept = []
        with fb.watch() as w:
            for sample in range(60):
                kept.append(np.ones(250_000))
                while w._recorder.memory.count <= sample:
                    time.sleep(0.001)
        tell(w)
        """)
    assert (verdict["kind"], verdict["unit"]) == ("leak", "sample")
    assert "taken by a clock" in verdict["text"]


def test_the_users_steps_replace_those_of_iterators() -> None:
    with fb.watch(types=False) as w:
        for i, _ in enumerate(fb.Dataset.range(100)):
            if i % 2:
                w.step()
    assert w.verdict.steps == 50
    assert w.verdict.epochs == 1


def test_the_users_epochs_replace_those_of_iterators() -> None:
    ds = fb.Dataset.range(30)
    with fb.watch(types=False) as w:
        for _ in range(4):
            list(ds)
            list(ds)
            w.epoch()
    # The end of the second iterator was the user's epoch too; the first, which the user does not count, is forgotten
    # only from the user's first call on.
    assert w.verdict.steps == 240
    assert w.verdict.epochs == 5


def test_an_evaluation_between_is_no_epoch_of_its_own() -> None:
    train, evaluate = fb.Dataset.range(30), fb.Dataset.range(7).batch(2)
    with fb.watch(types=False) as w:
        for _ in range(3):
            list(train)
            list(evaluate)
    assert w.verdict.epochs == 3
    assert w.verdict.steps == 3 * (30 + 4)


def test_an_iterator_that_is_left_early_ends_its_epoch() -> None:
    ds = fb.Dataset.range(30)
    with fb.watch(types=False) as w:
        for _ in range(3):
            for _, _ in zip(ds, range(10)):
                pass
    assert w.verdict.epochs == 2


def test_iterators_on_several_threads_are_all_counted() -> None:
    def use(index: int) -> None:
        for _ in fb.Dataset.range(2000).shard(4, index).batch(2):
            pass

    with fb.watch(types=False) as w:
        threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert w.verdict.steps == 1000


def test_elements_are_the_same_and_none_is_kept() -> None:
    ds = fb.Dataset.from_generator(lambda: (object() for _ in range(5))).batch(2)
    with fb.watch(types=False):
        assert [len(batch) for batch in ds] == [2, 2, 1]
        it = iter(fb.Dataset.range(10).shuffle(4, seed=1))
        first = [next(it) for _ in range(3)]
        state = it.state_dict()
        rest = list(it)
        again = iter(fb.Dataset.range(10).shuffle(4, seed=1))
        again.load_state_dict(state)
        assert list(again) == rest
    assert [*first, *rest] == list(fb.Dataset.range(10).shuffle(4, seed=1))


def test_nobody_is_told_when_nobody_watches() -> None:
    ds = fb.Dataset.range(3)
    block = Block(LEAF, [column_from_rows([1, 2])], 2)
    plain = type(block.elements())
    assert type(observers.observed(iter(ds), block)) is plain
    with fb.watch(types=False) as w, iter(ds) as it:
        next(it)
        assert type(observers.observed(it, block)) is not plain
    assert type(observers.observed(iter(ds), block)) is plain
    assert w.verdict.steps == 1
    list(ds)
    assert w.verdict.steps == 1


# Using it


def test_an_error_in_the_loop_comes_through() -> None:
    w = fb.watch(types=False)
    with pytest.raises(ZeroDivisionError), w:  # noqa: PT012 - the step before the error counts
        w.step()
        _ = 1 / 0
    assert w.verdict.steps == 1
    assert observers._observers == ()


def test_too_short_a_run_is_unclear(tmp_path: Path) -> None:
    with fb.watch(types=False) as w:
        w.step()
        assert w.verdict.kind == "unclear"
    assert (w.verdict.kind, w.verdict.types) == ("unclear", ())
    text = io.StringIO()
    w.report(text)
    assert "too few steps" in text.getvalue()
    assert "1 steps; the first" not in text.getvalue()
    assert "slope" not in text.getvalue()
    assert "confidence" not in text.getvalue()
    w.plot(tmp_path / "memory.svg")
    assert "<!-- slope -->" not in (tmp_path / "memory.svg").read_text()


def test_a_rise_too_small_for_a_leak_is_told_for_what_it_would_come_to() -> None:
    def told(per_step: float, steps: int = 12_000, low: float = 0.9, confidence: float = 0.9) -> str:
        verdict = Verdict(
            kind="plateau",
            where="process",
            reason="memory is where it was at the start",
            bytes_per_step=per_step,
            bytes_per_epoch=None,
            interval=(low * per_step, 1.1 * per_step),
            confidence=confidence,
            growing=False,
            unit="step",
            steps=steps,
            epochs=0,
            baseline=1 << 28,
            final=1 << 28,
            peak=1 << 28,
        )
        return report(verdict)

    assert "47.7 MiB in 1,000,000 steps; under 2.0 MiB in a run, heaps do that too" in told(50)
    assert "but for a rise too small to tell" in told(50)
    assert "watch until that rate comes to 2.0 MiB" in told(50)
    for quiet in (told(1), told(50, low=0.0), told(50, steps=400), told(-50)):
        assert "at this rate" not in quiet
        assert "Nothing. Memory that stays high" in quiet
        assert "This is not a leak." in quiet
        assert "to be surer" not in quiet
    for unsure in (told(1, confidence=0.3), told(1, confidence=0.0)):
        assert unsure.startswith(
            "PLATEAU: memory is where it was at the start, as far as a run of this length can tell."
        )
        assert "to be surer" in unsure
        assert "confidence" in unsure


def test_misuse() -> None:
    w = fb.watch(types=False)
    with pytest.raises(fb.PlanError, match="nothing has been watched yet"):
        _ = w.verdict
    with pytest.raises(fb.PlanError, match=r"step\(\) is for inside the block"):
        w.step()
    with w:
        pass
    with pytest.raises(fb.PlanError, match=r"epoch\(\) is for inside the block"):
        w.epoch()
    with pytest.raises(fb.PlanError, match="for one run"), w:
        pass
    for never_begun in (fb.watch(), w):
        with pytest.raises(fb.PlanError, match="ends once, and not before it begins"):
            never_begun.__exit__(None, None, None)
    with pytest.raises(fb.PlanError, match=r"fb\.watch\(types='no'\): types must be True or False"):
        fb.watch(types="no")  # type: ignore[arg-type]
    with pytest.raises(fb.PlanError, match=r"fb\.watch\(tracemalloc=3\)"):
        fb.watch(tracemalloc=3)  # type: ignore[arg-type]


def test_no_thread_stays() -> None:
    before = threading.active_count()
    with fb.watch(types=False):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_two_watches_may_be_nested() -> None:
    with fb.watch(types=False) as outer:
        list(fb.Dataset.range(10))
        with fb.watch(types=False) as inner:
            list(fb.Dataset.range(5))
        list(fb.Dataset.range(10))
    assert (inner.verdict.steps, outer.verdict.steps) == (5, 25)


def test_importing_forebay_does_not_load_the_watch() -> None:
    code = "import sys, forebay; print([m for m in sys.modules if 'observe' in m and m != 'forebay.run.observers'])"
    assert python(code) == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'wach'"):
        _ = fb.wach  # type: ignore[attr-defined]


def test_plot(tmp_path: Path) -> None:
    with fb.watch(types=False) as w:
        for _ in range(3):
            list(fb.Dataset.from_generator(lambda: (np.zeros(100) for _ in range(60))).shuffle(20).batch(1))
    w.plot(tmp_path / "memory.png")
    assert (tmp_path / "memory.png").read_bytes().startswith(b"\x89PNG")
    w.plot(str(tmp_path / "memory.svg"))
    drawn = (tmp_path / "memory.svg").read_text()
    assert drawn.count("<!-- steps -->") == 1
    assert "without buffers of datasets" in drawn
    assert "<!-- slope -->" in drawn


def test_a_plot_does_not_make_much_of_little(tmp_path: Path) -> None:
    with fb.watch(types=False) as w:
        for _ in range(40):
            w.step()
    assert w.verdict.peak - w.verdict.baseline < 1 << 20
    w.plot(tmp_path / "memory.svg")
    drawn = re.findall(r'id="ytick_\d+".*?<!-- (\d+(?:\.\d+)?) -->', (tmp_path / "memory.svg").read_text(), re.DOTALL)
    assert float(drawn[-1]) - float(drawn[0]) > 8


def test_plot_into_what_is_no_file() -> None:
    with fb.watch(types=False) as w:
        w.step()
    for path in (None, 3, "", np.zeros(2)):
        with pytest.raises(fb.PlanError, match=r"plot\(path=.*\): path must be the name of a file"):
            w.plot(path)  # type: ignore[arg-type]


def test_plot_into_what_cannot_be_written(tmp_path: Path) -> None:
    with fb.watch(types=False) as w:
        w.step()
    with pytest.raises(fb.PlanError, match=r"\.xyz: use \.png, \.svg or \.pdf"):
        w.plot(tmp_path / "memory.xyz")
    with pytest.raises(fb.FileError, match=r"there is no folder .*nope; make it first"):
        w.plot(tmp_path / "nope" / "memory.png")
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(fb.FileError, match=r"taken\.png"):
        w.plot(tmp_path / "taken.png")
    assert [each.name for each in tmp_path.iterdir()] == ["taken.png"]


def test_plot_without_matplotlib_says_what_to_install() -> None:
    code = """
        sys.modules["matplotlib"] = None
        with fb.watch(types=False) as w:
            w.step()
        try:
            w.plot("memory.png")
        except ImportError as error:
            print(json.dumps({"said": str(error)}))
        """
    assert "pip install matplotlib" in run(code)["said"]


def test_lines_are_told_if_asked_for() -> None:
    verdict = run("""
        import tracemalloc
        kept = []
        with fb.watch(tracemalloc=True) as w:
            for i in range(50):
                kept.append(np.ones(50_000))
                w.step()
        assert not tracemalloc.is_tracing()
        tell(w)
        """)
    # The loop's own line, whatever line of NumPy it was that took memory.
    assert verdict["lines"][0].startswith("<string>:")
    assert "numpy" in verdict["lines"][0].partition(" (in ")[2]
    assert "Lines whose allocations grew" in verdict["text"]


# What is counted


def test_a_census_finds_arrays_wherever_they_are_kept() -> None:
    before = census(0)
    whole = np.ones(100_000)
    kept: dict[str, Any] = {
        "listed": [np.ones(1000) for _ in range(100)],
        "in tuples": [(np.ones(1000), 1) for _ in range(100)],
        "in dictionaries": [{"x": np.ones(1000)} for _ in range(100)],
        "nested": [({"x": (np.ones(1000),)},) for _ in range(100)],
        "views": [whole[i:] for i in range(100)],
    }
    after = census(100)
    arrays = next(each for each in grown_types(before, after) if each.name == "numpy.ndarray")
    # Others come and go meanwhile.
    assert 450 <= arrays.count <= 750
    assert arrays.bytes == pytest.approx(400 * 8000 + whole.nbytes, rel=0.25)
    kept.clear()
    assert census(100).counts[np.ndarray] < before.counts[np.ndarray] + 250


def test_rows_on_their_way_are_nobodys() -> None:
    before = census(0)
    passing = iter([np.zeros(4) for _ in range(3000)])
    kept = [np.zeros(4) for _ in range(3000)]
    found = [each.length for each in grown_holders(before, census(4000))]
    assert found == [3000]
    assert len(kept) == len(list(passing))
