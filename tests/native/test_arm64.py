"""The kernels as they are on arm64: compiled for it, and run on a simulated processor, where both can be had."""

import shutil
import subprocess
from pathlib import Path

import pytest

from native.fuzz import KERNELS, ROOT, corpus

COMPILER, SIMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"
MISSING = [tool for tool in (COMPILER, SIMULATOR) if shutil.which(tool) is None]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"there is no {' and no '.join(MISSING)}")


def built(folder: Path, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
    target = folder / "target"
    command = [COMPILER, "-std=c++17", "-O2", "-static", *flags, f"-I{ROOT / 'native/kernels'}", *sources, "-o", target]
    subprocess.run(command, check=True)
    return target


def test_every_kernel_compiles(tmp_path: Path) -> None:
    sources = sorted((ROOT / "native/kernels").glob("*.cpp"))
    assert sources
    command = [COMPILER, "-std=c++17", "-O1", "-Wall", "-Werror", "-c", *sources]
    subprocess.run(command, check=True, cwd=tmp_path)


@pytest.mark.parametrize("processor", ["max", "cortex-a53"])
def test_checksums(tmp_path: Path, processor: str) -> None:
    target = built(tmp_path, ROOT / "native/fuzz/crc32c.cpp", ROOT / "native/kernels/crc32c.cpp")
    run = subprocess.run([SIMULATOR, "-cpu", processor, target], capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("5445 checksums\n", 0), run.stderr


def test_hostile_bytes(tmp_path: Path) -> None:
    target = built(tmp_path, ROOT / "native/fuzz/kernels.cpp", *KERNELS, flags=("-DFOREBAY_STANDALONE",))
    seeds = corpus(tmp_path)
    command = [SIMULATOR, target, "7", "1000", *seeds]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == (f"{1000 + len(seeds)} inputs\n", 0), run.stderr[-4000:]
