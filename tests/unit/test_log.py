"""Logs: who gets a decision, and what is written down."""

import json

from forebay.run.log import Logs, decisions


def test_a_log_gets_what_comes_after_it():
    logs = Logs()
    logs.add(0)
    first = logs.new()
    logs.add(1)
    second = logs.new()
    logs.add([2, 3])
    assert first == [1, [2, 3]]
    assert second == [[2, 3]]
    assert json.dumps({"log": first}) == '{"log": [1, [2, 3]]}'


def test_logs_that_nobody_holds_are_let_go():
    logs = Logs()
    kept = logs.new()
    for _ in range(5):
        logs.new()
    logs.add(1)
    assert [held is kept for held in logs.held()] == [True]
    del kept
    assert logs.held() == []


def test_decisions_are_a_copy():
    logs = Logs()
    log = logs.new()
    logs.add([1])
    copy = decisions(log)
    logs.add([2])
    log[0].append(9)
    assert copy == [[1]]
    assert type(copy) is list
    assert decisions(None) == []
