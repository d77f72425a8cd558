"""Digests with contents of PyTorch's tensors and models."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from forebay.plan.fingerprint import digest
from unit.support import python

torch = pytest.importorskip("torch")


class Scaling(torch.nn.Module):
    def __init__(self, k: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.k = k

    def forward(self, x: Any) -> Any:
        return x * self.weight * self.k


def layers(k: int, training: bool = True) -> Any:
    generator = torch.Generator().manual_seed(k)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Dropout())
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, generator=generator)
    return model.train(training)


def buffered(k: int) -> Any:
    model = layers(1)
    model[1].running_mean[0] = k
    return model


def compressed(k: int, how: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return getattr(torch.tensor([[0.0, k]]), how)()


def noted(k: int) -> Any:
    tensor = torch.ones(2)
    tensor.note = k
    return tensor


MAKING: dict[str, Callable[[int], Any]] = {
    "a tensor": lambda k: torch.tensor([1, k]),
    "a large tensor": lambda k: torch.cat([torch.zeros(1 << 20), torch.tensor([float(k)]), torch.zeros(1 << 20)]),
    "a tensor of one number": lambda k: torch.tensor(k),
    "how a tensor lies": lambda k: torch.ones(2, 3) if k == 1 else torch.ones(3, 2).T,
    "a tensor with a gradient": lambda k: torch.tensor([1.0, k], requires_grad=True),
    "whether it has a gradient": lambda k: torch.tensor([1.0], requires_grad=k == 1),
    "a tensor's attribute": noted,
    "a conjugate": lambda k: torch.tensor([1j * k]).conj(),
    "bfloat16": lambda k: torch.tensor([1.0, k], dtype=torch.bfloat16),
    "eight bits": lambda k: torch.tensor([1.0, k]).to(torch.float8_e4m3fn),
    "sparse": lambda k: torch.tensor([[0.0, k]]).to_sparse(),
    "sparse rows": lambda k: compressed(k, "to_sparse_csr"),
    "sparse columns": lambda k: compressed(k, "to_sparse_csc"),
    "a storage": lambda k: torch.tensor([1, k]).untyped_storage(),
    "a parameter": lambda k: torch.nn.Parameter(torch.tensor([1.0, k])),
    "layers": layers,
    "a buffer": buffered,
    "layers in training": lambda k: layers(1, k == 1),
    "a module's attribute": Scaling,
}


@pytest.mark.parametrize("what", MAKING)
def test_all_that_is_in_them_counts(what: str) -> None:
    make = MAKING[what]
    assert digest(make(1), contents=True) == digest(make(1), contents=True) != digest(make(2), contents=True)


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
        "from forebay.plan.fingerprint import digest; from unit.test_fingerprint_torch import MAKING\n"
        "print([digest(make(1), True) for make in MAKING.values()])"
    )
    assert eval(python(code)) == [digest(make(1), contents=True) for make in MAKING.values()]


def test_tensors_without_numbers_count_by_shape_and_generators_not_at_all() -> None:
    for one, other in ((torch.empty(2, device="meta"), torch.empty(2, device="meta")), (torch.Generator(),) * 2):
        assert digest(one, contents=True) == digest(other, contents=True)
    drawn = torch.Generator().manual_seed(3)
    assert digest(drawn, contents=True) == digest(torch.Generator(), contents=True)
    assert digest(torch.empty(2, device="meta"), True) != digest(torch.empty(3, device="meta"), True)


def test_tensors_that_hold_others_equal_nothing() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    with pytest.warns(UserWarning, match="made anew"):
        assert digest(nested, contents=True) != digest(nested, contents=True)


def test_a_cache_is_made_anew_after_a_step_of_training(tmp_path: Path) -> None:
    def build() -> Any:
        return fb.Dataset.range(2).map(lambda x: model(torch.tensor([float(x)] * 2)).detach().numpy()[0])

    model = Scaling(1.0)
    assert [float(x) for x in build().cache(tmp_path / "c")] == [0, 1]
    with torch.no_grad():
        model.weight.mul_(2)
    assert [float(x) for x in build().cache(tmp_path / "c")] == [0, 2]
