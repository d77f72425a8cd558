"""The optimiser, rule by rule: plans before and after, and what ``explain`` prints of them."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb
from forebay import Dataset
from forebay.plan import Node, prepare
from forebay.rules import RULES
from forebay.rules.drop_noops import drop_noops
from forebay.rules.fuse_maps import fuse_maps
from forebay.rules.permute_reads import permute_reads
from forebay.rules.push_down_slices import push_down_slices
from unit.support import plain


def double(x: Any) -> Any:
    return x * 2


def add(x: Any, rng: Any = None) -> Any:
    return x + 1


def even(x: Any) -> bool:
    return bool(x % 2 == 0)


def stream() -> Dataset[Any]:
    return Dataset.from_generator(lambda: iter(range(10)))


def steps(node: Node) -> list[str]:
    """The plan from the top down to the sources, without arguments that do not matter here."""
    own = node.describe().replace("(start=0, stop=10, step=1)", "(10)")
    return [own, *(line for child in node.inputs for line in steps(child))]


Case = tuple[Callable[[], Dataset[Any]], list[str]]


def after(dataset: Dataset[Any], *rules: Any) -> list[str]:
    return steps(prepare(dataset.plan, 1, rules))


def shown(cases: list[Case]) -> Any:
    return pytest.mark.parametrize(("build", "expected"), cases, ids=[str(i) for i in range(len(cases))])


NOOPS: list[Case] = [
    (lambda: Dataset.range(10).skip(0), ["range(10)"]),
    (lambda: Dataset.range(10).take(-1), ["range(10)"]),
    (lambda: Dataset.range(10).take(10), ["range(10)"]),
    (lambda: Dataset.range(10).take(99), ["range(10)"]),
    (lambda: Dataset.range(10).repeat(1), ["range(10)"]),
    (lambda: Dataset.range(10).shard(1, 0), ["range(10)"]),
    (lambda: Dataset.range(10).prefetch(0), ["range(10)"]),
    (lambda: Dataset.range(10).with_options(fb.Options()), ["range(10)"]),
    (lambda: Dataset.range(10).skip(0).repeat(1).skip(0), ["range(10)"]),
    # These do something.
    (lambda: Dataset.range(10).skip(1), ["skip(count=1)", "range(10)"]),
    (lambda: Dataset.range(10).skip(-1), ["skip(count=-1)", "range(10)"]),
    (lambda: Dataset.range(10).take(9), ["take(count=9)", "range(10)"]),
    (lambda: Dataset.range(10).repeat(0), ["repeat(count=0)", "range(10)"]),
    (lambda: Dataset.range(10).repeat(2), ["repeat(count=2)", "range(10)"]),
    (lambda: Dataset.counter().take(5), ["take(count=5)", "counter(start=0, step=1, dtype=dtype('int64'))"]),
]


@shown(NOOPS)
def test_drop_noops(build: Callable[[], Dataset[Any]], expected: list[str]) -> None:
    assert after(build(), drop_noops) == expected


def test_a_take_of_unknown_length_is_kept() -> None:
    assert after(stream().take(10), drop_noops)[0] == "take(count=10)"


FUSED: list[Case] = [
    (lambda: Dataset.range(10).map(double).map(add), ["map(map_func=add, after=[double])", "range(10)"]),
    (
        lambda: Dataset.range(10).map(double).map(add).map(abs),
        ["map(map_func=abs, after=[double, add])", "range(10)"],
    ),
    (
        lambda: Dataset.range(10).map(double).map(add, rng=True, seed=3),
        ["map(map_func=add, after=[double], rng=True, seed=3)", "range(10)"],
    ),
    (
        lambda: Dataset.range(10).map(add, rng=True, seed=3).map(double),
        ["map(map_func=double, after=[add])", "range(10)"],
    ),
    # Whole columns stay on their own, and so do functions with something in between.
    (
        lambda: Dataset.range(10).map(double, batched=True).map(add),
        ["map(map_func=add)", "map(map_func=double, batched=True)", "range(10)"],
    ),
    (
        lambda: Dataset.range(10).map(double).map(add, batched=True),
        ["map(map_func=add, batched=True)", "map(map_func=double)", "range(10)"],
    ),
    (
        lambda: Dataset.range(10).map(double).skip(1).map(add),
        ["map(map_func=add)", "skip(count=1)", "map(map_func=double)", "range(10)"],
    ),
]


@shown(FUSED)
def test_fuse_maps(build: Callable[[], Dataset[Any]], expected: list[str]) -> None:
    assert after(build(), fuse_maps) == expected


def test_noops_between_maps_do_not_keep_them_apart() -> None:
    dataset = Dataset.range(10).map(double).skip(0).with_options(fb.Options()).map(add)
    assert after(dataset, *RULES) == ["map(map_func=add, after=[double])", "range(10)"]


SLICED: list[Case] = [
    (lambda: Dataset.range(10).skip(3), ["slice_rows(start=3, stop=10, step=1)", "range(10)"]),
    (lambda: Dataset.range(10).take(3), ["slice_rows(start=0, stop=3, step=1)", "range(10)"]),
    (lambda: Dataset.range(10).shard(3, 1), ["slice_rows(start=1, stop=10, step=3)", "range(10)"]),
    (lambda: Dataset.range(10).skip(-1), ["slice_rows(start=0, stop=0, step=1)", "range(10)"]),
    (lambda: Dataset.range(10).skip(50), ["slice_rows(start=10, stop=10, step=1)", "range(10)"]),
    (lambda: Dataset.range(10).skip(2).take(3), ["slice_rows(start=2, stop=5, step=1)", "range(10)"]),
    (lambda: Dataset.range(10).shard(3, 1).shard(2, 1), ["slice_rows(start=4, stop=10, step=6)", "range(10)"]),
    (lambda: Dataset.range(10).shard(2, 1).skip(1).take(2), ["slice_rows(start=3, stop=7, step=2)", "range(10)"]),
    (
        lambda: Dataset.range(10).map(double).skip(3),
        ["slice_rows(start=3, stop=10, step=1)", "map(map_func=double)", "range(10)"],
    ),
    (
        lambda: Dataset.range(10).batch(3).skip(1),
        [
            "slice_rows(start=1, stop=4, step=1)",
            "batch(batch_size=3, drop_remainder=False)",
            "range(10)",
        ],
    ),
    (
        lambda: Dataset.range(10).shuffle(seed=1).take(3),
        ["slice_rows(start=0, stop=3, step=1)", "shuffle(seed=1)", "range(10)"],
    ),
    (
        lambda: Dataset.zip(Dataset.range(10), Dataset.range(10)).take(3),
        ["slice_rows(start=0, stop=3, step=1)", "zip(structure='(*, *)')", "range(10)", "range(10)"],
    ),
    (
        lambda: Dataset.range(10).concatenate(Dataset.range(10)).enumerate().skip(9),
        ["slice_rows(start=9, stop=20, step=1)", "enumerate(start=0)", "concatenate()", "range(10)", "range(10)"],
    ),
    # Rows that cannot be read by number are read and dropped.
    (
        lambda: Dataset.range(10).filter(even).skip(3),
        ["skip(count=3)", "filter(predicate=even)", "range(10)"],
    ),
    (lambda: Dataset.range(10).repeat(2).take(3), ["take(count=3)", "repeat(count=2)", "range(10)"]),
    (
        lambda: Dataset.range(10).shuffle(2, seed=1).take(3),
        ["take(count=3)", "shuffle(buffer_size=2, seed=1)", "range(10)"],
    ),
]


@shown(SLICED)
def test_push_down_slices(build: Callable[[], Dataset[Any]], expected: list[str]) -> None:
    assert after(build(), push_down_slices) == expected


PERMUTED: list[Case] = [
    (lambda: Dataset.range(10).shuffle(3, seed=1), ["shuffle(buffer_size=3, seed=1, reads='permuted')", "range(10)"]),
    (
        lambda: Dataset.range(10).map(double).batch(2).shuffle(3, seed=1),
        [
            "shuffle(buffer_size=3, seed=1, reads='permuted')",
            "batch(batch_size=2, drop_remainder=False)",
            "map(map_func=double)",
            "range(10)",
        ],
    ),
    # A shuffle of everything reads by number in any case.
    (lambda: Dataset.range(10).shuffle(seed=1), ["shuffle(seed=1)", "range(10)"]),
    (lambda: Dataset.range(10).shuffle(10, seed=1), ["shuffle(buffer_size=10, seed=1)", "range(10)"]),
    (
        lambda: Dataset.range(10).filter(even).shuffle(3, seed=1),
        ["shuffle(buffer_size=3, seed=1)", "filter(predicate=even)", "range(10)"],
    ),
]


@shown(PERMUTED)
def test_permute_reads(build: Callable[[], Dataset[Any]], expected: list[str]) -> None:
    assert after(build(), permute_reads) == expected


@shown([*NOOPS, *FUSED, *SLICED, *PERMUTED])
def test_every_pair_gives_the_same_elements(build: Callable[[], Dataset[Any]], expected: list[str]) -> None:
    dataset = build().take(40)
    written = plain(list(dataset.with_options(fb.Options(optimize=False))))
    epoch = iter(dataset.with_options(fb.Options(optimize=True)))
    assert plain(list(epoch)) == written
    assert dataset.cardinality() in (len(written), fb.UNKNOWN_CARDINALITY)


def test_rules_do_nothing_twice() -> None:
    for build, _ in [*NOOPS, *FUSED, *SLICED, *PERMUTED]:
        once = prepare(build().plan, 1, RULES)
        assert steps(prepare(once, 1, RULES)) == steps(once)


def test_rules_keep_where_a_step_was_written() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("bad")

    build: Callable[[], Dataset[Any]] = lambda: Dataset.range(10).map(fail, name="first")  # noqa: E731
    line = build.__code__.co_firstlineno
    for dataset in (build(), build().map(double), build().skip(2).shuffle(3), build().shuffle().map(double).take(2)):
        with pytest.raises(fb.FunctionError, match=f"^map 'first' at test_rules.py:{line}, element "):
            list(dataset)


def test_a_plan_is_not_changed_by_running_it() -> None:
    dataset = Dataset.range(10).map(double).map(add).skip(2).shuffle(3).take(3)
    before = steps(dataset.plan)
    list(dataset)
    dataset.explain(file=io.StringIO())
    assert steps(dataset.plan) == before


# explain


def explained(dataset: Dataset[Any]) -> list[str]:
    out = io.StringIO()
    dataset.explain(file=out)
    return out.getvalue().splitlines()


def test_explain_prints_both_plans() -> None:
    dataset = Dataset.range(1000).map(double).map(add, name="plus one").skip(0).shuffle(5, seed=1).batch(32)
    assert explained(dataset) == [
        "As written:",
        "  batch(batch_size=32, drop_remainder=False)  32 elements",
        "  shuffle(buffer_size=5, seed=1)              1,000 elements",
        "  skip(count=0)                               1,000 elements",
        "  map(map_func=add) 'plus one'                1,000 elements",
        "  map(map_func=double)                        1,000 elements",
        "  range(start=0, stop=1000, step=1)           1,000 elements",
        "",
        "As it runs:",
        "  batch(batch_size=32, drop_remainder=False)        32 elements",
        "  map(map_func=add, after=[double]) 'plus one'      1,000 elements",
        "  shuffle(buffer_size=5, seed=1, reads='permuted')  1,000 elements",
        "  enumerate(start=0)                                1,000 elements",
        "  range(start=0, stop=1000, step=1)                 1,000 elements",
    ]


def test_explain_indents_the_inputs_of_a_step_that_has_several() -> None:
    dataset = Dataset.zip(Dataset.range(3).repeat(), stream()).take(5)
    assert explained(dataset)[1:6] == [
        "  take(count=5)                          elements not known",
        "  zip(structure='(*, *)')                elements not known",
        "  ├─ repeat()                            endless",
        "  │  range(start=0, stop=3, step=1)      3 elements",
        "  └─ from_generator(generator=<lambda>)  elements not known",
    ]


def test_explain_tells_nested_branches_apart() -> None:
    one = Dataset.from_tensors(1)
    inner = one.concatenate(one.skip(1)).take(7)
    dataset = Dataset.zip(inner, Dataset.range(3).map(double)).with_options(fb.Options(optimize=False))
    assert [line.split("  ", 1)[1].rpartition("  ")[0].rstrip() for line in explained(dataset)[2:9]] == [
        "zip(structure='(*, *)')",
        "├─ take(count=7)",
        "│  concatenate()",
        "│  ├─ from_tensors(leaf: int64[])",
        "│  └─ skip(count=1)",
        "│     from_tensors(leaf: int64[])",
        "└─ map(map_func=double)",
    ]


def test_explain_names_what_is_left_to_forebay() -> None:
    assert "prefetch(buffer_size=AUTOTUNE)" in explained(Dataset.range(3).prefetch(fb.AUTOTUNE))[1]


def test_explain_keeps_the_names_of_fused_steps() -> None:
    dataset = Dataset.range(3).map(double, name="first").map(abs).map(add, name="last")
    runs = explained(dataset)[-2]
    assert runs.split("  ")[1] == "map(map_func=add, after=[double 'first', abs]) 'last'"


def test_wide_structures_are_abbreviated_and_still_told_apart() -> None:
    wide = {f"column {i}": np.zeros(3) for i in range(500)}
    dataset = Dataset.from_tensor_slices(wide)
    assert repr(dataset) == (
        "<Dataset from_tensor_slices(3 elements; ['column 0']: float64[], ['column 1']: float64[], "
        "['column 2']: float64[], ['column 3']: float64[], 496 more)>"
    )
    assert max(map(len, explained(dataset))) < 200
    state = iter(dataset).state_dict()
    assert len(json.dumps(state)) < 1000
    iter(Dataset.from_tensor_slices(dict(wide))).load_state_dict(state)
    others = (
        {**wide, "column 499": np.zeros(3, np.float32)},
        {f"column {i}" if i != 321 else "other": np.zeros(3) for i in range(500)},
    )
    for other in others:
        # Not even without strictness: these are other elements, not other data.
        with pytest.raises(fb.CursorError, match="another dataset"):
            iter(Dataset.from_tensor_slices(other)).load_state_dict(state, strict=False)
    zipped = Dataset.zip(dict.fromkeys(wide, Dataset.range(3)))
    assert len(repr(zipped)) < 250
    with pytest.raises(fb.CursorError, match="another dataset"):
        iter(Dataset.zip(dict.fromkeys(others[1], Dataset.range(3)))).load_state_dict(
            iter(zipped).state_dict(), strict=False
        )


def test_wide_files_are_abbreviated_and_still_told_apart(tmp_path: Path) -> None:
    def table(last: str) -> Dataset[Any]:
        names = [f"column {i}" for i in range(499)] + [last]
        (tmp_path / "a.csv").write_text(f"{','.join(names)}\n{','.join(map(str, range(500)))}\n")
        (tmp_path / "a.json").write_text(json.dumps(dict.fromkeys(names, 1)))
        return Dataset.zip(Dataset.from_csv(tmp_path / "a.csv"), Dataset.from_json(tmp_path / "a.json"))

    dataset = table("column 499")
    assert all("Structure" not in line for line in explained(dataset))
    assert max(map(len, explained(dataset))) < 300 + 2 * len(str(tmp_path))
    state = iter(dataset).state_dict()
    assert len(json.dumps(state)) < 3000
    iter(table("column 499")).load_state_dict(state)
    with pytest.raises(fb.CursorError, match="another dataset"):
        iter(table("other")).load_state_dict(state, strict=False)


def test_explain_calls_classes_by_their_names() -> None:
    assert "interleave(map_func=TFRecordDataset, " in explained(Dataset.range(3).interleave(fb.TFRecordDataset))[1]


def test_explain_prints_the_plan_as_written_when_not_optimised(capsys: pytest.CaptureFixture[str]) -> None:
    Dataset.range(10).skip(0).with_options(fb.Options(optimize=False)).explain()
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.splitlines()[1:] == second.splitlines()[1:]
    assert "with_options(optimize=False)" in first


def test_explain_shows_data_by_its_kind_not_its_content() -> None:
    data = {"a": np.zeros((3, 2), np.float32), "b": ["x", "secret", "z"]}
    line = explained(Dataset.from_tensor_slices(data))[1]
    assert line == "  from_tensor_slices(3 elements; ['a']: float32[2], ['b']: str[])  3 elements"
