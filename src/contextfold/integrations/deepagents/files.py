"""A backend of deepagents as the passes use it: read, write, append, each verified.

What belongs here: the color of the backend's methods, what its answers mean, and appending without rewriting what is
there. What does not: what is written (``history``, ``media``, ``large_results``).

Only a real folder can be appended to. Everything else takes the whole file again, by ``edit``, as deepagents does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepagents.backends import CompositeBackend, FilesystemBackend

from contextfold.errors import ArchiveError, is_control_flow, reason, text_of
from contextfold.ports import Ports


def artifacts_root(backend: Any) -> str:
    """Where a backend wants what middleware writes, without a slash at the end."""
    return str(backend.artifacts_root).rstrip("/") if isinstance(backend, CompositeBackend) else ""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a backend. Every method raises ``ArchiveError`` when it is not certain that it did its work."""

    backend: Any
    ports: Ports
    is_async: bool
    """Whether to call the backend's async methods."""

    async def append(self, path: str, text: str) -> None:
        """Put ``text`` behind what is in a file, which is made if there is none."""
        local = await self.ports.compute(local_file, self.backend, path)
        if local is not None:
            await self._append_to(local, path, text.encode())
            return
        existing = await self.read(path) or b""
        if existing:
            try:
                before = existing.decode()
            except UnicodeDecodeError as error:  # this backend replaces text by text, and would change what is there
                raise ArchiveError(f"{path} is not UTF-8 ({error}), and nothing can be put behind it") from error
            await self._ask("edit", path, before, before + text)
        else:
            await self._ask("write", path, text)
        await self._verify(path, existing + text.encode())

    async def put(self, path: str, data: bytes) -> None:
        """Make a file hold exactly this; nothing is written where it does."""
        if await self.read(path) == data:
            return
        await self._ask("upload_files", [(path, data)])
        await self._verify(path, data)

    async def put_text(self, path: str, text: str) -> None:
        """``put`` for text. A file that is not there is made by ``write``, as deepagents does it: a backend may guard
        that, or have nothing else. What ``write`` cannot say exactly, such as ends of lines, ``put`` does.
        """
        if await self.read(path) is None:
            await self._ask("write", path, text)
        await self.put(path, text.encode())

    async def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is no such file."""
        try:
            found = await self._call("download_files", [path])
        except FileNotFoundError:
            return None
        response = found[0] if found else None
        if response is None or (response.content is None and not _is_missing(response.error)):
            raise ArchiveError(f"{path} cannot be read: {response.error if response else 'the backend gave no answer'}")
        content: bytes | None = response.content
        return content

    async def _append_to(self, local: Path, path: str, data: bytes) -> None:
        size = await self._guarded(path, _appended, local, data)
        stored = await self.read(path)
        if stored is None or stored[size:] != data:
            # no half section: the next summary saves the same messages again
            await self._guarded(path, os.truncate, local, size)
            raise ArchiveError(f"{path} does not hold what was appended to it")

    async def _verify(self, path: str, data: bytes) -> None:
        stored = await self.read(path)
        if stored != data:
            size = "nothing" if stored is None else f"{len(stored):,} bytes"
            raise ArchiveError(f"{path} holds {size} where {len(data):,} bytes were written")

    async def _ask(self, method: str, *arguments: Any) -> None:
        answer = await self._call(method, *arguments)
        answers = answer if isinstance(answer, list) else [answer]
        if not answers or answers[0] is None:
            raise ArchiveError(f"the backend gave no answer to {method}")
        if answers[0].error:
            raise ArchiveError(str(answers[0].error))

    async def _call(self, method: str, *arguments: Any) -> Any:
        found = getattr(self.backend, f"a{method}" if self.is_async else method)
        return await self._guarded(method, found, *arguments)

    async def _guarded(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return await self.ports.call(function, *arguments)
        except FileNotFoundError:
            raise
        except Exception as error:
            if is_control_flow(error):
                raise
            raise ArchiveError(f"{what}: {reason(error)}") from error


def _is_missing(error: Any) -> bool:
    """Whether a backend's error says that there is no such file; every backend has its own words."""
    return error is None or "not_found" in text_of(error).lower().replace(" ", "_")


def local_file(backend: Any, path: str) -> Path | None:
    """The file on disk that a path of this backend is, if it exists and can be appended to; None otherwise."""
    while isinstance(backend, CompositeBackend):
        backend, path = _routed(backend, path)
    if not isinstance(backend, FilesystemBackend) or type(backend).write is not FilesystemBackend.write:
        return None
    root = Path(backend.cwd)
    file = (root / path.lstrip("/") if backend.virtual_mode else root / path).resolve()
    is_inside = not backend.virtual_mode or file.is_relative_to(root)
    return file if is_inside and file.is_file() else None


def _routed(backend: CompositeBackend, path: str) -> tuple[Any, str]:
    """The backend behind a path, longest route first, and the path there."""
    for prefix, inner in sorted(backend.routes.items(), key=lambda route: -len(route[0])):
        folder = prefix.rstrip("/") + "/"
        if path.startswith(folder):
            return inner, "/" + path[len(folder) :]
    return backend.default, path


def _appended(file: Path, data: bytes) -> int:
    """Append and flush to the disk; the size before. What was written in part is taken back."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "ab", buffering=0) as opened:
        size = os.fstat(opened.fileno()).st_size
        try:
            written = opened.write(data)
            if written != len(data):
                raise OSError(f"{written:,} of {len(data):,} bytes could be written")
            os.fsync(opened.fileno())
        except OSError:
            os.ftruncate(opened.fileno(), size)
            raise
        return size
