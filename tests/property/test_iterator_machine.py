"""An iterator under a user who does whatever comes to mind: read, save, go back, start over, close."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule

import forebay as fb
from property.build import dataset_of, to_plain
from property.chains import Chain, chains
from property.test_chains import MOST, OPTIONS, elements_of


class IteratorMachine(RuleBasedStateMachine):
    """The truth is one uninterrupted run per epoch: whatever is done, the next element is the next of it."""

    saved = Bundle("saved")

    @initialize(chain=chains(max_steps=4))
    def build(self, chain: Chain) -> None:
        self.chain = chain
        self.dataset = dataset_of(chain)
        self.truth_dataset = dataset_of(chain)
        self.truth: list[list[Any]] = []
        self.open()

    def open(self) -> None:
        self.it: Any = iter(self.dataset)
        self.at = 0
        self.check_epoch()

    def check_epoch(self) -> None:
        self.epoch = self.it.epoch
        while len(self.truth) <= self.epoch:
            self.truth.append(elements_of(self.truth_dataset))

    @rule(count=st.integers(1, 5))
    def read(self, count: int) -> None:
        truth = self.truth[self.epoch]
        for _ in range(count):
            if self.at == MOST:
                return
            element = next(self.it, None)
            if self.at == len(truth):
                assert element is None
            else:
                assert to_plain(element) == truth[self.at]
                self.at += 1

    @rule(target=saved)
    def save(self) -> tuple[str, int, int]:
        return json.dumps(self.it.state_dict()), self.epoch, self.at

    @rule(state=saved)
    def go_back(self, state: tuple[str, int, int]) -> None:
        text, self.epoch, self.at = state
        self.it.load_state_dict(json.loads(text))
        assert self.it.epoch == self.epoch

    @rule(state=saved, options=OPTIONS)
    def move_to_another_dataset(self, state: tuple[str, int, int], options: fb.Options) -> None:
        self.it.close()
        self.dataset = dataset_of(self.chain).with_options(options)
        self.open()
        self.go_back(state)

    @rule()
    def next_epoch(self) -> None:
        if self.epoch < 4:
            self.it.close()
            self.open()

    def teardown(self) -> None:
        if hasattr(self, "it"):
            self.it.close()


TestIterator = IteratorMachine.TestCase
TestIterator.settings = settings(max_examples=60, stateful_step_count=25)
