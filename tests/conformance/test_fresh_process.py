"""Resume in another process: nothing but the JSON of the state goes over.

One child serves all cases (building the cases and importing NumPy costs more than running them), once per
session that collects these tests.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb
from conformance.case import Case, Run, drain, recorded, resume, some_steps
from conformance.cases import BY_ID, CASES
from conformance.compare import assert_same_run
from conformance.parametrize import every_case

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def child_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, Run] | str]:
    folder = tmp_path_factory.mktemp("fresh-process")
    wanted: dict[str, dict[int, str]] = {}
    for case in CASES:
        try:
            recording = recorded(case.id)
        except (fb.ForebayError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            # A case that does not run fails in its own test, not here, where it would take all others along.
            continue
        wanted[case.id] = {k: recording.states[k] for k in some_steps(len(recording.run.elements))}
    (folder / "states.json").write_text(json.dumps(wanted))
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    subprocess.run(
        [sys.executable, "-W", "error", "-m", "conformance.test_fresh_process", str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        timeout=300,
    )
    return pickle.loads((folder / "tails.pickle").read_bytes())


@every_case()
def test_resume_in_a_fresh_process(case: Case, child_results: dict[str, dict[int, Run] | str]) -> None:
    recording = recorded(case.id)
    tails = child_results[case.id]
    assert not isinstance(tails, str), f"in the child:\n{tails}"
    assert sorted(tails) == some_steps(len(recording.run.elements))
    for k, tail in tails.items():
        assert_same_run(tail, recording.run.tail(k), f"from step {k}:")


def _serve(folder: Path) -> None:
    """The child: restore every state and write down what follows."""
    import traceback

    tails: dict[str, dict[int, Run] | str] = {}
    for case_id, states in json.loads((folder / "states.json").read_text()).items():
        case = BY_ID[case_id]
        try:
            tails[case_id] = {}
            for k, state in states.items():
                with resume(case.build(), state) as it:
                    tails[case_id][int(k)] = drain(it, case, done=int(k))
        except Exception:
            tails[case_id] = traceback.format_exc()
    (folder / "tails.pickle").write_bytes(pickle.dumps(tails))


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
