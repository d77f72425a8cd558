"""The kernels that read files, under AddressSanitizer and UBSan, on files that were tampered with."""

import os
import subprocess
from pathlib import Path

import pytest

from native.fuzz import ROOT, build, compiler, corpus

# Programs of several threads, and the kernels that each has.
_THREADED = {
    "read_ahead": (
        *("arranged", "crc32c", "errands", "far_file", "read_ahead", "read_checked", "read_rows", "read_together"),
        *("records", "rows"),
    ),
    "scattering": ("arranged", "crc32c", "errands", "far_file", "read_rows", "rows", "scattering"),
}


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


@pytest.mark.skipif(compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("program", _THREADED)
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads(tmp_path: Path, program: str, sanitizer: str) -> None:
    """What threads and those who ask them have in common."""
    kernels = [ROOT / "native/kernels" / f"{name}.cpp" for name in _THREADED[program]]
    command = [compiler(), "-std=c++17", "-g", "-O1", f"-fsanitize={sanitizer}", "-pthread"]
    command += [
        f"-I{ROOT / 'native/kernels'}",
        ROOT / f"native/fuzz/{program}.cpp",
        *kernels,
        "-o",
        tmp_path / "target",
    ]
    subprocess.run(command, check=True)
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "LD_PRELOAD": ""}
    run = subprocess.run([tmp_path / "target"], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-4000:]
