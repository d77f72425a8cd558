"""Importing Forebay is cheap and brings in nobody else; what it exports exists and is documented."""

import inspect
import json
from importlib.metadata import version
from typing import Any

import pytest

import forebay as fb
from forebay import ops, sources
from forebay.rules import RULES, RuleFor
from unit.support import python

HEAVY = [
    "pyarrow",
    "torch",
    "jax",
    "tensorflow",
    "ray",
    "pandas",
    "rich",
    "typer",
    "psutil",
    "matplotlib",
    "hypothesis",
    "cv2",
    "simplejpeg",
]


# Of what NumPy does not load itself. A module more takes a good part of a millisecond, from every program that imports
# Forebay and from every worker process.
LIGHT = {"_blake2", "atexit", "copy", "dataclasses", "gc", "importlib", "threading"}
MOST_MODULES = 79


def loaded(*steps: str) -> list[set[str]]:
    """The modules that each step of a program loads, in a fresh interpreter that has NumPy."""
    code = """
import sys
import numpy as np
known, found = set(sys.modules), []
for step in sys.argv[1:]:
    exec(step)
    found.append(sorted(set(sys.modules) - known))
    known = set(sys.modules)
import json
print(json.dumps(found))
"""
    return [set(modules) for modules in json.loads(python(code, 300, *steps))]


def test_importing_forebay_loads_numpy_and_little_else() -> None:
    (modules,) = loaded("import forebay")
    packages = {name.partition(".")[0] for name in modules}
    assert packages - {"forebay", "numpy"} <= LIGHT
    assert len([name for name in modules if name.startswith("forebay")]) <= MOST_MODULES


def test_what_few_pipelines_need_is_loaded_by_those() -> None:
    imported, _, shuffled = loaded(
        "import forebay as fb", "ds = fb.Dataset.range(10).map(abs).batch(2); list(ds)", "ds = ds.shuffle(3)"
    )
    assert "forebay.ops.shuffle" not in imported
    assert "forebay.ops.shuffle" in shuffled


@pytest.mark.parametrize(
    "dataset",
    [
        "fb.Dataset.range(10).map(lambda x: x).batch(2)",
        "fb.Dataset.from_tensor_slices(['a', 'b']).map(lambda x: x, num_parallel_calls=2, executor='thread')",
        "fb.Dataset.range(100).shuffle(10).map(lambda x: x).repeat(2).batch(2).prefetch(2)",
    ],
)
def test_nothing_but_rules_is_loaded_while_somebody_waits_for_the_first_element(dataset: str) -> None:
    _, late = loaded(f"import forebay as fb; ds = {dataset}", "it = iter(ds); next(it); it.close()")
    assert {name for name in late if not name.startswith("forebay.rules.")} == set()


@pytest.mark.parametrize("package", [fb, ops, sources], ids=lambda package: package.__name__)
def test_names_that_are_loaded_late_are_all_there(package: Any) -> None:
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Missing'"):
        _ = package.Missing


def test_a_rule_is_for_kinds_of_steps_that_there_are() -> None:
    kinds = {getattr(ops, name).kind for name in ops.__all__}
    for rule in RULES:
        if isinstance(rule, RuleFor):
            assert {*rule.kinds, rule.over or "map"} <= kinds
            assert rule.function.__name__ == rule.__name__


def test_running_a_pipeline_loads_no_framework_either() -> None:
    code = f"""
import sys
import numpy as np
import forebay as fb
ds = fb.Dataset.from_tensor_slices({{"x": np.zeros((100, 3)), "y": ["t"] * 100}})
ds = ds.shuffle(10).map(lambda d: d).batch(7).prefetch(2)
it = iter(ds)
next(it)
it.load_state_dict(it.state_dict())
ds.explain(file=open("/dev/null", "w"))
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert python(code) == "[]\n"


def test_importing_does_not_start_threads_or_touch_random_numbers() -> None:
    code = """
import random, threading
import numpy as np
random.seed(1); np.random.seed(1)
import forebay as fb
list(fb.Dataset.range(20).shuffle().map(lambda x, rng: rng.random(), rng=True))
print(threading.active_count(), random.random(), np.random.random())
random.seed(1); np.random.seed(1)
print(threading.active_count(), random.random(), np.random.random())
"""
    first, second = python(code).splitlines()
    assert first == second
    assert first.startswith("1 ")


def test_every_exported_name_exists_once() -> None:
    assert len(fb.__all__) == len(set(fb.__all__))
    for name in fb.__all__:
        assert hasattr(fb, name), name


@pytest.mark.parametrize("name", [name for name in fb.__all__ if not isinstance(getattr(fb, name), int)])
def test_every_exported_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(fb, name)), name


def members(kind: type[Any]) -> list[tuple[str, Any]]:
    found = inspect.getmembers_static(kind)
    return [(name, inspect.unwrap(getattr(value, "__func__", value))) for name, value in found if name[0] != "_"]


@pytest.mark.parametrize("kind", [fb.Dataset, fb.DatasetIterator, fb.TensorSpec, fb.Options], ids=lambda k: k.__name__)
def test_every_public_method_is_documented(kind: type[Any]) -> None:
    for name, value in members(kind):
        if callable(value) or isinstance(value, property):
            assert inspect.getdoc(value), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("kind", [fb.Dataset, fb.DatasetIterator], ids=lambda k: k.__name__)
def test_every_public_method_has_an_example(kind: type[Any]) -> None:
    for name, value in members(kind):
        if callable(value) or isinstance(value, property):
            assert ">>>" in (inspect.getdoc(value) or ""), name


def test_names_can_be_completed_before_they_are_loaded() -> None:
    names = python("import forebay, json; print(json.dumps(dir(forebay)))")
    assert json.loads(names) == sorted([*fb.__all__, "__version__"])


def test_names_of_tf_data_are_there() -> None:
    names = (
        "range from_tensors from_tensor_slices from_generator random counter zip map filter batch unbatch take skip "
        "shard repeat concatenate enumerate flat_map shuffle reduce apply take_while prefetch cardinality "
        "element_spec as_numpy_iterator get_single_element cache with_options options explain"
    )
    missing = [name for name in names.split() if not hasattr(fb.Dataset, name)]
    assert missing == []
    assert (fb.AUTOTUNE, fb.INFINITE_CARDINALITY, fb.UNKNOWN_CARDINALITY) == (-1, -1, -2)


def test_every_error_is_a_forebay_error() -> None:
    kinds = [value for value in vars(fb.errors).values() if inspect.isclass(value)]
    assert len(kinds) >= 6
    for kind in kinds:
        assert issubclass(kind, fb.ForebayError)
        assert inspect.getdoc(kind)
        # The hierarchy is drawn in the module's docstring.
        assert kind.__name__ in (fb.errors.__doc__ or "")
    assert issubclass(fb.PlanError, ValueError)


def test_the_version_is_the_packages() -> None:
    assert fb.__version__ == version("forebay")
