"""The pipelines that both libraries run, one line each, by what they show."""

from differential.cases import accepted, files, functions, operators, refusals, sources, unknown
from differential.cases.case import Case

ALL: tuple[Case, ...] = (
    *sources.CASES,
    *files.CASES,
    *operators.CASES,
    *functions.CASES,
    *unknown.CASES,
    *refusals.CASES,
    *accepted.CASES,
)
