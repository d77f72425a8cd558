"""What the C library keeps of freed arrays, and when it is told to keep none."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = textwrap.dedent(
    """
    import sys
    import numpy as np
    import forebay as fb
    from forebay.observe.heap import usage_reader

    budget, held = int(sys.argv[1]) << 20, int(sys.argv[2]) << 20
    read = usage_reader()
    if read is None:
        print("cannot be asked")
        sys.exit()
    # Of these glibc learns to keep what is freed.
    for _ in range(3):
        np.ones(1 << 20)
    fb.Ledger(budget).lease("a step").note(held)
    rows = [np.ones(1 << 18) for _ in range(8)]
    beside = [object() for _ in range(100_000)]
    del rows
    print(read().kept >> 20)
    """
)


@pytest.mark.parametrize(
    ("budget", "held", "setting", "keeps"),
    [(8, 9, {}, False), (8, 8, {}, True), (1024, 1025, {}, True), (8, 9, {"MALLOC_MMAP_THRESHOLD_": "33554432"}, True)],
    ids=["more than the budget", "as much", "more than a large one", "the user has said which"],
)
def test_freed_arrays_are_kept_unless_more_than_a_small_budget_is_held(budget, held, setting, keeps):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC", "GLIBC"))}
    arguments = [sys.executable, "-c", PROGRAM, str(budget), str(held)]
    done = subprocess.run(arguments, env=environment | setting, capture_output=True, text=True, check=True)
    if "cannot" in done.stdout:
        pytest.skip("the C library cannot be asked what it keeps")
    assert (int(done.stdout) >= 12) == keeps
