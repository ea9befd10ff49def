"""What the IR means: kernels run on NumPy arrays, one program after the other, each operation on whole blocks.

The interpreter also finds what no target would notice: windows that leave a buffer though nothing checks them, elements that
two programs write or that one reads while another writes, and memory that is read before it is written.
"""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from codegen import dtypes
from codegen.dtypes import DType
from codegen.errors import CodegenError
from codegen.ir.kernel import Body, BufferParameter, IndexParameter, Kernel, ScalarParameter, Value
from codegen.ir.operations import (
    Allocate,
    Broadcast,
    Cast,
    Constant,
    Dot,
    For,
    Gather,
    If,
    Iota,
    Load,
    Map,
    Operation,
    ProgramIndex,
    Reduce,
    Reshape,
    Scan,
    Scatter,
    Store,
)
from codegen.ir.interpreter_memory import InterpretedBuffer, InterpretedMemory, private_memory, shared_memory
from codegen.ir.printer import print_operation
from codegen.ir.verifier import verify
from codegen.scalar.combiners import COMBINERS
from codegen.scalar.numpy_core import NumpyCore, evaluate
from codegen.scalar.table import TABLE

Array = np.ndarray
Argument = bool | int | float | np.generic | np.ndarray


class InterpretationError(CodegenError):
    """A kernel, or the arguments it is run on, do something that has no meaning."""
