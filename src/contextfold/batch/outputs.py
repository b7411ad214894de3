"""Parts of a result: each is one file of rows, JSON Lines or Parquet, and is there whole or not at all.

    OUTPUT/part-00017.jsonl     rows; readers of data sets find only these, as they skip what begins with _
    OUTPUT/_job/plan.json       what is to be done, and with which settings
    OUTPUT/_job/00017.json      what came of part 17; written after its rows, so a part with this file is done

A part is written under a name that no reader looks at and takes its place at once when it is complete (a local disk),
or appears when it is complete (object stores write so). A part that was stopped in the middle is written again under
the same name: nothing is there twice.

What belongs here: places (local paths and fsspec addresses), writing files. What does not: what stands in them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from contextfold import json_values
from contextfold.archive import local
from contextfold.batch.operations import as_json
from contextfold.batch.tables import ARROW_TYPES, ColumnType, arrow_array
from contextfold.errors import InputError, StoreError, shown
from contextfold.store import addresses

JOB = "_job"
ATTEMPTS = ".attempts"
"""How the names of notes end that workers of a cluster leave behind (``cluster``)."""
KINDS = ("jsonl", "parquet")
ROWS_AT_ONCE = 64
"""Rows of Parquet that are encoded together: views are large, and a group of rows is held in memory."""
_TEMPORARY = ".tmp"
_PART_IN_WORK = re.compile(r"\.part-\d+\.(?:jsonl|parquet)\.[^.]+\.tmp")


def needs(library: str, purpose: str) -> InputError:
    """The error where a library of the extra is missing."""
    return InputError(f"{purpose} needs {library}: pip install 'contextfold[batch]'")


def cannot_be_opened(address: str, error: Exception) -> InputError:
    """The error for an address that fsspec does not open."""
    return InputError(f"{told(address)} cannot be opened: {str(error).replace(address, told(address))}")


def is_remote(address: str) -> bool:
    """Whether an address is one that fsspec opens (``s3://...``), and no path on this machine."""
    return "://" in address


def told(address: str) -> str:
    """A place as people and files of results may see it: an address without its password."""
    return addresses.shown(address) if is_remote(address) else address


@contextlib.contextmanager
def writing(address: str) -> Iterator[None]:
    """What the disk, or the store behind an address, says inside is a ``StoreError`` about writing to ``address``."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{shown(told(address))} cannot be written: {(error.strerror or str(error)).lower()}"
        ) from error


class ResultFolder:
    """A folder, on this machine or behind an address of fsspec. Pickles as its address."""

    def __init__(self, address: str) -> None:
        if not address:  # a variable of a shell that is not set; it must not become the root folder
            raise InputError("the output has no name: give a folder, or a file that ends in .jsonl or .parquet")
        self.address = address.rstrip("/") or "/"
        self._system: Any = None
        if is_remote(address):
            try:
                from fsspec.core import url_to_fs
            except ImportError:
                raise needs("fsspec", address) from None
            try:
                self._system, self._root = url_to_fs(self.address)
            except (ImportError, ValueError, OSError) as error:  # some ask their server at once
                raise cannot_be_opened(self.address, error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return ResultFolder, (self.address,)

    def read(self, name: str) -> bytes | None:
        """A file in it; None where there is none."""
        try:
            if self._system is not None:
                found: bytes = self._system.cat_file(f"{self._root}/{name}")
                return found
            return (Path(self.address) / name).read_bytes()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:  # a name or an address that cannot be, or may not be read
            raise InputError(f"{shown(told(self.address))} cannot be read: {error}"[:500]) from error

    def names(self, folder: str = "") -> list[str]:
        """The files in it, or in a folder of it, by name."""
        if self._system is None:
            path = Path(self.address) / folder
            return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
        try:
            listed = self._system.ls(f"{self._root}/{folder}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return sorted(str(path).rstrip("/").rpartition("/")[2] for path in listed)

    def write(self, name: str, data: bytes) -> None:
        """A whole file, or nothing. Raises ``StoreError`` where it cannot be written."""
        with writing(f"{self.address}/{name}"), self.opened(name) as file:
            file.write(data)

    @contextlib.contextmanager
    def opened(self, name: str) -> Any:
        """A file to be written. It is there, and whole, once the block ends; where the block raises, it is not."""
        if self._system is None:
            path = Path(self.address) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                yield file
            return
        with tempfile.TemporaryFile() as file:  # on this machine first: what is stopped in the middle leaves nothing
            yield file
            file.seek(0)
            self._system.makedirs(f"{self._root}/{name}".rpartition("/")[0], exist_ok=True)
            with self._system.open(f"{self._root}/{name}", "wb") as remote:
                while piece := file.read(1 << 20):
                    remote.write(piece)

    def remove(self, name: str) -> None:
        """Remove a file in it."""
        if self._system is not None:
            self._system.rm_file(f"{self._root}/{name}")
        else:
            (Path(self.address) / name).unlink(missing_ok=True)

    def remove_if_empty(self) -> None:
        """Remove the folder, and the one of the job in it, unless something else stands there."""
        for folder in (f"/{JOB}", ""):
            with contextlib.suppress(Exception):  # each library has its own
                if self._system is None:
                    os.rmdir(self.address + folder)
                else:
                    self._system.rmdir(self._root + folder)

    def remove_left_overs(self) -> None:
        """Files that were being written when the process was killed; not those of one that writes them now."""
        if self._system is None and Path(self.address).is_dir():
            for path in self._temporary():
                with contextlib.suppress(FileNotFoundError):
                    with open(path, "rb") as file:
                        is_left = _locked(file.fileno())
                    if is_left:  # closed again, or Windows would not remove it
                        path.unlink()

    def _temporary(self) -> list[Path]:
        """Files of ours alone: the folder may be one in which people work."""
        parts = [path for path in Path(self.address).glob(f".*{_TEMPORARY}") if _PART_IN_WORK.fullmatch(path.name)]
        return [*parts, *Path(self.address, JOB).glob(f".*{_TEMPORARY}")]


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file on this machine to be written: it takes the place of ``path`` at once when the block ends.

    Where the block raises, what was there before stays. A file that is replaced hands on its permissions.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_TEMPORARY, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # The same job may run twice at once: what this one writes is no left-over to the other.
            _locked(descriptor)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _permissions(path))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _locked(descriptor: int) -> bool:
    """Lock a file until it is closed. False where another process has it locked; True where there are no such locks."""
    try:
        return local.lock(descriptor, wait=False)
    except OSError:
        return True


def _permissions(path: Path) -> int:
    """Those of the file that is replaced, or those that a new file would have (``mkstemp`` makes private ones)."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)  # there is no way to read it without setting it
    os.umask(mask)
    return 0o666 & ~mask


class JsonLines:
    """Rows as JSON Lines; values that are lists or objects stay such."""

    def __init__(self, file: IO[bytes], types: Mapping[str, ColumnType]) -> None:
        self._file = file

    def add(self, row: Mapping[str, Any]) -> None:
        self._file.write(as_json(row).encode() + b"\n")

    def close(self) -> None:
        """Nothing is held back."""

    def abandon(self) -> None:
        """As little is held back."""


class Parquet:
    """Rows as Parquet with the same columns in every part; lists and objects are JSON text in it."""

    def __init__(self, file: IO[bytes], types: Mapping[str, ColumnType]) -> None:
        import pyarrow
        from pyarrow import parquet

        self._types = types
        schema = pyarrow.schema([(name, getattr(pyarrow, ARROW_TYPES[type])()) for name, type in types.items()])
        self._writer = parquet.ParquetWriter(file, schema, compression="zstd")
        self._schema = schema
        self._rows: list[Mapping[str, Any]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """The file is not written to its end: else pyarrow does that later, and shows an error for its being closed."""
        self._writer.is_open = False

    def _flush(self) -> None:
        import pyarrow

        if self._rows:
            columns = [arrow_array([_cell(row.get(name)) for row in self._rows], t) for name, t in self._types.items()]
            self._writer.write_table(pyarrow.Table.from_arrays(columns, schema=self._schema))
        self._rows = []


def _cell(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else as_json(value)


WRITERS: Mapping[str, type[JsonLines] | type[Parquet]] = {"jsonl": JsonLines, "parquet": Parquet}


def kind_of_file(output: str) -> str | None:
    """What rows an output that is one file holds, by its name; None for a folder of parts."""
    suffix = output.rpartition(".")[2].lower()
    return suffix if suffix in KINDS else None


def check_kind(kind: str) -> None:
    """Raises ``InputError`` where rows of this kind cannot be written here."""
    if kind == "parquet":
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise needs("pyarrow", "Parquet") from None


def part_name(number: int, kind: str) -> str:
    return f"part-{number:05d}.{kind}"


def done_name(number: int) -> str:
    return f"{JOB}/{number:05d}.json"


def join(
    place: ResultFolder,
    names: Sequence[str],
    kind: str,
    target: ResultFolder,
    name: str,
    types: Mapping[str, ColumnType],
) -> None:
    """All parts as one file; of none a file without rows, which has the columns all the same."""
    with target.opened(name) as file:
        if not names:
            WRITERS[kind](file, types).close()
            return
        if kind == "jsonl":
            for part in names:
                file.write(place.read(part) or b"")
            return
        import pyarrow
        from pyarrow import parquet

        writer = None
        for part in names:
            held = parquet.ParquetFile(pyarrow.BufferReader(place.read(part) or b""))
            writer = writer or parquet.ParquetWriter(file, held.schema_arrow, compression="zstd")
            for batch in held.iter_batches(ROWS_AT_ONCE):
                writer.write_batch(batch)
        if writer is not None:
            writer.close()


def parsed(data: bytes | None) -> Any:
    """A JSON file of a job, or None where it is missing or was cut off."""
    try:
        return None if data is None else json_values.read(data)
    except ValueError:
        return None


def to_json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")
