"""What must happen around a fork: the child has copies of all locks, but only the thread that forked."""

import os
import threading
import weakref
from typing import Protocol


class ForkAware(Protocol):
    """Something with locks or threads."""

    def before_fork(self) -> None:
        """Take the locks, so that no other thread is halfway through a change when memory is copied."""

    def after_fork(self, in_child: bool) -> None:
        """Release the locks; in the child, also forget what does not exist there."""


_first: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()
_last: "weakref.WeakSet[ForkAware]" = weakref.WeakSet()
_held: list[ForkAware] = []
_one_fork = threading.Lock()


def watch(object_: ForkAware, last: bool = False) -> None:
    """Call the object's methods around each fork for as long as it lives.

    `last` is for a lock that a thread may want while it holds one of the others: the garbage collector may run
    anywhere, and what it finalises takes LLVM's lock. Who forks must take such a lock after the others.
    """
    (_last if last else _first).add(object_)


def _before() -> None:
    _one_fork.acquire()
    _held.extend(_first)
    _held.extend(_last)
    for object_ in _held:
        object_.before_fork()


def _after(in_child: bool) -> None:
    for object_ in reversed(_held):
        object_.after_fork(in_child)
    _held.clear()
    _one_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=lambda: _after(in_child=False), after_in_child=lambda: _after(in_child=True)
    )
