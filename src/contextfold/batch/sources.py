"""What there is to do: files, folders, globs, addresses and stores, cut into parts, and the conversations of a part.

A part is some 16 MB of conversations, or less of a small job: large enough that reading and writing it costs little,
small enough that little is done twice after a stop. Lines of a file are cut by bytes, so that no one has to read a file
of 100 GB to plan it: a line belongs to the part in which it begins.

    lines      one conversation in each line of a JSON Lines file, from one byte to another
    files      whole files, each with one conversation or several: sessions of coding agents, JSON
    groups     row groups of a Parquet file
    threads    sessions of a store

What belongs here: finding and reading. What does not: what a row means (``rows``), what is made of it (``operations``).
"""

from __future__ import annotations

import glob
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from contextfold import json_values
from contextfold.batch.opening import PEEK, compression_of, damaged, is_damage, opened, path_of, unpacked, whole
from contextfold.batch.outputs import JOB, cannot_be_opened, is_remote, needs
from contextfold.batch.rows import COLUMNS, OF_BATCHES, Given, column_of, read_row
from contextfold.errors import ContextfoldError, InputError, reason
from contextfold.formats.values import kind_of
from contextfold.store.addresses import shown
from contextfold.transcripts import read
from contextfold.transcripts.document import TranscriptFile, parse

Each = Literal["line", "file"]

PART_BYTES = 16 << 20
LEAST_BYTES = 256 << 10
FEWEST_PARTS = 64
"""A small job is cut into about as many parts, for its workers to end at about the same time."""
MOST_IN_PART = 1_000
"""Files or sessions."""
SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")
STORES = ("sqlite:", "postgresql:", "postgresql+")
_LONGEST_FIRST_LINE = 64 << 20
BYTES_PER_TOKEN = 4
"""Sessions of a store know their tokens; parts are cut by bytes."""


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the work. ``size`` in bytes tells how far a job is; ``start`` and ``stop`` are bytes or row groups.

    ``lengths``: how large each file of ``names`` is as a whole. Sessions of a store have none: they may grow meanwhile.
    """

    kind: Literal["lines", "files", "groups", "threads"]
    names: tuple[str, ...]
    size: int
    lengths: tuple[int, ...] = ()
    start: int = 0
    stop: int | None = None
    namespace: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Part:
        return cls(**{**data, "names": tuple(data["names"]), "lengths": tuple(data["lengths"])})


@dataclass(frozen=True, slots=True)
class Item:
    """One conversation of a part, or why there is none.

    ``place``: the byte at which its line begins, or the number of its row; None where it is the whole file. ``row``:
    what else its row holds.
    """

    source: str
    place: int | None = None
    given: Given | None = None
    error: Exception | None = None
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """How inputs are read: the column with conversations, their format, and whether a line is one."""

    column: str | None = None
    format: str | None = None
    each: Each | None = None
    namespace: str = ""


# ---- finding ----


def is_store(address: str) -> bool:
    return address.startswith(STORES)


def planned(inputs: Sequence[str], reading: Reading, known: Sequence[Part] = (), output: str = "") -> list[Part]:
    """The parts of all inputs, in an order that depends on nothing but their names.

    ``known``: parts that were planned before. Then only what is not in them is planned. ``output``: where the result
    goes; it may stand among the inputs, and is none of them. Raises ``InputError`` for an input that is not there,
    holds nothing that is read, or is the output, and where a file of the known parts is not as it was.
    """
    stores = [one for one in inputs if is_store(one)]
    found = dict(pair for one in inputs if not is_store(one) for pair in files_of(one, output))
    before = _sizes(known)
    for name, size in before.items():
        if found.get(name) != size:
            what = "has another size" if name in found else "is gone"
            raise InputError(f"{name} {what} since this job was begun: give another --output, or --fresh")
    files = sorted((name, size) for name, size in found.items() if name not in before)
    size = max(LEAST_BYTES, min(PART_BYTES, sum(length for _, length in files) // FEWEST_PARTS))
    parts: list[Part] = []
    whole: list[tuple[str, int]] = []
    for name, length in files:
        if not is_remote(name) and not os.access(name, os.R_OK):
            whole.append((name, length))  # one row says so, when the file is read
        elif is_parquet(name):
            parts += _groups(name, length, size)
        elif _holds_lines(name, reading):
            parts += _lines(name, length, size)
        else:
            whole.append((name, length))
    parts += _bundled("files", whole, size)
    for store in stores:
        first = shown(store)
        there = {name for part in known if part.kind == "threads" and part.names[0] == first for name in part.names}
        threads = [thread for thread in _threads(store, reading.namespace) if thread[0] not in there]
        parts += _bundled("threads", threads, size, reading.namespace, first)
    return parts


def _sizes(parts: Sequence[Part]) -> dict[str, int]:
    return {name: length for part in parts for name, length in zip(part.names, part.lengths, strict=False)}


def _bundled(
    kind: Literal["files", "threads"], named: Sequence[tuple[str, int]], size: int, namespace: str = "", store: str = ""
) -> list[Part]:
    """Parts of many small things each."""
    parts: list[Part] = []
    some: list[tuple[str, int]] = []
    for number, one in enumerate(named):
        some.append(one)
        held = sum(length for _, length in some)
        if held >= size or len(some) >= MOST_IN_PART or number == len(named) - 1:
            names, lengths = zip(*some, strict=True)
            if store:
                # A part is read by itself, maybe in another process, so it names its store before the threads.
                parts.append(Part(kind, (store, *names), held, namespace=namespace))
            else:
                parts.append(Part(kind, names, held, lengths))
            some = []
    return parts


def _lines(name: str, length: int, size: int) -> list[Part]:
    # What is compressed has no beginning in the middle; and a server that streams a file does not tell how long it is.
    if compression_of(name) or (is_remote(name) and not length):
        return [Part("lines", (name,), length, (length,))]
    return [
        Part("lines", (name,), min(size, length - start), (length,), start, min(start + size, length))
        for start in range(0, length, size)
    ]


def _groups(name: str, whole: int, size: int) -> list[Part]:
    with opened(name) as file:
        try:
            metadata = _parquet(file, name).metadata
        except Exception as error:
            if not is_damage(error):
                raise
            return [Part("groups", (name,), whole, (whole,))]  # one row says so, when the file is read
        sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    parts, start, held = [], 0, 0
    for number, length in enumerate(sizes):
        held += length
        if held >= size or number == len(sizes) - 1:
            parts.append(Part("groups", (name,), held, (whole,), start, number + 1))
            start, held = number + 1, 0
    return parts


def _threads(store: str, namespace: str) -> list[tuple[str, int]]:
    from contextfold.store import open_existing

    states = open_existing(store).sessions(namespace)
    return sorted((state.thread.id, state.token_count * BYTES_PER_TOKEN) for state in states)


def files_of(given: str, output: str = "") -> list[tuple[str, int]]:
    """The files of an input that is no store, but for those of the output: names and bytes.

    Raises ``InputError`` where there are none.
    """
    files = _found_remote(given) if is_remote(given) else _found_local(given)
    if files and files[0][0] == given and _is_of(given, output):
        raise InputError(f"{given} is the output, too: give another --output")
    # The same command goes on with a job, and would find what that has written as conversations that came since.
    files = [pair for pair in files if not _is_of(pair[0], output)]
    if not files:
        raise InputError(f"{given}: there is no file that ends in {', '.join(SUFFIXES)}, compressed or not")
    return files


_PLAN = f"/{JOB}/plan.json"
_PART = re.compile(r"part-\d{5,}\.(?:jsonl|parquet)")


def _is_of(name: str, output: str) -> bool:
    """Whether a file is an output, or a part of it."""
    if not output or is_remote(name) != is_remote(output):
        return False
    name, output = (one if is_remote(one) else os.path.realpath(one).replace(os.sep, "/") for one in (name, output))
    output = output.rstrip("/")
    folder, _, base = name.rpartition("/")
    return name == output or (folder in (output, f"{output}.parts") and _PART.fullmatch(base) is not None)


def _found_local(given: str) -> list[tuple[str, int]]:
    path = Path(given)
    if os.path.isfile(given):
        return [(given, path.stat().st_size)]
    if os.path.isdir(given):
        names = [
            os.path.join(folder, name)
            for folder, inside, names in os.walk(path)
            if not inside.sort() and not _is_hidden(os.path.relpath(folder, path)) and not _is_result(folder, str(path))
            for name in names
        ]
    elif glob.has_magic(given):
        fixed = _before_magic(given)
        names = [name for name in glob.glob(given, recursive=True) if not _is_hidden(name.removeprefix(fixed))]
        if not _names_parts(given):
            results = {folder for folder in map(os.path.dirname, names) if _is_result(folder, fixed)}
            names = [name for name in names if os.path.dirname(name) not in results]
        return list(_with_sizes(names))
    else:
        raise InputError(f"{given}: there is no such file or folder")
    return list(_with_sizes(name for name in names if _is_read(name)))


def _with_sizes(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Files with their bytes. One that is not there, as behind a link that leads nowhere, has none, and its row says
    so; a pipe or a device is no file, and who reads one may wait for ever."""
    for name in names:
        try:
            found = os.stat(name)
        except OSError:
            yield name, 0
        else:
            if stat.S_ISREG(found.st_mode):
                yield name, found.st_size


def _found_remote(given: str) -> list[tuple[str, int]]:
    system, path = _system(given)
    scheme = given.partition("://")[0]
    try:
        # What stands behind a path on the web is no pattern, as the ? in front of it.
        if glob.has_magic(path_of(path)):
            fixed = _before_magic(path)
            listed = system.glob(path, detail=True)
            listed = {name: info for name, info in listed.items() if not _is_hidden(name.removeprefix(fixed))}
            if not _names_parts(path):
                folders = {name.rpartition("/")[0] for name in listed} - {fixed}
                results = tuple(f"{folder}/" for folder in folders if system.isfile(folder + _PLAN))
                listed = {name: info for name, info in listed.items() if not name.startswith(results)}
        elif system.isfile(path):
            info = system.info(path)
            return [(given, int(info.get("size") or 0))]
        elif not system.exists(path):
            # object stores have no folders, and HTTP lists nothing where nothing answers: both would look empty
            raise InputError(f"{given}: there is no such file or folder, or nothing answers there")
        else:
            listed = system.find(path, detail=True)
            below = {name: name[len(path) :] for name in listed}
            results = tuple(f"{name.removesuffix(_PLAN)}/" for name in listed if _PLAN in below[name][1:])
            listed = {
                name: info
                for name, info in listed.items()
                if _is_read(name) and not _is_hidden(below[name]) and not name.startswith(results)
            }
    except FileNotFoundError:
        raise InputError(f"{given}: there is no such file or folder") from None
    except OSError as error:
        raise InputError(f"{given} cannot be listed: {error}") from None
    files = {name: info for name, info in listed.items() if info.get("type", "file") == "file"}
    return [
        (
            f"{scheme}://{name.partition('://')[2] or name.lstrip('/') if scheme != 'file' else name}",
            int(info.get("size") or 0),
        )
        for name, info in files.items()
    ]


def _base(name: str) -> str:
    return path_of(name).replace(os.sep, "/").rpartition("/")[2]


def is_parquet(name: str) -> bool:
    """Whether a file is one of Parquet by its name."""
    return _base(name).lower().endswith(".parquet")


def _is_hidden(path: str) -> bool:
    """As readers of data sets have it: what begins with ``_`` or ``.`` is no data."""
    return any(part.startswith(("_", ".")) and part not in (".", "..") for part in path.replace(os.sep, "/").split("/"))


def _before_magic(pattern: str) -> str:
    """The folders of a pattern that are named in full."""
    return re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0]


def _names_parts(pattern: str) -> bool:
    """Whether a pattern asks for parts of results by their name."""
    return _base(pattern).startswith("part-")


def _is_result(folder: str, given: str) -> bool:
    """Whether a folder below the given one holds the result of a job."""
    return folder != given and os.path.isfile(folder + _PLAN)


def _is_read(name: str) -> bool:
    return unpacked(name).endswith(SUFFIXES) and not _is_hidden(_base(name))


def _holds_lines(name: str, reading: Reading) -> bool:
    """Whether each line of a file is a conversation, and not the file one of many lines."""
    if reading.each is not None:
        return reading.each == "line"
    if not unpacked(name).endswith((".jsonl", ".ndjson")):
        return False
    value = _first_line(name)
    if isinstance(value, dict):
        if "custom_id" in value and any(isinstance(value.get(column), dict) for column in OF_BATCHES):
            return True
        # where a named column is missing, these are rows all the same, and each is to say so
        columns = (*COLUMNS, reading.column) if reading.column else COLUMNS
        is_named = reading.column is not None and isinstance(value.get(reading.column), dict)
        return "role" not in value and (is_named or any(isinstance(value.get(one), list | str) for one in columns))
    return isinstance(value, list)


def _first_line(name: str) -> Any:
    """The value of the first line that is not blank; None where there is none, or it is no JSON."""
    with opened(name) as file:
        for _ in range(PEEK):
            try:
                line = file.readline(_LONGEST_FIRST_LINE)
            except Exception as error:  # noqa: BLE001 - each library has its own
                if is_damage(error):
                    return None  # one row says so, when the file is read
                raise InputError(f"{name} cannot be read: {reason(error)}") from None
            if not line:
                return None
            if line.strip():
                try:
                    return json_values.read(line.removeprefix(b"\xef\xbb\xbf"))
                except ValueError:
                    return None
    return None


# ---- opening ----


def _system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise needs("fsspec", address) from None
    try:
        found: tuple[Any, str] = url_to_fs(address)
    except (ImportError, ValueError, OSError) as error:  # some ask their server at once
        raise cannot_be_opened(address, error) from None
    return found


def _parquet(file: Any, name: str) -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise needs("pyarrow", f"{name}: Parquet") from None
    return parquet.ParquetFile(file)


# ---- reading ----


def items(part: Part, reading: Reading, store: str | None = None) -> Iterator[Item]:
    """The conversations of a part, in order. What is none is an item with an error.

    ``store``: the address of the store with its password, which a plan does not hold.
    """
    if part.kind == "lines":
        return _items_of_lines(part, reading)
    if part.kind == "files":
        return (item for name in part.names for item in _items_of_file(name, reading))
    if part.kind == "groups":
        return _items_of_groups(part, reading)
    return _items_of_threads(part, store or part.names[0])


def _items_of_lines(part: Part, reading: Reading) -> Iterator[Item]:
    name = part.names[0]
    with opened(name) as file:
        at = part.start
        if at:
            # one byte back: after a newline there, the line that begins at the start is this part's, and only that
            # newline is skipped
            file.seek(at - 1)
            at += len(file.readline()) - 1  # of a line that began before: it belongs to the part before
        while part.stop is None or at < part.stop:
            try:
                line = file.readline()
            except Exception as error:
                if not is_damage(error):
                    raise
                # what was read before is sound: it is not to be lost for what cannot be read
                yield Item(name, at, error=damaged(name, at, error))
                return
            if not line:
                return
            if line.strip():
                yield from _items_of_line(name, at, line, reading)
            at += len(line)


def _items_of_line(name: str, at: int, line: bytes, reading: Reading) -> Iterator[Item]:
    row: dict[str, Any] = {}
    try:
        value = json_values.read(line.removeprefix(b"\xef\xbb\xbf"))
        if isinstance(value, list):
            value = {COLUMNS[0]: value}
            column = COLUMNS[0]
        elif isinstance(value, dict):
            column = column_of(list(value), reading.column)
        else:
            raise InputError(f"the line at byte {at:,} is no object and no list")
        row = {key: held for key, held in value.items() if key != column}
        for given in read_row(value, column, reading.format):
            yield Item(name, at, given, row=row)
    except json.JSONDecodeError as error:
        problem = InputError(f"the line at byte {at:,} is no JSON: {error.msg} at character {error.pos + 1:,} of it")
        yield Item(name, at, error=problem)
    except Exception as error:  # noqa: BLE001  one bad row must not end a job of a million
        yield Item(name, at, error=error, row=row)


def _items_of_file(name: str, reading: Reading) -> Iterator[Item]:
    try:
        data = whole(name)
        if reading.column is not None:
            yield from _items_of_objects(name, parse(data, name), reading.column, reading)
            return
        for found in read(data, name=name, format=reading.format):
            number = found.name.removeprefix(name)
            tools, number = found.tools or None, number.removeprefix("#")
            given = Given(found.messages, found.format, tools, name=number, left_out=found.left_out)
            yield Item(name, given=given)
    except Exception as error:  # noqa: BLE001  as above
        yield Item(name, error=error)


def _items_of_objects(name: str, document: TranscriptFile, column: str, reading: Reading) -> Iterator[Item]:
    """The conversations in a named column of the object, or the objects, that a file is."""
    objects = document.objects
    # Where no object has it, this is a matter of the file, and not of each of its thousand messages.
    column_of(list(dict.fromkeys(key for one in objects for key in one)), column)
    for place, value in enumerate(document.rows):
        at = place if isinstance(document.value, list) else None
        row = {key: held for key, held in value.items() if key != column} if isinstance(value, dict) else {}
        try:
            if not isinstance(value, dict):
                raise InputError(f"{document.place(place)} is {kind_of(value)}, and has no column {column}")
            column_of(list(value), column)
            for given in read_row(value, column, reading.format):
                yield Item(name, at, given, row=row)
        except Exception as error:  # noqa: BLE001  as above
            yield Item(name, at, error=error, row=row)


def _items_of_groups(part: Part, reading: Reading) -> Iterator[Item]:
    name = part.names[0]
    with opened(name) as file:
        try:
            held = _parquet(file, name)
            rows = [held.metadata.row_group(number).num_rows for number in range(held.num_row_groups)]
        except Exception as error:
            if not is_damage(error):
                raise
            problem = f"{name} is no Parquet file, or is cut off ({reason(error)}): write it again"
            yield Item(name, error=InputError(problem))
            return
        before = sum(rows[: part.start])
        try:
            column = column_of(held.schema_arrow.names, reading.column)
        except InputError as error:
            yield Item(name, before, error=error)
            return
        for number in range(part.start, part.stop or len(rows)):
            yield from _items_of_group(held, number, Item(name, before), column, reading)
            before += rows[number]


def _items_of_group(held: Any, number: int, first: Item, column: str, reading: Reading) -> Iterator[Item]:
    """``first``: where its first row stands."""
    name, at = first.source, first.place or 0
    try:
        for batch in held.iter_batches(16, row_groups=[number]):
            for place in range(batch.num_rows):
                rest: dict[str, Any] = {}
                try:
                    (row,) = batch.slice(place, 1).to_pylist()
                    rest = {key: value for key, value in row.items() if key != column}
                    for given in read_row(row, column, reading.format):
                        yield Item(name, at, given, row=rest)
                except Exception as error:  # noqa: BLE001  as above
                    yield Item(name, at, error=error, row=rest)
                at += 1
    except Exception as error:
        if not is_damage(error):
            raise
        # The row groups before it and behind it are sound.
        problem = f"{name} is damaged in row group {number} ({reason(error)}): write it again"
        yield Item(name, at, error=InputError(problem))


def _items_of_threads(part: Part, store: str) -> Iterator[Item]:
    from contextfold.compactor import Compactor
    from contextfold.store import SessionOptions, open_store

    opened = open_store(store)
    reader = Compactor(remembered=1)
    for thread in part.names[1:]:
        try:
            options = SessionOptions(enable_context_optimization=False)
            session = reader.session(thread, opened, namespace=part.namespace, options=options)
            given = Given(session.history(), session.state().format)
            yield Item(part.names[0], given=given, row={"thread": thread})
        except ContextfoldError as error:
            yield Item(part.names[0], error=error, row={"thread": thread})
