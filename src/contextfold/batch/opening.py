"""Files as they are read: local or remote, decompressed by their names, and what is told of damaged ones.

What belongs here: bytes. What does not: which files there are, and the conversations in them (``sources``).
"""

from __future__ import annotations

import io
import os
import re
from typing import Any

from contextfold.batch.outputs import is_remote, needs
from contextfold.errors import InputError

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_OF_FSSPEC = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
"""What fsspec calls them. By itself it looks at the end of an address, where a signature may stand."""
PEEK = 1 << 16
"""Bytes of one reading."""


def path_of(name: str) -> str:
    """A name without what an address on the web has behind its path, such as a signature."""
    return re.split(r"[?#]", name, maxsplit=1)[0] if name.lower().startswith(("http://", "https://")) else name


def compression_of(name: str) -> str:
    """The suffix that says how a file is compressed, in small letters; empty where it is not."""
    suffix = os.path.splitext(path_of(name))[1].lower()
    return suffix if suffix in COMPRESSED else ""


def unpacked(name: str) -> str:
    """The name in small letters, without the suffix of compression: by it is told what a file holds."""
    return path_of(name).lower().removesuffix(compression_of(name))


def opened(name: str) -> Any:
    """A file to be read, decompressed by its name. Raises ``InputError`` where it cannot be opened."""
    try:
        compression = compression_of(name)
        if compression == ".zst":
            return _of_zstd(name)
        if is_remote(name):
            return _of_fsspec(name, _OF_FSSPEC.get(compression, "infer"))
        if compression:
            import bz2
            import gzip
            import lzma

            kinds: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
            return kinds[compression](name, "rb")
        return open(name, "rb")
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _of_fsspec(name: str, compression: str | None) -> Any:
    try:
        import fsspec
    except ImportError:
        raise needs("fsspec", name) from None
    file = fsspec.open(name, "rb", compression=compression).open()
    # Files of object stores and of HTTP give a line of no other length than the whole, and read far behind each.
    return io.BufferedReader(file, PEEK) if isinstance(file, fsspec.spec.AbstractBufferedFile) else file


def _of_zstd(name: str) -> Any:
    # fsspec's own reader has no lines with some libraries, ends behind the first of several frames with others, and
    # takes what is cut off for all there is.
    try:
        import pyarrow
    except ImportError:
        raise needs("pyarrow", name) from None
    packed = _of_fsspec(name, None) if is_remote(name) else open(name, "rb")  # noqa: SIM115 - closed with what reads it
    return io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, "r"), "zstd"))


_BEGIN = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ", ".zst": b"(\xb5/\xfd"}
"""How files of each kind begin."""
_SKIPPABLE = b"*M\x18"
"""The second to fourth byte of a frame of Zstandard that holds nothing; parallel compressors begin with one."""


def damaged(name: str, at: int, error: Exception) -> InputError:
    """What is told of a compressed file that cannot be decompressed behind byte ``at`` of its text."""
    suffix = compression_of(name)
    if at == 0 and suffix:
        with _of_fsspec(name, None) if is_remote(name) else open(name, "rb") as file:
            begin = file.read(6)
        if not begin.startswith(_BEGIN[suffix]) and not (suffix == ".zst" and begin[1:4] == _SKIPPABLE):
            return InputError(f"{name} is not compressed, as {suffix} in its name says: rename it, or write it again")
    is_cut = isinstance(error, EOFError) or "Truncated" in str(error)
    what = "it is cut off" if is_cut else "its bytes were changed"
    return InputError(f"{name} is damaged behind byte {at:,} of its text: {what}; write it again, or copy it again")


def is_damage(error: Exception) -> bool:
    """Whether what was compressed cannot be decompressed: a matter of the file, which another attempt does not mend."""
    import gzip
    import lzma
    import zlib

    if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error | lzma.LZMAError | UnicodeDecodeError):
        return True
    # Those of bz2, Zstandard and Parquet's pages; those of a file system or a network have a number or their own class.
    is_of_content = type(error) is OSError and error.errno is None
    is_of_arrow = type(error).__name__.startswith("Arrow") and not isinstance(error, MemoryError)
    return is_of_content or is_of_arrow


def whole(name: str) -> bytes:
    """All of a file. Raises ``InputError`` where it is compressed, and damaged."""
    pieces: list[bytes] = []
    with opened(name) as file:
        try:
            while piece := file.read(PEEK):
                pieces.append(piece)
        except Exception as error:
            if not is_damage(error):
                raise
            raise damaged(name, sum(map(len, pieces)), error) from None
    return b"".join(pieces)
