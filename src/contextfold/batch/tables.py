"""Batches as other libraries have them: rows out of them, columns added to them.

A batch is a mapping of columns (lists or numpy arrays), a list of rows, or a table of pandas, polars or pyarrow. What
comes out is of the same kind and has the same rows in the same order, with columns added. The columns that came in are
never touched: they go through as the very same objects, so no conversion can change them.

What belongs here: kinds of tables, told by the module that their class comes from, so that nothing is imported that the
caller does not use. What does not: what stands in a row (``rows``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from contextfold.errors import InputError

ColumnType = Literal["text", "whole", "number", "truth"]
"""What a column holds, if not None: the same in every batch, also where all of a batch is None."""

ARROW_TYPES = {"text": "large_string", "whole": "int64", "number": "float64", "truth": "bool_"}
_PANDAS = {"text": object, "whole": "Int64", "number": "Float64", "truth": "boolean"}
_POLARS = {"text": "String", "whole": "Int64", "number": "Float64", "truth": "Boolean"}


def column_names(batch: Any) -> list[str]:
    """The names of a batch's columns; of a list of rows, those of all rows. Raises ``InputError`` for no batch."""
    kind = _kind(batch)
    if kind == "rows":
        return list(dict.fromkeys(name for row in batch for name in row))
    if kind == "pyarrow":
        return list(batch.schema.names)
    return [str(name) for name in (batch.columns if kind in ("pandas", "polars") else batch)]


def rows_of(batch: Any, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The rows of a batch, each with these columns as far as there are such."""
    kind = _kind(batch)
    if kind == "rows":
        yield from batch
        return
    held = [name for name in names if name in column_names(batch)]
    columns = [_values(batch, name, kind) for name in held]
    for values in zip(*columns, strict=True):
        yield dict(zip(held, values, strict=True))


def extended(batch: Any, columns: Mapping[str, Sequence[Any]], types: Mapping[str, ColumnType]) -> Any:
    """A batch of the same kind with these columns added, one value for each row."""
    kind = _kind(batch)
    if kind == "rows":
        new = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        return [{**row, **more} for row, more in zip(batch, new, strict=True)]
    if kind == "pyarrow":
        return _extended_arrow(batch, columns, types)
    if kind == "pandas":
        import pandas

        made = {
            name: pandas.Series(list(values), dtype=_PANDAS[types[name]], index=batch.index)
            for name, values in columns.items()
        }
        return batch.assign(**made)
    if kind == "polars":
        import polars  # no part of the extra: who passes one in has it

        return batch.with_columns(
            [polars.Series(name, values, getattr(polars, _POLARS[types[name]])) for name, values in columns.items()]
        )
    is_numpy = any(type(values).__module__ == "numpy" for values in batch.values())
    return {**batch, **{name: _numpy(values) if is_numpy else list(values) for name, values in columns.items()}}


def arrow_array(values: Sequence[Any], type: ColumnType) -> Any:
    """The column as pyarrow has it."""
    import pyarrow

    held = [encodable(value) if isinstance(value, str) else value for value in values]
    return pyarrow.array(held, getattr(pyarrow, ARROW_TYPES[type])())


def encodable(text: str) -> str:
    """A text that UTF-8 can carry: half a surrogate pair, as names of files have it for bytes that are no UTF-8, is
    written as JSON escapes it."""
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: Any) -> Any:
    """A value of a table as Python has it: arrays as lists, scalars of numpy and pyarrow as numbers and texts.

    What is neither, such as a LangChain message, stays the object that it is.
    """
    if isinstance(value, str | int | float | bool | bytes | None):
        return value
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    library = type(value).__module__.partition(".")[0]
    if library == "numpy":
        return plain(value.tolist())
    if library == "pyarrow":
        return plain(value.as_py())
    return plain(value.to_list()) if library == "polars" else value


def _kind(batch: Any) -> str:
    library = type(batch).__module__.partition(".")[0]
    if library == "polars" and hasattr(batch, "collect"):
        raise InputError("a lazy frame of polars has no rows yet: collect() it, or use its map_batches")
    if library == "daft" and hasattr(batch, "collect"):
        raise InputError(
            "a frame of Daft has no rows yet: give its to_arrow(), or each batch in a function of its own, as "
            '{"messages": column.to_pylist()}'
        )
    if library in ("pandas", "polars", "pyarrow") and hasattr(batch, "columns"):
        return library
    if isinstance(batch, Mapping):
        return "columns"
    if (
        isinstance(batch, Sequence)
        and not isinstance(batch, str | bytes)
        and all(isinstance(r, Mapping) for r in batch)
    ):
        return "rows"
    raise InputError(
        f"a batch is a mapping of columns, a list of rows, or a table of pandas, polars or pyarrow, not "
        f"{type(batch).__name__}"
    )


def _values(batch: Any, name: str, kind: str) -> Sequence[Any]:
    if kind == "pyarrow":
        values: Sequence[Any] = batch.column(name).to_pylist()
    elif kind == "polars":
        values = batch.get_column(name).to_list()
    elif kind == "pandas":
        values = list(batch[name])
    else:
        values = batch[name]
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise InputError(f"the column {name} is {type(values).__name__}: give a list or an array, one value a row")
    return values


def _extended_arrow(batch: Any, columns: Mapping[str, Sequence[Any]], types: Mapping[str, ColumnType]) -> Any:
    import pyarrow

    table = pyarrow.Table.from_batches([batch]) if isinstance(batch, pyarrow.RecordBatch) else batch
    for name, values in columns.items():
        table = table.append_column(name, arrow_array(values, types[name]))
    if not isinstance(batch, pyarrow.RecordBatch):
        return table
    return pyarrow.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=table.schema)


def _numpy(values: Sequence[Any]) -> Any:
    import numpy

    if all(isinstance(value, bool | int | float) for value in values):
        return numpy.array(values)
    made = numpy.empty(len(values), dtype=object)  # array() would look into lists
    made[:] = values
    return made
