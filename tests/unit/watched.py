"""Loops under ``fb.watch``, each in a process of its own, whose memory nobody else uses."""

import json
import textwrap
from typing import Any

from unit.support import python

MIB = 1 << 20

BEFORE = """
import dataclasses, gc, io, json, os, subprocess, sys, time
import numpy as np
import forebay as fb
from forebay import Dataset

def tell(w):
    text = io.StringIO()
    w.report(text)
    print(json.dumps({**dataclasses.asdict(w.verdict), "growth": w.verdict.growth, "text": text.getvalue()}))
"""


def run(code: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(python(BEFORE + textwrap.dedent(code)))
    return found
