"""Forebay beside its peers: one file per workload, every contender in a process of its own.

``python -m bench`` runs everything; ``python -m bench w1 --quick`` is a smoke test.
Absolute figures depend on the machine and on what else it is doing, so the harness interleaves the
contenders over several rounds and what it reports is ratios of medians taken in one run.
"""
