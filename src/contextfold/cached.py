"""``cached_property``: a value that is worked out once for an object.

What belongs here: that one decorator. What does not: caches with a limit or a key.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """That of Python 3.12 and later. In 3.11 it holds a lock over all objects of the class while it works one value
        out: one conversation would wait for the thread of another, and a process that was forked meanwhile for ever.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.attrname, self.func(instance))  # of two threads, the first one's
