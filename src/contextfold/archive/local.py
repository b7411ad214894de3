"""Files on a local disk that hold conversations: readable by their owner alone, and never behind a symbolic link.

What belongs here: making files (0600) and folders (0700), opening them so that a link which someone else put at one
of our names leads nowhere, and locking them. What does not: what is in the files.

Folders are opened one inside the other (``dir_fd``), so that none of them can become a link between a check and the
opening. What stands above the root is the operator's, and may be links. A file or folder that is there already keeps
the mode that it has: an operator may have opened it to a group on purpose.

Windows has no such opening, and no modes: there a path is looked through for links just before it is opened, and who
may read a file is what its folder hands down.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Sequence

FILE, FOLDER = 0o600, 0o700
"""Permissions: what people said is for the owner of the archive alone."""
if sys.platform == "win32":
    _NO_LINK = 0
else:
    _NO_LINK = os.O_NOFOLLOW
_IS_LINK = "it is a symbolic link, which is not followed"
_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT; other tags mark, for example, files that are kept in a cloud


def make_folders(path: str) -> None:
    """Make a folder and those above it that are missing; what is made is for the owner alone."""
    if path and not os.path.isdir(path):
        make_folders(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):  # another process was faster; or it is a file, and opening says so
            os.mkdir(path, FOLDER)


def open_inside(root: str, names: Sequence[str], flags: int) -> int:
    """The descriptor of ``root/names[0]/...``. With ``O_CREAT`` in ``flags``, missing folders are made too.

    Raises ``OSError``, where one of the names is a symbolic link as well.
    """
    if flags & os.O_CREAT:
        make_folders(root)
    if sys.platform == "win32":
        return _open_by_path(root, names, flags)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            if flags & os.O_CREAT:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, FOLDER, dir_fd=folder)
            inner = _open(name, os.O_RDONLY | os.O_DIRECTORY, folder)
            os.close(folder)
            folder = inner
        return _made(names[-1], flags, folder) if flags & os.O_CREAT else _open(names[-1], flags, folder)
    finally:
        os.close(folder)


def _open_by_path(root: str, names: Sequence[str], flags: int) -> int:
    path = root
    for depth, name in enumerate(names, start=1):
        path = os.path.join(path, name)
        if is_link(path):
            raise OSError(errno.ELOOP, _IS_LINK, name)
        if flags & os.O_CREAT and depth < len(names):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, FOLDER)
    # Without it Windows would write two signs at the end of each line, and read one.
    return os.open(path, flags | getattr(os, "O_BINARY", 0), FILE)


def _made(name: str, flags: int, folder: int) -> int:
    """Open a file that may be missing."""
    try:
        opened = _open(name, flags | os.O_EXCL, folder)
    except FileExistsError:
        return _open(name, flags & ~os.O_CREAT, folder)
    # A file's own fsync does not keep its name: after a power cut the data could be there without it.
    os.fsync(folder)
    return opened


def _open(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | _NO_LINK, FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and is_link(name, dir_fd=folder):
            raise OSError(error.errno, _IS_LINK, name) from None
        raise


def is_link(path: str, *, dir_fd: int | None = None) -> bool:
    """Whether a name is a symbolic link, wherever that leads, or a junction, as anyone may make one on Windows."""
    try:
        found = os.stat(path, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == _JUNCTION


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock a file against other processes until it is closed.

    False where another one has it locked and this one is not to wait. Raises ``OSError`` where the file system has no
    locks.
    """
    while not _is_locked(descriptor, wait):
        if not wait:
            return False
        time.sleep(0.02)
    return True


def _is_locked(descriptor: int, wait: bool) -> bool:
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # what waits there gives up after ten seconds
        except PermissionError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def read(root: str, names: Sequence[str], start: int = 0, stop: int | None = None) -> bytes:
    """Bytes of a file, from ``start`` up to ``stop``. Raises ``OSError``."""
    with open(open_inside(root, names, os.O_RDONLY), "rb") as file:
        file.seek(start)
        return file.read() if stop is None else file.read(max(0, stop - start))


def size(root: str, names: Sequence[str]) -> int | None:
    """Bytes of a file; None if there is none. Raises ``OSError``."""
    try:
        opened = open_inside(root, names, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(opened).st_size
    finally:
        os.close(opened)


def write(root: str, names: Sequence[str], end: int, data: bytes) -> None:
    """Make a file end with ``data`` behind its first ``end`` bytes, on the disk. Raises ``OSError``."""
    with open(open_inside(root, names, os.O_RDWR | os.O_CREAT), "r+b") as file:
        file.truncate(end)
        file.seek(end)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
