"""An archive of markdown files, one for each thread, on a disk, in S3, or anywhere else that fsspec reaches.

What belongs here: writing, checking what was written, and reading back. What does not: how a file is laid out
(``sections``), and when something is archived.

A section counts as saved when it has been read back and is what was written, and so does a medium beside it; on a
local disk, when it has reached the disk besides. One writer at a time for each thread; a local file is locked against
others, is for its owner alone, and is never reached through a symbolic link (``local``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from contextfold.archive import local, names
from contextfold.archive.sections import Pointer, Scan, Section, entry_at, heading, scan, section
from contextfold.conversation.fingerprint import digest
from contextfold.errors import ArchiveError, InputError, shown
from contextfold.messages import Message
from contextfold.observe import scrub
from contextfold.recall import markdown


def open_archive(address: str | os.PathLike[str], **options: Any) -> Archive:
    """The archive at an address such as ``file:///var/lib/agent``, ``s3://bucket/agent`` or ``memory://test``, or in a
    folder of this machine given by its path.

    ``options`` go to the file system of the address (credentials, end points; see fsspec). Raises ``InputError`` for an
    address that cannot be used, and where the extra ``store`` is not installed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise InputError("an archive needs fsspec: pip install 'contextfold[store]'") from error
    if isinstance(address, os.PathLike):
        address = os.fspath(address)
    if not isinstance(address, str) or not address:
        raise InputError(f"an archive is named by an address or a path, not by {address!r:.60}")
    shown = without_credentials(address)
    try:
        system, path = url_to_fs(address, **options)
    except (ImportError, ValueError, OSError) as error:  # some ask their server at once
        problem = str(error).replace(address, shown)
        raise InputError(f"{shown!r} cannot be used as an archive: {scrub(problem)}") from None
    return Archive(system, path.rstrip("/"), shown.rstrip("/"))


_CREDENTIALS = re.compile(r"(?<=://)[^/?#]*@")


def without_credentials(address: str) -> str:
    """An address as it may be told: to people, in summaries that a model gets, and in records. User names go as well,
    because some stores take a token for one."""
    return scrub(_CREDENTIALS.sub("", address))


@dataclass(frozen=True)
class Archive:
    """All threads of one place. Make it with ``open_archive``."""

    system: Any
    """The file system, as fsspec gives it."""
    root: str
    address: str
    """Where it is, for people and in summaries: without the credentials that it was opened with."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def thread(self, thread: str, *, namespace: str = "") -> ThreadArchive:
        """The file of one thread. It is made when something is first archived. Raises ``InputError`` for names that are
        no text.
        """
        for what, given in (("thread id", thread), ("namespace", namespace)):
            if not isinstance(given, str):
                raise InputError(f"the {what} must be a text, not {shown(given)}")
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
                # The newest under each index, which is what is read back: one that was undone and came again is new.
                known = {place.index: place.digest for place in self._scanned().places}
                digests = {index: digest(messages[index]).hex() for index in indices}
                new = [index for index in indices if known.get(index) != digests[index]]
                if new:
                    self._append([self._entry(index, messages[index], digests[index]) for index in new])
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be written: {scrub(str(error))}") from error
        return Pointer(self.address, indices[0], indices[-1], len(indices))

    def read(self, start: int = 0, count: int = 20) -> list[Section]:
        """Archived messages from index ``start`` on, at most ``count``, in the order of the history.

        Where several messages were archived under one index (an undone turn, then another one), the last one counts.
        Raises ``ArchiveError`` when the file cannot be read or is damaged.
        """
        latest = {place.index: place for place in self._scanned().places if place.index >= start}
        chosen = [latest[index] for index in sorted(latest)[:count]]
        return [entry_at(place, self._bytes(place.start, place.stop)) for place in chosen]

    def delete(self) -> None:
        """Delete the file and its media. Nothing happens if there are none. Raises ``ArchiveError``.

        For a thread that is not archived to any more: what others append meanwhile may be deleted with the rest.
        """
        system, media = self.archive.system, f"{self.path.removesuffix('.md')}.media"
        try:
            if _is_local(system) and local.is_link(self.path.rpartition("/")[0]):
                raise OSError("its folder is a symbolic link, which is not followed")
            for path in (self.path, media, f"{self.path}.lock"):
                system.invalidate_cache()
                if system.exists(path):
                    system.rm(path, recursive=path == media)
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be deleted: {scrub(str(error))}") from error
        self._known = None

    def indices(self) -> list[int]:
        """Which messages of the history are here."""
        return sorted({place.index for place in self._scanned().places})

    # ---- writing ----

    def _entry(self, index: int, message: Message, identity: str) -> Section:
        return Section(index, message.role, markdown.as_markdown(message, self._keep_medium), identity)

    def _keep_medium(self, data: bytes, media_type: str | None) -> str:
        """Save a medium beside the file, verified and synced like the text that will refer to it."""
        folder = f"{self.name.rpartition('/')[2]}.media"
        name = names.media_name(data, media_type)
        if self._medium(name) != data:  # a crash may have left one of the right size that holds nothing
            self._write_medium(name, data)
            if self._medium(name) != data:
                raise ArchiveError(f"{self.address}: {folder}/{name} does not hold what was written to it")
        return f"{folder}/{name}"

    def _medium(self, name: str) -> bytes | None:
        """What is stored under a medium's name; None where nothing is."""
        system, path = self.archive.system, self._media_path(name)
        if _is_local(system):
            root, place = self.archive.root, self._media_names(name)
            return None if local.size(root, place) is None else local.read(root, place)
        system.invalidate_cache()
        data: bytes | None = system.cat_file(path) if system.exists(path) else None
        return data

    def _write_medium(self, name: str, data: bytes) -> None:
        system, path = self.archive.system, self._media_path(name)
        if _is_local(system):
            local.write(self.archive.root, self._media_names(name), 0, data)
            return
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        system.pipe_file(path, data)

    def _media_path(self, name: str) -> str:
        return f"{self.path.removesuffix('.md')}.media/{name}"

    def _media_names(self, name: str) -> list[str]:
        return [*f"{self.name}.media".split("/"), name]

    @property
    def _names(self) -> list[str]:
        return f"{self.name}.md".split("/")

    def _append(self, entries: Sequence[Section]) -> None:
        before = self._scanned()
        end = before.end
        data = section(entries, self.archive.now())
        if end == 0:
            data = heading(self.thread) + data
        self._write(end, data)
        self._known = None
        # Before the message leaves the view: a disk that is full, or a bucket that takes no more, may fail without an
        # error.
        stored = self._bytes(end, None)
        if stored != data:
            self._cut(end)
            raise ArchiveError(
                f"{self.address} does not hold what was written to it: "
                f"{len(stored):,} bytes were read back where {len(data):,} had been written"
            )
        # To read all of it again at each append would take the square of its length.
        self._known = end + len(data), before.then(data)

    def _write(self, end: int, data: bytes) -> None:
        """Make the file end with ``data`` behind its first ``end`` bytes."""
        system = self.archive.system
        if _is_local(system):
            local.write(self.archive.root, self._names, end, data)
            return
        system.makedirs(self.path.rpartition("/")[0], exist_ok=True)
        if end == self._size() and end:
            try:
                with system.open(self.path, "ab") as file:
                    file.write(data)
                return
            except (NotImplementedError, ValueError):  # it cannot append: one whole, new object instead
                pass
        system.pipe_file(self.path, self._bytes(0, end) + data)

    def _cut(self, end: int) -> None:
        if _is_local(self.archive.system):
            # Elsewhere nothing is cut at once: a torn section does not count (``scan``), and the next append writes
            # over it.
            local.write(self.archive.root, self._names, end, b"")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A lock against other processes, where the file system has one."""
        if not _is_local(self.archive.system):
            yield
            return
        names = [*self._names[:-1], f"{self._names[-1]}.lock"]
        with open(local.open_inside(self.archive.root, names, os.O_RDWR | os.O_CREAT), "r+b") as file:
            local.lock(file.fileno(), wait=True)
            yield

    # ---- reading ----

    def _scanned(self) -> Scan:
        size = self._size()
        if self._known is None or self._known[0] != size:
            self._known = size, scan(self._bytes(0, size), self.address)
        return self._known[1]

    def _size(self) -> int:
        system = self.archive.system
        try:
            if _is_local(system):
                return local.size(self.archive.root, self._names) or 0
            system.invalidate_cache()
            # fsspec remembers what it listed, and another process may have written since.
            return int(system.size(self.path) or 0)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be read: {scrub(str(error))}") from error

    def _bytes(self, start: int, stop: int | None) -> bytes:
        if stop is not None and start >= stop:
            return b""
        try:
            if _is_local(self.archive.system):
                return local.read(self.archive.root, self._names, start, stop)
            data: bytes = self.archive.system.cat_file(self.path, start=start, end=stop)
        except OSError as error:
            raise ArchiveError(f"{self.address} cannot be read: {scrub(str(error))}") from error
        return data


def _is_local(system: Any) -> bool:
    return "file" in (system.protocol if isinstance(system.protocol, tuple | list) else (system.protocol,))
