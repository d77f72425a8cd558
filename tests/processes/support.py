"""Watching processes from outside."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEADLINE = 300
"""Seconds after which something has plainly not happened; never what a test waits for when all is well."""


def wait_for(condition: Callable[[], Any], what: str) -> None:
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until, f"waited {DEADLINE} s for: {what}"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "forebay test"]


def run_script(tmp_path: Path, text: str, *, expect: int = 0) -> str:
    script = tmp_path / "script.py"
    script.write_text("from forebay.run.process import ProcessExecutor\n" + text)
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert done.returncode == expect, done.stderr
    return done.stdout
