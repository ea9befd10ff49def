"""Which device arrays are made on: the default, the current one, and how to change it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from codegen import settings
from codegen.targets import backend, cuda_available
from codegen.targets.backend import Backend

_lock = threading.Lock()
_default: Backend | None = None
_scoped = threading.local()


def current_device() -> Backend:
    """The device on which arrays are created now.

    The innermost ``with device(...)`` of this thread, else the one that `set_device` chose, else ``BLOCKARRAY_DEVICE``, else
    the first GPU if its driver is there, else the host.
    """
    stack = getattr(_scoped, "stack", None)
    if stack:
        return stack[-1]
    if _default is None:
        _choose_default()
    assert _default is not None
    return _default


def _choose_default() -> None:
    global _default
    with _lock:
        if _default is None:
            wanted = settings.current().device
            _default = backend(wanted or ("cuda:0" if cuda_available() else "cpu"))


def set_device(name: str) -> None:
    """Create arrays on `name` from now on.

    Parameters
    ----------
    name : {"cpu", "cuda:0", …}

    Raises
    ------
    TypeError
        If `name` is no str.
    codegen.errors.TargetError
        If there is no such device, or it cannot be used; the message says why and what to do.

    Examples
    --------
    >>> import blockarray as np
    >>> np.set_device("cpu")
    >>> np.zeros(2).device
    'cpu'
    """
    global _default
    chosen = backend(name)
    with _lock:
        _default = chosen


@contextmanager
def device(name: str) -> Iterator[None]:
    """Create arrays on `name` within the ``with`` block, in this thread.

    Examples
    --------
    >>> import blockarray as np
    >>> with np.device("cpu"):
    ...     x = np.ones(3)
    >>> x.device
    'cpu'
    """
    chosen = backend(name)
    stack = getattr(_scoped, "stack", None)
    if stack is None:
        stack = _scoped.stack = []
    stack.append(chosen)
    try:
        yield
    finally:
        stack.pop()
