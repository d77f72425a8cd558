"""Resume in another process: nothing but the JSON of the state goes over.

One child serves all cases (building the cases and importing NumPy costs more than running them).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.case import Case, Run, drain, recorded, resume, some_steps
from conformance.cases import BY_ID
from conformance.compare import assert_same_run
from conformance.parametrize import every_case

TESTS = Path(__file__).parents[1]
Tails = dict[int, Run] | str


@pytest.fixture(scope="module")
def in_the_child() -> Iterator[Callable[[str, dict[int, str]], Tails]]:
    """Has the child restore the states of a case; returns what followed each of them, or a traceback."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "conformance.test_fresh_process"],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        requests, answers = child.stdin, child.stdout
        assert requests is not None
        assert answers is not None

        def ask(case_id: str, states: dict[int, str]) -> Tails:
            pickle.dump((case_id, states), requests)
            requests.flush()
            return pickle.load(answers)

        yield ask
        # At the end of its input the child ends, and with it the block.
        requests.close()
        assert child.wait() == 0


@every_case()
def test_resume_in_a_fresh_process(case: Case, in_the_child: Callable[[str, dict[int, str]], Tails]) -> None:
    recording = recorded(case.id)
    tails = in_the_child(case.id, {k: recording.states[k] for k in some_steps(len(recording.run.elements))})
    assert not isinstance(tails, str), f"in the child:\n{tails}"
    assert sorted(tails) == some_steps(len(recording.run.elements))
    for k, tail in tails.items():
        assert_same_run(tail, recording.run.tail(k), f"from step {k}:")


def _tails(case: Case, states: dict[int, str]) -> Tails:
    tails = {}
    try:
        for k, state in states.items():
            with resume(case.build(), state) as it:
                tails[k] = drain(it, case, done=k)
    except Exception:
        return traceback.format_exc()
    return tails


def _serve() -> None:
    """The child: answers until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "wb")
    # What a case prints is not an answer.
    os.dup2(2, 1)
    # As in pytest's own settings: there are cases of None on purpose.
    warnings.filterwarnings("ignore", ".* returned None for the first element")
    while request := _request():
        case_id, states = request
        pickle.dump(_tails(BY_ID[case_id], states), answers)
        answers.flush()


def _request() -> tuple[str, dict[int, str]] | None:
    try:
        return pickle.load(sys.stdin.buffer)
    except EOFError:
        return None


if __name__ == "__main__":
    _serve()
