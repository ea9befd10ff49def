"""Kernels that cannot be translated: the message, and the part of the line that is marked."""

import numpy
import pytest

import blockarray as np
from blockarray.language import KernelError

X = numpy.arange(100, dtype=numpy.float32)


def failure(function, *arguments, shapes="(n)->(n)", **named) -> tuple[str, str]:
    """The message of the error that a kernel raises, and the text over its last carets."""
    with pytest.raises(KernelError) as caught:
        np.kernel(shapes)(function)(*arguments or (X,), **named)
    message, *places = str(caught.value).split("\n")
    line, carets = places[-2:]
    file = function.__code__.co_filename
    assert places[-3].startswith(f'  File "{file}", line ')
    assert caught.value.file == file and f"line {caught.value.line}, in" in places[-3]
    begin = carets.index("^")
    assert carets.strip() == "^" * (len(carets) - begin)
    return message, line[begin : len(carets)]


def check(function, message: str, marked: str, *arguments, **named) -> None:
    """The error of a kernel has this text, and carets under this part of the line."""
    found = failure(function, *arguments, **named)
    assert found == (message, marked), found
