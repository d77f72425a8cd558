"""What comes out: elements, epochs, and every other way of asking for them."""

from __future__ import annotations

import itertools

import numpy as np

import forebay as fb
from conformance.case import Case, Run, drain, recorded, resume, run_epoch
from conformance.compare import assert_same, assert_same_elements, assert_same_run, leaves, same
from conformance.parametrize import every_case
from forebay.plan.spec import static_spec


@every_case(lambda case: case.expected is not None)
def test_elements_are_as_written_in_the_case(case: Case) -> None:
    run = run_epoch(case.build(), case)
    assert_same_elements(run.elements, case.elements())
    assert run.end == ("limit" if case.limit is not None else case.raises.__name__ if case.raises else "stop")


@every_case(lambda case: case.law is not None)
def test_law_holds_in_every_epoch(case: Case) -> None:
    dataset = case.build()
    for _ in range(4):
        case.law(run_epoch(dataset, case).elements)


@every_case()
def test_saving_the_state_changes_nothing(case: Case) -> None:
    # An unseeded stream can be repeated from its state only.
    it = iter(case.build()) if case.seeded else resume(case.build(), recorded(case.id).states[0])
    with it:
        assert_same_run(drain(it, case), recorded(case.id).run)


@every_case(lambda case: not case.reshuffles)
def test_epochs_are_alike(case: Case) -> None:
    dataset = case.build()
    first = run_epoch(dataset, case)
    for epoch in (1, 2):
        assert_same_run(run_epoch(dataset, case), first, f"epoch {epoch}")


@every_case(lambda case: case.reshuffles)
def test_epochs_differ(case: Case) -> None:
    dataset = case.build()
    runs = [run_epoch(dataset, case).elements for _ in range(4)]
    for a, b in itertools.combinations(range(4), 2):
        alike = len(runs[a]) == len(runs[b]) and all(map(same, runs[a], runs[b]))
        assert not alike, f"epochs {a} and {b} are the same"


@every_case(lambda case: case.seeded)
def test_an_epoch_is_the_same_in_every_dataset_built_alike(case: Case) -> None:
    left, right = case.build(), case.build()
    for epoch in range(3):
        with iter(left) as a, iter(right) as b:
            assert a.epoch == b.epoch == epoch
            assert_same_run(drain(a, case), drain(b, case), f"epoch {epoch}")


@every_case(lambda case: case.seeded)
def test_an_epoch_does_not_depend_on_how_far_others_were_read(case: Case) -> None:
    read, skipped = case.build(), case.build()
    run_epoch(read, case)
    iter(skipped).close()
    assert_same_run(run_epoch(skipped, case), run_epoch(read, case))


@every_case(lambda case: case.raises is None)
def test_cardinality(case: Case) -> None:
    elements = recorded(case.id).run.elements
    found = case.build().cardinality()
    if case.id == "repeat.for_ever_of_nothing_left":
        # As in tf.data: that there is nothing to repeat shows only when it runs.
        assert found == fb.INFINITE_CARDINALITY
    elif case.unknown_length:
        assert found in (fb.UNKNOWN_CARDINALITY, len(elements)) or (case.limit and found == fb.INFINITE_CARDINALITY)
    elif case.limit is not None:
        assert found == fb.INFINITE_CARDINALITY or found > case.limit
    else:
        assert found == len(elements)
        assert len(case.build()) == found


# Behind a function the spec is that of the first element, so only specs that are known without running promise more.
@every_case(lambda case: static_spec(case.build().plan) is not None)
def test_element_spec_describes_every_element(case: Case) -> None:
    spec = list(leaves(case.build().element_spec))
    for element in recorded(case.id).run.elements:
        for leaf_spec, leaf in zip(spec, leaves(element), strict=True):
            if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype != object:
                assert leaf_spec.dtype == leaf.dtype
                if leaf_spec.shape is None:
                    continue
                assert len(leaf_spec.shape) == leaf.ndim
                assert all(s is None or s == n for s, n in zip(leaf_spec.shape, leaf.shape, strict=True))


@every_case(lambda case: case.seeded)
def test_as_numpy_iterator(case: Case) -> None:
    assert_same_run(drain(case.build().as_numpy_iterator(), case), recorded(case.id).run)


@every_case(lambda case: case.finite and case.seeded)
def test_reduce_sees_every_element_in_order(case: Case) -> None:
    expected = recorded(case.id).run.elements
    seen: list[object] = []

    def count(total, element):
        seen.append(element)
        return total + 1

    total = case.build().reduce(np.int64(0), count)
    assert_same(total, np.int64(len(expected)))
    assert_same_run(Run(seen, "stop"), Run(expected, "stop"))


@every_case(lambda case: case.finite and case.seeded)
def test_get_single_element(case: Case) -> None:
    elements = recorded(case.id).run.elements
    for k in {0, len(elements) // 2, len(elements) - 1} if elements else ():
        assert_same(case.build().skip(k).take(1).get_single_element(), elements[k])
