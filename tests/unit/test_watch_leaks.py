"""Leaks of all kinds beside a running dataset, and who is named for them; the same dataset without any."""

import pytest

from unit.watched import MIB, run

# Many threads, brief epochs: resident memory goes up and down by tens of MiB, and more often up.
DATASET = """
        ds = Dataset.range(100_000).map(lambda x: np.full(1000, x), num_parallel_calls=8).batch(16).prefetch(4).take({})
"""


def test_many_threads_and_brief_epochs_are_no_leak() -> None:
    verdict = run(
        DATASET.format(200)
        + """
        with fb.watch() as w:
            for epoch in range(12):
                for batch in ds:
                    batch.sum()
        tell(w)
        """
    )
    assert verdict["kind"] != "leak"
    assert (verdict["steps"], verdict["epochs"]) == (2400, 12)


@pytest.mark.parametrize(("size", "steps"), [(1 << 10, 3000), (1 << 16, 50), (1 << 20, 12)])
def test_arrays_kept_per_step(size: int, steps: int) -> None:
    verdict = run(
        DATASET.format(steps)
        + f"""
        kept = []
        with fb.watch() as w:
            for epoch in range(8):
                for batch in ds:
                    kept.append(np.ones({size // 8}))
        tell(w)
        """
    )
    assert (verdict["kind"], verdict["where"]) == ("leak", "process")
    assert verdict["bytes_per_step"] == pytest.approx(size, rel=0.3)
    assert verdict["types"][0]["name"] == "numpy.ndarray"
    assert verdict["holders"][0]["name"] == "list __main__.kept"
    assert verdict["holders"][0]["length"] == 8 * steps


def test_a_few_large_arrays_in_a_dictionary_are_found() -> None:
    verdict = run(
        DATASET.format(50)
        + """
        cache = {}
        with fb.watch() as w:
            for epoch in range(10):
                for batch in ds:
                    pass
                cache[epoch] = np.ones(1 << 18)
        tell(w)
        """
    )
    assert verdict["kind"] == "leak"
    assert verdict["bytes_per_epoch"] == pytest.approx(2 * MIB, rel=0.2)
    assert verdict["types"][0]["name"] == "numpy.ndarray"
    holder = verdict["holders"][0]
    assert (holder["name"], holder["length"], holder["stage"]) == ("dict __main__.cache", 10, None)
    assert holder["bytes"] == 20 * MIB


def test_small_objects_are_a_leak() -> None:
    verdict = run(
        DATASET.format(200)
        + """
        kept = []
        with fb.watch() as w:
            for epoch in range(8):
                for batch in ds:
                    kept.extend({"loss": [i]} for i in range(60))
        tell(w)
        """
    )
    assert verdict["kind"] == "leak"
    assert {each["name"] for each in verdict["types"]} >= {"dict", "list"}
    assert verdict["holders"][0]["name"] == "list __main__.kept"


def test_what_a_closure_keeps_is_found_also_when_the_loop_is_over() -> None:
    verdict = run(
        DATASET.format(100)
        + """
        def recorder():
            seen = []
            return seen.append

        def train():
            record = recorder()
            for epoch in range(4):
                for batch in ds:
                    record(batch)

        with fb.watch() as w:
            train()
        tell(w)
        """
    )
    assert verdict["kind"] == "leak"
    assert verdict["types"][0]["name"] == "numpy.ndarray"
    assert any(each["name"] == "a list of numpy.ndarray" for each in verdict["holders"])


def test_memory_of_another_library_is_a_leak_of_which_python_knows_nothing() -> None:
    verdict = run(
        DATASET.format(100)
        + """
        import ctypes
        library = ctypes.CDLL(None)
        library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        with fb.watch() as w:
            for epoch in range(8):
                for batch in ds:
                    ctypes.memset(library.malloc(40_000), 1, 40_000)
        tell(w)
        """
    )
    assert verdict["kind"] == "leak"
    assert verdict["bytes_per_step"] == pytest.approx(40_000, rel=0.1)
    assert verdict["holders"] == []
    assert "so it is native memory" in verdict["text"]


def test_a_small_leak_is_not_called_a_plateau() -> None:
    verdict = run("""
        kept = []
        with fb.watch() as w:
            for epoch in range(4):
                for batch in Dataset.range(64_000).batch(16).prefetch(2):
                    kept.append({"loss": [epoch]})
        tell(w)
        """)
    assert verdict["growth"] < 16 * MIB
    assert verdict["kind"] == "unclear"


def test_a_leak_inside_a_step_has_its_name() -> None:
    verdict = run("""
        from forebay.ops.batch import _Batch

        pull = _Batch.pull
        def leaking(self):
            self.__dict__.setdefault("forgotten", []).append(np.ones(25_000))
            return pull(self)
        _Batch.pull = leaking

        with fb.watch() as w:
            for batch in Dataset.range(20_000).batch(10).with_options(fb.Options(block_bytes=1000)):
                pass
        tell(w)
        """)
    assert verdict["kind"] == "leak"
    assert verdict["holders"][0]["name"] == "list _Batch.forgotten"
    assert verdict["holders"][0]["stage"].startswith("batch at <string>:")
    assert "batch at <string>:" in verdict["reason"]
    assert "defect of Forebay" in verdict["text"]


def test_a_leak_inside_a_function_has_the_name_of_its_step() -> None:
    verdict = run(
        """
        def remembering():
            seen = []
            def parse(x):
                seen.append(np.ones(1000))
                return x
            return parse

        ds = Dataset.range(500).map(remembering()).batch(5)
        with fb.watch() as w:
            for epoch in range(8):
                for batch in ds:
                    pass
        tell(w)
        """
    )
    assert verdict["kind"] == "leak"
    assert verdict["holders"][0]["stage"].startswith("map at <string>:")
    assert "look into the function" in verdict["text"]


def test_garbage_that_waits_for_its_collection_is_left_open() -> None:
    verdict = run("""
        class Node:
            pass

        gc.disable()  # As good as a loop that makes few other objects.
        with fb.watch() as w:
            for i in range(400):
                node = Node()
                node.itself, node.data = node, np.ones(12_000)
                w.step()
        tell(w)
        """)
    assert verdict["kind"] == "unclear"
    assert "circles of references" in verdict["text"]
