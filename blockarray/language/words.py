"""Functions of the array library that are words of the kernel language inside of kernels: those that have NumPy's names."""

from typing import Any

from codegen.frontend.language import NUMPY_WORDS, Word

_PACKAGE = __name__.partition(".")[0]
_BY_NAME = {function.__name__: word for function, word in NUMPY_WORDS.items()}


def word_of(function: Any) -> Word | None:
    """The word that a function of ours is inside of kernels, or None."""
    module = getattr(function, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] != _PACKAGE:
        return None
    return _BY_NAME.get(getattr(function, "__name__", ""))
