"""An archive of markdown files, one for each thread, on a disk, in S3, or anywhere else that fsspec reaches.

What belongs here: writing, checking what was written, and reading back. What does not: how a file is laid out
(``sections``), and when something is archived.

A section counts as saved when it has been read back and is what was written; on a local disk, when it has reached the
disk besides. One writer at a time for each thread; a local file is locked against others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from contextfold.archive import markdown, names
from contextfold.archive.sections import Entry, Pointer, Scan, entry_at, heading, scan, section
from contextfold.conversation.fingerprint import digest
from contextfold.errors import ArchiveError, InputError
from contextfold.messages import Message


def open_archive(address: str, **options: Any) -> Archive:
    """The archive at an address such as ``file:///var/lib/agent``, ``s3://bucket/agent`` or ``memory://test``.

    ``options`` go to the file system of the address (credentials, end points; see fsspec). Raises ``InputError`` for an
    address that cannot be used, and where the extra ``store`` is not installed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise InputError("an archive needs fsspec: pip install contextfold[store]") from error
    try:
        system, path = url_to_fs(address, **options)
    except (ImportError, ValueError) as error:
        raise InputError(f"{address!r} cannot be used as an archive: {error}") from error
    return Archive(system, path.rstrip("/"), address.rstrip("/"))


@dataclass(frozen=True)
class Archive:
    """All threads of one place. Make it with ``open_archive``."""

    system: Any
    """The file system, as fsspec gives it."""
    root: str
    address: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def thread(self, thread: str, *, namespace: str = "") -> ThreadArchive:
        """The file of one thread. It is made when something is first archived."""
        space, name = names.thread_name("", namespace), names.thread_name(namespace, thread)
        return ThreadArchive(self, thread, f"{space}/{name}")


@dataclass
class ThreadArchive:
    """The evicted originals of one thread."""

    archive: Archive
    thread: str
    name: str
    _known: tuple[int, Scan] | None = field(default=None, init=False, repr=False)
    """The size of the file when it was last scanned, and what was found."""

    @property
    def address(self) -> str:
        """Where the file is, for people and for tools."""
        return f"{self.archive.address}/{self.name}.md"

    @property
    def path(self) -> str:
        return f"{self.archive.root}/{self.name}.md"

    def append(self, messages: Mapping[int, Message]) -> Pointer:
        """Save messages, by their index in the history. What is there already is not saved again.

        Returns where they are. Raises ``ArchiveError`` when it is not certain that all of them can be read back; the
        file is then as it was before, as far as its file system allows.
        """
        if not messages:
            raise ArchiveError("there is nothing to archive")
        indices = sorted(messages)
        try:
            with self._writing():
                known = {(place.index, place.digest) for place in self._scanned().places}
                digests = {index: digest(messages[index]).hex() for index in indices}
                new = [index for index in indices if (index, digests[index]) not in known]
                if new:
                    self._append([self._entry(index, messages[index], digests[index]) for index in new])
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be written: {error}") from error
        return Pointer(self.address, indices[0], indices[-1], len(indices))

    def read(self, start: int = 0, count: int = 20) -> list[Entry]:
        """Archived messages from index ``start`` on, at most ``count``, in the order of the history.

        Where several messages were archived under one index (an undone turn, then another one), the last one counts.
        Raises ``ArchiveError`` when the file cannot be read or is damaged.
        """
        latest = {place.index: place for place in self._scanned().places if place.index >= start}
        chosen = [latest[index] for index in sorted(latest)[:count]]
        return [entry_at(place, self._bytes(place.start, place.stop)) for place in chosen]

    def delete(self) -> None:
        """Delete the file and its media. Nothing happens if there are none. Raises ``ArchiveError``.

        For a thread that nobody archives to any more: what others append meanwhile may be deleted with the rest.
        """
        system, media = self.archive.system, f"{self.path.removesuffix('.md')}.media"
        try:
            for path in (self.path, media, f"{self.path}.lock"):
                system.invalidate_cache()
                if system.exists(path):
                    system.rm(path, recursive=path == media)
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be deleted: {error}") from error
        self._known = None

    def indices(self) -> list[int]:
        """Which messages of the history are here."""
        return sorted({place.index for place in self._scanned().places})

    # ---- writing ----

    def _entry(self, index: int, message: Message, identity: str) -> Entry:
        return Entry(index, message.role, markdown.as_markdown(message, self._keep_medium), identity)

    def _keep_medium(self, data: bytes, media_type: str | None) -> str:
        folder = f"{self.name.rpartition('/')[2]}.media"
        name = names.media_name(data, media_type)
        path = f"{self.path.removesuffix('.md')}.media/{name}"
        system = self.archive.system
        if not system.exists(path) or system.size(path) != len(data):
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
            system.pipe_file(path, data)
            if system.cat_file(path) != data:
                raise ArchiveError(f"{path} does not hold what was written to it")
        return f"{folder}/{name}"

    def _append(self, entries: Sequence[Entry]) -> None:
        end = self._scanned().end
        data = section(entries, self.archive.now())
        if end == 0:
            data = heading(self.thread) + data
        self._write(end, data)
        self._known = None
        stored = self._bytes(end, None)
        if stored != data:
            self._cut(end)
            raise ArchiveError(
                f"{self.address} does not hold what was written to it: "
                f"{len(stored):,} bytes were read back where {len(data):,} had been written"
            )

    def _write(self, end: int, data: bytes) -> None:
        """Make the file end with ``data`` behind its first ``end`` bytes."""
        system = self.archive.system
        system.makedirs(self.path.rpartition("/")[0], exist_ok=True)
        if _is_local(system):
            with open(self.path, "r+b" if os.path.exists(self.path) else "xb") as file:
                file.truncate(end)
                file.seek(end)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            return
        if end == self._size() and end:
            try:
                with system.open(self.path, "ab") as file:
                    file.write(data)
                return
            except (NotImplementedError, ValueError):  # it cannot append: one whole, new object instead
                pass
        system.pipe_file(self.path, self._bytes(0, end) + data)

    def _cut(self, end: int) -> None:
        if _is_local(self.archive.system) and os.path.exists(self.path):
            os.truncate(self.path, end)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A lock against other processes, where the file system has one."""
        if not _is_local(self.archive.system):
            yield
            return
        import fcntl

        self.archive.system.makedirs(self.path.rpartition("/")[0], exist_ok=True)
        with open(f"{self.path}.lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # ---- reading ----

    def _scanned(self) -> Scan:
        size = self._size()
        if self._known is None or self._known[0] != size:
            self._known = size, scan(self._bytes(0, size), self.address)
        return self._known[1]

    def _size(self) -> int:
        system = self.archive.system
        system.invalidate_cache()
        try:
            return int(system.size(self.path) or 0)
        except FileNotFoundError:
            return 0

    def _bytes(self, start: int, stop: int | None) -> bytes:
        if stop is not None and start >= stop:
            return b""
        try:
            data: bytes = self.archive.system.cat_file(self.path, start=start, end=stop)
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be read: {error}") from error
        return data


def _is_local(system: Any) -> bool:
    return "file" in (system.protocol if isinstance(system.protocol, tuple | list) else (system.protocol,))
