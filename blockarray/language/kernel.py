"""`kernel`: a Python function over blocks as something that can be called with arrays."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from blockarray.language.calling import Call
from blockarray.language.declaration import declare
from blockarray.language.interpretation import run_by_interpreter
from blockarray.language.launching import Launches


class Kernel:
    """A kernel: made by `kernel`, called with arrays.

    Parameters
    ----------
    function : function
    shapes : str or None
        See `kernel`.
    """

    is_kernel = True

    def __init__(self, function: FunctionType, shapes: str | None) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.declaration = declare(function, shapes)
        self._launches = Launches(function, self.declaration)

    def __call__(self, *arguments: Any, grid: Any = None, dtype: Any = None, **named: Any) -> Any:
        """Run the kernel.

        Parameters
        ----------
        *arguments, **named
            By parameter. Outputs that are left out are made: their shapes follow from the shapes of the inputs.
        grid : int, tuple of int, or callable, optional
            Programs along each axis, or a function of parameters (by name) that gives them. Without it, every axis that the kernel
            asks `program_index` for is covered as its stores need it.
        dtype : dtype, optional
            Of outputs that are made; NumPy's result type of the inputs if absent.

        Returns
        -------
        ndarray, tuple of ndarray, or None
            The outputs that the shapes name, passed or made.

        Raises
        ------
        TypeError
            If arguments are missing, too many, or of the wrong kind.
        ValueError
            If shapes do not match, or an output is read-only.
        KernelError
            If the function cannot be translated, with the line.
        """
        return self._launches.run(arguments, named, grid, dtype)

    def interpret(self, *arguments: Any, grid: Any = None, dtype: Any = None, **named: Any) -> Any:
        """Run the kernel by the interpreter: on NumPy, program by program, with checks. Parameters and result as for a call.

        Raises
        ------
        InterpretationError
            If two programs write one element, or one reads what another writes.
        """
        call = Call(self.declaration, arguments, named, grid, dtype)
        run_by_interpreter(self.function, call)
        return call.result()

    def text(self, *arguments: Any, stage: str = "block", grid: Any = None, dtype: Any = None, **named: Any) -> str:
        """The kernel that a call with these arguments runs, as text.

        Parameters
        ----------
        stage : {"block", "distributed", "llvm", "optimized", "assembly", "ptx"}
            ``"assembly"`` on the host, ``"ptx"`` on a GPU.
        """
        call = Call(self.declaration, arguments, named, grid, dtype)
        return self._launches.executable(call).artifacts[stage]

    def __reduce__(self) -> str:
        # By its name, as functions are.
        return self.function.__qualname__

    def __repr__(self) -> str:
        shapes = f" {self.declaration.shapes.text}" if self.declaration.shapes else ""
        return f"<kernel {self.declaration.name}{shapes}>"


def kernel(shapes: str | Callable[..., Any] | None = None) -> Any:
    """Make a kernel of a function over blocks: ``@kernel``, or ``@kernel("(m,k),(k,n)->(m,n)")``.

    Every program runs the function once; `program_index` tells which it is. Parameters are arrays in memory, unless they are annotated:
    with `Static` for what is known when the kernel is compiled, with a dtype (or ``float``, ``int``) for a number.

    Parameters
    ----------
    shapes : str, optional
        Shapes of the arrays in order, inputs before the arrow and outputs behind it, in the notation of NumPy's generalised ufuncs;
        ``...`` stands for leading axes. Equal names are equal lengths, which is checked and which the compiler relies on; inputs are
        never written; outputs may be left out of a call. Parameters behind those arrays are numbers. Without shapes, all arrays are passed, and those that are stored to are written.

    Returns
    -------
    Kernel

    Raises
    ------
    TypeError, ValueError
        If the function's parameters are not a kernel's, or do not fit the shapes.

    Examples
    --------
    >>> import blockarray as np
    >>> from blockarray.language import Static, load, program_index, store
    >>> @np.kernel
    ... def double(x, *, block: Static = 64):
    ...     first = program_index(0) * block
    ...     store(x, first, 2 * load(x, first, block))
    >>> x = np.arange(4)
    >>> double(x)
    >>> x
    array([0, 2, 4, 6])
    """
    if shapes is None or isinstance(shapes, str):
        return lambda function: kernel_of(function, shapes)
    return kernel_of(shapes, None)


def kernel_of(function: Any, shapes: str | None) -> Kernel:
    """The kernel of a function; TypeError if it is none."""
    if not isinstance(function, FunctionType):
        raise TypeError(f"kernel: expected a Python function, found {type(function).__name__}")
    return Kernel(function, shapes)
