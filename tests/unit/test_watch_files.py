"""Files that are mapped, and memory that is shared, under ``fb.watch``: resident, and yet nobody's leak."""

import numpy as np
import pytest

from forebay.observe.heap import Usage
from forebay.observe.judge import Readings, judge
from forebay.observe.recorder import Recorder, Source
from forebay.observe.trend import Floats
from forebay.observe.use import Use
from unit.watched import MIB, run

LEVEL = np.full(400, 200.0 * MIB)
RISE = np.arange(400) * 0.5 * MIB

MAPPED = """
        import tempfile
        folder = tempfile.TemporaryDirectory()
        np.save(f"{folder.name}/images.npy", np.ones((12_000, 4096), np.uint8))
        images = np.load(f"{folder.name}/images.npy", mmap_mode="r")
"""


def recorded(own: Floats, files: Floats, held: Floats) -> Readings:
    """As a recorder has it that is told all of resident memory, with nothing kept and all else in buffers."""
    at = 0
    recorder = Recorder(
        lambda: int(own[at] + files[at] + held[at]),
        lambda: int(held[at]),
        Use(lambda: Usage(int(own[at]), 0), lambda: 0),
        lambda: int(files[at]),
    )
    recorder.begin()
    for at in range(len(own)):  # noqa: B007 - what the recorder reads goes by it
        recorder.step(Source.USER)
    return recorder.readings()


def test_files_beside_a_buffer_that_fills_are_no_leak() -> None:
    found = judge(recorded(LEVEL, 2 * RISE, RISE), int(RISE[-1]), int(RISE[-1]), datasets=True)
    assert (found.kind, found.why) == ("growth", "buffers")
    assert judge(recorded(LEVEL, RISE, 0 * RISE), 0, 0).kind == "plateau"
    assert judge(recorded(LEVEL + 0.2 * RISE, RISE, 0 * RISE), int(0.2 * RISE[-1]), 0).kind == "leak"


def test_what_a_program_shares_with_others_is_left_open() -> None:
    readings = recorded(LEVEL, RISE, 0 * RISE)
    found = judge(readings, 0, 0, foreign=int(RISE[-1]))
    assert (found.kind, found.why) == ("unclear", "shared")
    assert judge(readings, 0, 0, workers=True, foreign=int(RISE[-1])).kind == "plateau"


@pytest.mark.parametrize("source", ["Dataset.range(12_000).map(lambda i: images[i])", "Dataset.from_generator(rows)"])
def test_a_cache_of_rows_of_a_mapped_file_is_growth(source: str) -> None:
    verdict = run(
        MAPPED
        + f"""
        def rows():
            for i in range(12_000):
                yield images[i]

        ds = {source}.cache().batch(24).with_options(fb.Options(memory="200MiB"))
        with fb.watch() as w:
            for batch in ds:
                pass
        tell(w)
        """
    )
    assert verdict["kind"] == "growth"
    assert verdict["stages"][0]["name"].startswith("cache at <string>:")
    assert 40 * MIB < verdict["files"] < 60 * MIB
    assert "are pages of mapped files" in verdict["reason"]


def test_reading_a_mapped_file_is_a_plateau() -> None:
    verdict = run(
        MAPPED
        + """
        with fb.watch() as w:
            for i in range(0, 12_000, 24):
                images[i : i + 24].mean()
                w.step()
        tell(w)
        """
    )
    assert verdict["kind"] == "plateau"
    assert verdict["growth"] > 40 * MIB
    assert "are pages of mapped files" in verdict["reason"]
    assert "allocator" not in verdict["text"]


def test_a_leak_beside_a_mapped_file_is_one() -> None:
    verdict = run(
        MAPPED
        + """
        kept = []
        with fb.watch() as w:
            for i in range(0, 12_000, 24):
                kept.append(images[i : i + 24].copy())
                w.step()
        tell(w)
        """
    )
    assert verdict["kind"] == "leak"
    assert verdict["bytes_per_step"] == pytest.approx(24 * 4096, rel=0.1)
    assert verdict["holders"][0]["name"] == "list __main__.kept"


def test_memory_that_a_program_shares_and_keeps_is_left_open() -> None:
    verdict = run("""
        import mmap
        kept = []
        with fb.watch() as w:
            for i in range(300):
                kept.append(mmap.mmap(-1, 100_000))
                kept[-1].write(b"x" * 100_000)
                w.step()
        tell(w)
        """)
    assert verdict["kind"] == "unclear"
    assert "shared with other processes" in verdict["reason"]
