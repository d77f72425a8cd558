"""Tensors and tables of libraries, by all that is in them. None is loaded for it: who holds one has loaded it."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.digests import blake2b


def foreign_parts(value: Any) -> Iterator[Any] | None:
    """What is in a tensor or an Arrow table; None if the value is neither."""
    torch, arrow = sys.modules.get("torch"), sys.modules.get("pyarrow")
    if torch is not None and hasattr(torch, "Tensor"):
        if isinstance(value, torch.Tensor):
            return _tensor(torch, value)
        if isinstance(value, torch.UntypedStorage):
            return iter((_bytes(torch, torch.empty(0, dtype=torch.uint8, device=value.device).set_(value)),))
        if isinstance(value, torch.TypedStorage):
            return iter((value.dtype, value._untyped_storage))
    if arrow is not None and hasattr(arrow, "Table"):
        if isinstance(value, (arrow.Table, arrow.RecordBatch)):
            return iter((_written(arrow, value),))
        if isinstance(value, (arrow.Array, arrow.ChunkedArray)):
            return iter((_written(arrow, arrow.table([value], [""])),))
    return None


def _tensor(torch: Any, tensor: Any) -> Iterator[Any]:
    with torch._C.DisableTorchFunctionSubclass():
        yield str(tensor.dtype), tuple(tensor.shape), str(tensor.layout), tensor.device.type, tensor.requires_grad
        yield sorted(vars(tensor).items())
        plain = tensor.detach()
        if plain.layout == torch.strided:
            parts = [plain]
            if not plain.is_contiguous():
                # As of arrays: functions see it, and sums round by it.
                yield tuple(step if length > 1 else 0 for step, length in zip(plain.stride(), plain.shape))
        elif plain.layout == torch.sparse_coo:
            parts = [plain._indices(), plain._values()]
        elif plain.layout in (torch.sparse_csr, torch.sparse_bsr):
            parts = [plain.crow_indices(), plain.col_indices(), plain.values()]
        else:
            parts = [plain.ccol_indices(), plain.row_indices(), plain.values()]
        if plain.is_quantized:
            yield plain.__reduce_ex__(4)[1][2:]
            parts = [plain.int_repr()]
        if plain.device.type != "meta":
            yield [_bytes(torch, part) for part in parts]


def _bytes(torch: Any, tensor: Any) -> np.ndarray:
    """A view, where it is in this machine's memory in one piece. NumPy has no name for some types of numbers."""
    here = tensor.cpu().resolve_conj().resolve_neg().contiguous()
    bits: np.ndarray = here.reshape(-1).view(torch.uint8).numpy()
    return bits


def _written(arrow: Any, table: Any) -> str:
    """A digest of the table as Arrow writes it to a stream: with names, metadata and dictionaries."""
    sink = _Digested()
    with arrow.PythonFile(sink, mode="w") as file, arrow.ipc.new_stream(file, table.schema) as stream:
        stream.write(table)
    return sink.state.hexdigest()


class _Digested:
    """A file that keeps nothing but a digest of what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.state = blake2b(digest_size=16)

    def write(self, data: Any) -> int:
        self.state.update(data)
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
