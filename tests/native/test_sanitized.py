"""The kernels that read files, under AddressSanitizer and UBSan, on files that were tampered with."""

import os
import subprocess
from pathlib import Path

import pytest

from native.fuzz import build, compiler, corpus


@pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("portable", [False, True])
def test_hostile_bytes(tmp_path: Path, portable: bool) -> None:
    target = build(tmp_path, portable=portable)
    # Leaks are looked for too where the system lets a process look at itself.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": ""}
    run = subprocess.run(
        [target, "7", "20000", *corpus(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert run.stdout == "20016 inputs\n"
