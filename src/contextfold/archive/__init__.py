"""Where the originals of evicted messages go, so that they can be read again.

    names      file names for threads, made by us
    markdown   one message as readable text, its media beside it
    sections   what is appended at a time, and how a file is read back and checked
    files      an archive on a disk, in S3 or anywhere else that fsspec reaches

Nothing in here decides what is evicted.
"""

from contextfold.archive.files import Archive, ThreadArchive, open_archive
from contextfold.archive.sections import Pointer, Section

__all__ = ["Archive", "Pointer", "Section", "ThreadArchive", "open_archive"]
