"""What the columns of CSV files are: as declared, or as the first records show."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from forebay.block import LEAF, Structure, flatten
from forebay.block.spec import BYTES
from forebay.block.strings import Strings
from forebay.errors import FileError, PlanError
from forebay.plan.check import whole_number
from forebay.run.faults import Faults, Tolerance
from forebay.sources.csv import TYPES, CsvField, CsvRecords, read_fields
from forebay.sources.streamed import Look, StreamedFile

_WHOLE = re.compile(rb"\s*[+-]?[0-9]+\s*")
_ORDER = tuple(np.dtype(name) for name in ("int32", "int64", "float32", "float64")) + (BYTES,)
_BOM = b"\xef\xbb\xbf"


def as_field(call: str, argument: str, value: Any, name: str | None = None) -> CsvField:
    """A column as a user declares it: a dtype, which makes it required, or a default, alone or in a list."""
    given = value
    if hasattr(value, "as_numpy_dtype"):
        value = np.dtype(value.as_numpy_dtype)
    if isinstance(value, (type, np.dtype)):
        return CsvField(_dtype(call, argument, given, np.dtype(value)), None, name)
    array = value if isinstance(value, np.ndarray) else None
    if isinstance(value, (list, tuple)) or array is not None:
        items = list(array.reshape(-1)) if array is not None else list(value)
        if len(items) > 1:
            raise PlanError(f"{call}({argument}=...): {given!r} is more than one default for one column")
        if not items:
            # tf.data's empty list: required, of the dtype that it would have.
            return CsvField(
                _dtype(call, argument, given, np.dtype(np.float32 if array is None else array.dtype)), None, name
            )
        value = items[0]
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return CsvField(BYTES, bytes(value), name)
    if isinstance(value, np.generic):
        dtype = _dtype(call, argument, given, value.dtype)
        return CsvField(dtype, value.item(), name)
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(2**31) <= value < 2**31:
            raise PlanError(f"{call}({argument}=...): {given!r} does not fit into int32; np.int64({value}) does")
        return CsvField(np.dtype(np.int32), value, name)
    if isinstance(value, float):
        return CsvField(np.dtype(np.float32), value, name)
    raise PlanError(f"{call}({argument}=...): {given!r} is neither a dtype nor a default (a number, str or bytes)")


def _dtype(call: str, argument: str, given: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind in "SUO":
        return BYTES
    if dtype.newbyteorder("=") not in TYPES:
        raise PlanError(f"{call}({argument}=...): {given!r}: columns are int32, int64, float32, float64 or bytes")
    return dtype.newbyteorder("=")


def record_fields(call: str, record_defaults: Any) -> tuple[CsvField, ...]:
    """The columns of ``CsvDataset``."""
    if isinstance(record_defaults, (str, bytes)) or not isinstance(record_defaults, Sequence):
        raise PlanError(
            f"{call}(record_defaults={record_defaults!r}): give a list with a dtype or a default for each column"
        )
    if not record_defaults:
        raise PlanError(f"{call}(record_defaults=[]): there is no column")
    return tuple(as_field(call, "record_defaults", each) for each in record_defaults)


def selected(call: str, count: int, select_cols: Any, exclude_cols: Any) -> tuple[int, ...]:
    """The numbers of the `count` fields that are wanted; () for all of them."""
    if select_cols is not None and exclude_cols is not None:
        raise PlanError(f"{call}(): give select_cols or exclude_cols, not both")
    if exclude_cols is not None:
        without = _rising(call, "exclude_cols", exclude_cols)
        kept = (i for i in range(count + len(without)) if i not in without)
        return tuple(kept) if without else ()
    if select_cols is None:
        return ()
    wanted = _rising(call, "select_cols", select_cols)
    if len(wanted) != count:
        raise PlanError(f"{call}(select_cols={select_cols!r}): {len(wanted)} columns, but {count} record_defaults")
    return wanted


def _rising(call: str, argument: str, numbers: Any) -> tuple[int, ...]:
    try:
        found = tuple(whole_number(call, argument, number, 0) for number in numbers)
    except TypeError:
        raise PlanError(f"{call}({argument}={numbers!r}): give a list of column numbers") from None
    if any(a >= b for a, b in pairwise(found)):
        raise PlanError(f"{call}({argument}={numbers!r}): column numbers must rise")
    return found


def table_fields(
    call: str,
    look: Look,
    column_names: Any,
    column_defaults: Any,
    select_columns: Any,
    label_name: str | None,
    rows_for_inference: int,
    dialect: dict[str, Any],
    tolerance: Tolerance,
) -> dict[str, Any]:
    """The columns of ``from_csv`` as arguments of its node. `look` is the first of the files."""
    raw: list[bytes] | None = None
    if column_names is None:
        if not dialect["header"]:
            raise PlanError(f"{call}(header=False): without a header, give column_names")
        raw = _header(look, dialect)
        names = [_text(field, i) for i, field in enumerate(raw)]
    else:
        names = [str(name) for name in column_names]
    place = {name: i for i, name in enumerate(names)}
    twice = sorted({name for i, name in enumerate(names) if place[name] != i})
    if twice:
        raise PlanError(f"{call}(): there are several columns {', '.join(map(repr, twice))}; give column_names")
    wanted = _wanted(call, names, select_columns)
    chosen = () if len(wanted) == len(names) else tuple(wanted)
    kept = [names[i] for i in wanted]
    declared = _declared(call, kept, column_defaults)
    unknown = [name for name in kept if name not in declared]
    if unknown:
        most = whole_number(call, "num_rows_for_inference", rows_for_inference, 1)
        fields = [declared.get(name, CsvField(BYTES, b"")) for name in kept]
        types = dict(zip(kept, _inferred(look, fields, chosen, dialect, most, tolerance)))
        for name in unknown:
            dtype = types[name]
            declared[name] = CsvField(dtype, b"" if dtype == BYTES else 0, name, inferred=True)
    if label_name is not None and label_name not in kept:
        raise PlanError(f"{call}(label_name={label_name!r}): the columns are {kept}")
    structure, order = _structure(kept, label_name)
    return {
        "columns": tuple(declared[name] for name in kept),
        "select_cols": chosen,
        "structure": structure,
        "order": order,
        "names": None if raw is None else tuple(raw),
    }


def _text(field: bytes, number: int) -> str:
    return (field.removeprefix(_BOM) if not number else field).decode("utf-8", "surrogateescape")


def _wanted(call: str, names: list[str], select: Any) -> list[int]:
    if select is None:
        return list(range(len(names)))
    found = set()
    for each in select:
        if isinstance(each, str):
            if each not in names:
                raise PlanError(f"{call}(select_columns=...): there is no column {each!r}, only {names}")
            found.add(names.index(each))
        else:
            number = whole_number(call, "select_columns", each, 0)
            if number >= len(names):
                raise PlanError(f"{call}(select_columns=...): there is no column {number}, only {len(names)} columns")
            found.add(number)
    if not found:
        raise PlanError(f"{call}(select_columns=[]): there is no column")
    return sorted(found)


def _declared(call: str, kept: list[str], defaults: Any) -> dict[str, CsvField]:
    if defaults is None:
        return {}
    if isinstance(defaults, Mapping):
        strange = [name for name in defaults if name not in kept]
        if strange:
            raise PlanError(f"{call}(column_defaults=...): there is no column {strange[0]!r}, only {kept}")
        pairs = list(defaults.items())
    else:
        if len(defaults) != len(kept):
            raise PlanError(f"{call}(column_defaults=...): {len(defaults)} defaults for {len(kept)} columns")
        pairs = list(zip(kept, defaults))
    return {name: as_field(call, "column_defaults", value, name) for name, value in pairs}


def _structure(kept: list[str], label: str | None) -> tuple[Structure, tuple[int, ...]]:
    """Dicts of all columns, or of those but the label beside it."""
    order = [i for i, name in enumerate(kept) if name != label]
    element: Any = dict.fromkeys((kept[i] for i in order), 0)
    if label is not None:
        element = (element, 0)
        order.append(kept.index(label))
    return (flatten(element)[1] if order else LEAF), tuple(order)


def _header(look: Look, dialect: dict[str, Any]) -> list[bytes]:
    setup = look.setup()
    rows = StreamedFile(look, look.path, 0, setup.ledger.lease("header"), setup)
    try:
        return read_fields(rows, dialect["field_delim"], dialect["use_quote_delim"])
    finally:
        rows.close()


def _inferred(
    look: Look,
    fields: list[CsvField],
    wanted: tuple[int, ...],
    dialect: dict[str, Any],
    most: int,
    tolerance: Tolerance,
) -> list[np.dtype[Any]]:
    """The narrowest type that all fields of a column so far fit into; bytes if all of them are empty.

    Records are those that reading gives: `fields` are as declared, those without a type as bytes.
    """
    node = CsvRecords(
        files=(look.path,),
        compression=look.compression,
        columns=tuple(fields),
        structure=flatten((0,) * len(fields))[1],
        order=tuple(range(len(fields))),
        select_cols=wanted,
        **dialect,
    )
    setup = look.setup()
    faults = Faults(tolerance)
    types = [-1] * len(fields)
    rows = node.open(look.path, None, setup.ledger.lease("inference"), setup)
    try:
        left = most
        while left:
            try:
                block = rows.read(left)
            except FileError as error:
                # Whoever reads the file that far is told.
                if not faults.passes(error) or not rows.recover():
                    break
                faults.count += 1
                continue
            if block is None:
                break
            left -= block.rows
            for i, column in enumerate(block.columns):
                if isinstance(column, Strings):
                    types[i] = max(types[i], max(map(_type_of, filter(None, column.strings())), default=-1))
    finally:
        rows.close()
    return [BYTES if number < 0 else _ORDER[number] for number in types]


def _type_of(value: bytes) -> int:
    if _WHOLE.fullmatch(value):
        number = int(value)
        if abs(number) < 2**63:
            return 0 if -(2**31) <= number < 2**31 else 1
    try:
        real = float(value)
    except ValueError:
        return 4
    if b"_" in value:
        return 4
    return 2 if _is_single(value, real) else 3


def wider(dtype: np.dtype[Any], value: bytes) -> str:
    """The default to write for a column of a type that holds its values and this one too, which it does not hold."""
    found = _type_of(value)
    if found <= TYPES[dtype] or _ORDER[found] == BYTES:
        return '""'
    # Of whole numbers as large as int64 holds, float32 would leave a few digits.
    real = found == 3 or (found == 2 and dtype.kind == "i")
    return f"np.{'float64' if real else _ORDER[found].name}(0)"


def _is_single(value: bytes, real: float) -> bool:
    """Whether float32 holds the number, to as many digits as are written."""
    if not np.isfinite(real):
        return True
    digits = len(value.lower().partition(b"e")[0].translate(None, b"+-. ").lstrip(b"0"))
    with np.errstate(over="ignore"):
        return float(f"{float(np.float32(real)):.{max(digits, 1)}g}") == real
