"""Functions of the array library that are words of the kernel language inside of kernels."""

from typing import Any

from blockarray import composed, creation, manipulation, products, reductions, selection
from codegen.frontend.language import NUMPY_WORDS, Word

_MODULES = (composed, creation, manipulation, products, reductions, selection)

ALIASES: dict[Any, Word] = {}
for _function, _word in NUMPY_WORDS.items():
    for _module in _MODULES:
        _own = getattr(_module, _function.__name__, None)
        if _own is not None:
            ALIASES[_own] = _word
