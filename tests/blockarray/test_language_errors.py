# ruff: noqa: B007, F841
"""Errors of kernels: the message, and the carets under the expression that is to blame."""

import math

import numpy
import pytest

import blockarray as np
from blockarray.language import (
    KernelError,
    Static,
    arange,
    cast,
    dot,
    extent,
    full,
    load,
    program_index,
    store,
    zeros,
)

X = numpy.arange(100, dtype=numpy.float32)
MATRIX = numpy.zeros((20, 30), numpy.float32)


def failure(function, *arguments, shapes="(n)->(n)", **named) -> tuple[str, str]:
    """The message of the error that a kernel raises, and the text over its last carets."""
    with pytest.raises(KernelError) as caught:
        np.kernel(shapes)(function)(*arguments or (X,), **named)
    message, *places = str(caught.value).split("\n")
    line, carets = places[-2:]
    assert places[-3].startswith(f'  File "{__file__}", line ')
    assert caught.value.file == __file__ and f"line {caught.value.line}, in" in places[-3]
    begin = carets.index("^")
    assert carets.strip() == "^" * (len(carets) - begin)
    return message, line[begin : len(carets)]


def check(function, message: str, marked: str, *arguments, **named) -> None:
    """The error of a kernel has this text, and carets under this part of the line."""
    assert failure(function, *arguments, **named) == (message, marked)


def double_in(value):
    return value + arange(16)


def endless(value):
    return endless(value) + 1


@np.kernel("(n)->(n)")
def other_kernel(x, out):
    store(out, program_index(0), 1)


def test_names() -> None:
    def misspelled(x, out):
        store(out, 0, laod(x, 0, 8))  # noqa: F821

    def not_imported(x, out):
        store(out, 0, transpose(x))  # noqa: F821

    def of_numpy(x, out):
        store(out, 0, maximum(load(x, 0, 8), 0))  # noqa: F821

    def nowhere(x, out):
        store(out, 0, qwertz)  # noqa: F821

    check(misspelled, "unknown name `laod`; did you mean `load`?", "laod")
    check(not_imported, "unknown name `transpose`; add `from blockarray.language import transpose`", "transpose")
    check(
        of_numpy,
        "unknown name `maximum`; universal functions go by NumPy's names: `import blockarray as np` and np.maximum",
        "maximum",
    )
    check(nowhere, "unknown name `qwertz`", "qwertz")


def test_statements() -> None:
    def loops(x, out):
        while True:
            pass

    def opens(x, out):
        with open("file"):
            pass

    def tries(x, out):
        try:
            pass
        finally:
            pass

    def raises(x, out):
        raise ValueError("no")

    def imports(x, out):
        import os  # noqa: F401, PLC0415

    def breaks(x, out):
        for k in range(extent(x, 0)):
            break

    def skips(x, out):
        for k in range(3):
            continue

    def deletes(x, out):
        del out

    def declares(x, out):
        global X
        X = 1

    def matches(x, out):
        match x.ndim:
            case 1:
                pass

    def has_else(x, out):
        for k in range(3):
            pass
        else:
            store(out, 0, k)

    expected = {
        loops: ("`while` cannot be used in a kernel; expected `for … in range(…)`", "while"),
        opens: ("`with` cannot be used in a kernel", "with"),
        tries: ("`try` cannot be used in a kernel, where nothing is raised", "try"),
        raises: ("`raise` was reached while the kernel was compiled", 'raise ValueError("no")'),
        imports: ("`import` cannot stand in a kernel; import at the top of the file", "import os"),
        breaks: ("`break` cannot be used in a kernel; let the bounds of the range say where the loop ends", "break"),
        skips: ("`continue` cannot be used in a kernel; choose with where(condition, a, b)", "continue"),
        deletes: ("`del` cannot be used in a kernel, and need not be", "del out"),
        declares: ("`global` cannot be used in a kernel; pass the value as a parameter", "global X"),
        matches: ("`match` cannot be used in a kernel; expected `if` on static values", "match"),
        has_else: ("`else` of a loop cannot be used in a kernel, where no loop is left early", "store(out, 0, k)"),
    }
    for function, (message, marked) in expected.items():
        check(function, message, marked)


def test_assignments_and_returns() -> None:
    def to_an_element(x, out):
        out[0] = 1

    def to_an_element_in_place(x, out):
        out[0] += 1

    def unpacks(x, out):
        a, b = load(x, 0, 2)

    def unpacks_three(x, out):
        a, b = (1, 2, 3)

    def stars(x, out):
        a, *b = (1, 2, 3)

    def returns(x, out):
        return load(x, 0, 8)

    def returns_early(x, out):
        for k in range(extent(x, 0)):
            return

    def in_an_expression(x, out):
        store(out, (a := 0), 1)

    advice = "elements are not assigned; expected store(array, offsets, value), or where(condition, a, b) for blocks"
    check(to_an_element, advice, "out[0]")
    check(to_an_element_in_place, advice, "out[0]")
    check(unpacks, "a float32 block of shape (2,) cannot be unpacked; it is worked on as a whole", "a, b")
    check(unpacks_three, "expected 2 values to unpack, found 3", "a, b")
    check(stars, "`*` cannot stand among the targets of an assignment in a kernel", "a, *b")
    check(returns, "a kernel returns nothing; store its results: store(array, offsets, value)", "return load(x, 0, 8)")
    check(
        returns_early,
        "`return` out of a loop or branch of the run time; assign to a name and return it at the end",
        "return",
    )
    check(in_an_expression, "`:=` cannot be used in a kernel; assign on a line of its own", "a := 0")


def test_shapes() -> None:
    def different(x, out):
        store(out, 0, load(x, 0, 64) + arange(32))

    def not_a_power(x, out):
        store(out, 0, load(x, 0, 48))

    def known_late(x, out):
        store(out, 0, load(x, 0, extent(x, 0)))

    def negative(x, out):
        store(out, 0, zeros((4, -1), x.dtype))

    def no_number(x, out):
        store(out, 0, zeros((4, 2.0), x.dtype))

    def too_many(x, out):
        store(out, 0, zeros((4, 8), x.dtype))

    def too_large(x, out):
        store(out, 0, load(x, 0, (1, 8)))

    def enormous(x, out):
        store(out, 0, load(x, 0, 1 << 20))

    def indexed(x, out):
        store(out, 0, load(x, 0, 8)[0])

    def with_too_many(x, out):
        store(out, 0, load(x, 0, 8)[:, :, None])

    advice = "; blocks broadcast as NumPy's arrays do, x[:, None] adds an axis of extent 1"
    check(
        different,
        f"operands could not be broadcast together with shapes (64,) (32,){advice}",
        "load(x, 0, 64) + arange(32)",
    )
    check(not_a_power, "load: a block's extents are powers of two, found 48 in (48,)", "48")
    check(
        known_late,
        "load: a block's shape must be known when the kernel is compiled, found a run-time int; make it a Static parameter",
        "extent(x, 0)",
    )
    check(negative, "zeros: a block's extents are powers of two, found -1 in (4, -1)", "(4, -1)")
    check(no_number, "zeros: expected integers in a block's shape, found 2.0 (float)", "(4, 2.0)")
    check(
        too_many,
        "store: a block of shape (4, 8) has more axes than the array out (float32, 1 axis)",
        "zeros((4, 8), x.dtype)",
    )
    check(too_large, "load: a window of shape (1, 8) has more axes than the array x (float32, 1 axis)", "(1, 8)")
    message, marked = failure(enormous)
    assert message.startswith("load: a block of shape (1048576,) has more elements than a program can hold (65536)")
    assert marked == "1 << 20"
    check(
        indexed,
        "blocks are not indexed: expected `:`, `...` and None, which add axes of extent 1; load the part that is needed, or "
        "choose with where",
        "load(x, 0, 8)[0]",
    )
    check(
        with_too_many,
        "too many indices: a float32 block of shape (8,) has 1 axis, found 2",
        "load(x, 0, 8)[:, :, None]",
    )


def test_dtypes() -> None:
    def bits_of_floats(x, out):
        store(out, 0, load(x, 0, 8) & 1)

    def too_wide(x, out):
        store(out, 0, cast(load(x, 0, 8), "int64") * 1.5)

    def out_of_bounds(x, out):
        store(out, 0, cast(load(x, 0, 8), "int8") + 300)

    def unknown(x, out):
        store(out, 0, cast(load(x, 0, 8), "complex64"))

    def fraction(x, out):
        store(out, 0, load(x, 0, 8, fill=0.5))

    def negative_power(x, out):
        store(out, 0, load(x, 0, 8) ** -2)

    def imaginary(x, out):
        store(out, 0, load(x, 0, 8) + 1j)

    message, marked = failure(bits_of_floats)
    assert message.startswith("ufunc 'bitwise_and' not supported for the input types")
    assert message.endswith("the operands are a float32 block of shape (8,), 1 (int)")
    assert marked == "load(x, 0, 8) & 1"
    integers = numpy.zeros(9, numpy.int32)
    check(
        too_wide,
        "store: cannot put a float64 block of shape (8,) into the array out (int32, 1 axis); convert it first: cast(value, "
        "int32)",
        'cast(load(x, 0, 8), "int64") * 1.5',
        integers,
    )
    check(out_of_bounds, "Python integer 300 out of bounds for int8", 'cast(load(x, 0, 8), "int8") + 300')
    message, marked = failure(unknown)
    assert message.startswith("kernels have no elements of dtype dtype('complex64'); they have bool, int8")
    assert marked == '"complex64"'
    check(fraction, "load: cannot fill int32 elements with 0.5", "0.5", integers)
    check(negative_power, "Integers to negative integer powers are not allowed.", "load(x, 0, 8) ** -2", integers)
    check(imaginary, "kernels have no elements of type complex; they have booleans, integers and floats", "1j")


def test_arrays_in_memory() -> None:
    def to_an_input(x, out):
        store(x, 0, load(x, 0, 8))

    def as_a_block(x, out):
        store(out, 0, x + 1)

    def as_an_operand(x, out):
        store(out, 0, np.exp(x))

    def of_a_block(x, out):
        store(out, 0, load(load(x, 0, 8), 0, 8))

    def with_two_offsets(x, out):
        store(out, 0, load(x, (0, 0), 8))

    def with_a_fraction(x, out):
        store(out, 0, load(x, 0.5, 8))

    def with_a_block(x, out):
        store(out, arange(8), load(x, 0, 8))

    def attribute(x, out):
        store(out, 0, x.mean())

    def attribute_of_block(x, out):
        store(out, 0, load(x, 0, 8).mean())

    def missing_axis(x, out):
        store(out, 0, extent(x, 1))

    def wrong_call(x, out):
        store(out, 0, load(x, 0))

    check(
        to_an_input,
        "store: x is an input and must not be written; outputs stand behind -> in the kernel's shapes",
        "x",
    )
    check(
        as_a_block,
        "`+` works on blocks, found the array x (float32, 1 axis); load a block of it: load(x, offsets, shape)",
        "x + 1",
    )
    check(
        as_an_operand,
        "exp works on blocks, found the array x (float32, 1 axis); load a block of it: load(x, offsets, shape)",
        "x",
    )
    check(of_a_block, "load: expected an array parameter, found a float32 block of shape (8,)", "load(x, 0, 8)")
    check(with_two_offsets, "load: 2 offsets for the array x (float32, 1 axis); expected one for each axis", "(0, 0)")
    check(with_a_fraction, "load: an offset is wrong: expected an integer, found 0.5 (float)", "0.5")
    check(
        with_a_block,
        "store: an offset is wrong: expected an integer scalar, found an int64 block of shape (8,)",
        "arange(8)",
    )
    message, marked = failure(attribute)
    assert message.startswith("an array in memory has no attribute 'mean'; it has shape, ndim, dtype, size")
    assert marked == "x.mean"
    message, marked = failure(attribute_of_block)
    assert message.startswith("a block has no attribute 'mean'; it has shape, ndim, dtype, T, astype, sum")
    check(missing_axis, "extent: expected a static axis of the array x (float32, 1 axis), found 1 (int)", "1")
    check(wrong_call, "load(array, offsets, shape, fill=None): missing a required argument: 'shape'", "load(x, 0)")


def test_truth() -> None:
    def branches(x, out):
        if load(x, 0, 8) > 0:
            store(out, 0, 1)

    def chains(x, out):
        store(out, 0, 0 < load(x, 0, 8) < 1)

    def joins(x, out):
        store(out, 0, load(x, 0, 8) and True)

    def negates(x, out):
        store(out, 0, not load(x, 0, 8))

    def chooses(x, out):
        store(out, 0, 1 if extent(x, 0) > 3 else 0)

    def asserts(x, out):
        assert extent(x, 0) > 3

    def asserts_what_is_false(x, out):
        assert x.ndim == 2, "expected a matrix"

    def contains(x, out):
        store(out, 0, load(x, 0, 8) in (1, 2))

    block = "a bool block of shape (8,)"
    check(
        branches,
        f"`if` of {block}, which has no single truth value; choose with where(condition, a, b)",
        "load(x, 0, 8) > 0",
    )
    check(chains, f"`and` of {block}, which has no single truth value; use & for blocks", "0 < load(x, 0, 8) < 1")
    check(
        joins,
        "`and` of a float32 block of shape (8,), which has no single truth value; use & for blocks",
        "load(x, 0, 8)",
    )
    check(
        negates,
        "`not` of a float32 block of shape (8,); expected a scalar, use ~ or logical_not for blocks",
        "not load(x, 0, 8)",
    )
    check(
        chooses,
        "a condition of a bool scalar is known when the kernel runs only; use where(condition, a, b)",
        "extent(x, 0) > 3",
    )
    check(
        asserts,
        "`assert` of a bool scalar; only what is known when the kernel is compiled can be asserted",
        "extent(x, 0) > 3",
    )
    check(asserts_what_is_false, "the assertion does not hold: expected a matrix", "x.ndim == 2")
    message, _ = failure(contains)
    assert message.startswith("`in` needs values that are known when the kernel is compiled")


def test_loops() -> None:
    def grows(x, out):
        total = zeros(8, x.dtype)
        for k in range(0, extent(x, 0), 8):
            total = total[:, None] + load(x, k, 8)
        store(out, 0, total)

    def widens(x, out):
        total = zeros(8, x.dtype)
        for k in range(0, extent(x, 0), 8):
            total += load(x, k, 8) * arange(8)
        store(out, 0, total)

    def changes_its_kind(x, out):
        total = None
        for k in range(0, extent(x, 0), 8):
            total = load(x, k, 8)
        store(out, 0, total)

    def is_gone(x, out):
        for k in range(0, extent(x, 0), 8):
            value = load(x, k, 8)
        store(out, 0, value)

    def index_is_gone(x, out):
        for k in range(extent(x, 0)):
            pass
        store(out, 0, k)

    def steps_late(x, out):
        for k in range(0, 100, extent(x, 0)):
            store(out, k, 1)

    def goes_back(x, out):
        for k in range(extent(x, 0), 0, -1):
            store(out, k, 1)

    def over_a_block(x, out):
        for value in load(x, 0, 8):
            store(out, 0, value)

    def over_an_array(x, out):
        for value in x:
            store(out, 0, value)

    def loses_edges(x, out):
        best = full(8, -math.inf, x.dtype)
        for k in range(0, extent(x, 0), 8):
            best = np.maximum(best, load(x, k, 8))
        store(out, 0, best.max())

    def to_a_fraction(x, out):
        for k in range(0, extent(x, 0) / 2):
            store(out, k, 1)

    expected = {
        grows: (
            "`total` has shape (8,) before the loop and (8, 8) after a turn; expected one shape, such as that of zeros((8, 8), "
            "float32)",
            "total = total[:, None] + load(x, k, 8)",
        ),
        widens: (
            "`total` has dtype float32 before the loop and float64 after a turn; expected one dtype: cast(…, float32)",
            "total += load(x, k, 8) * arange(8)",
        ),
        changes_its_kind: (
            "`total` is None (NoneType) before the loop and a float32 block of shape (8,) after a turn; expected blocks or "
            "numbers, one for each name",
            "total = load(x, k, 8)",
        ),
        steps_late: (
            "range: expected a positive step that is known when the kernel is compiled, found a run-time int",
            "extent(x, 0)",
        ),
        goes_back: ("range: expected a positive step that is known when the kernel is compiled, found -1 (int)", "-1"),
        over_a_block: (
            "a float32 block of shape (8,) cannot be iterated over; it is worked on as a whole",
            "load(x, 0, 8)",
        ),
        over_an_array: (
            "expected something to iterate over that is known when the kernel is compiled, found the array x (float32, 1 axis)",
            "x",
        ),
        loses_edges: (
            "the block was loaded across an array's edge inside of a loop or branch, and which of its elements exist is not known "
            "here; say what the others count as: load(array, offsets, shape, fill=…)",
            "best.max()",
        ),
        to_a_fraction: ("range: expected an integer scalar, found a run-time float", "extent(x, 0) / 2"),
    }
    for function, (message, marked) in expected.items():
        check(function, message, marked)
    message, marked = failure(is_gone)
    assert message.startswith("`value` is assigned in the loop at line ") and marked == "value"
    assert message.endswith(" only, and has no value behind it; give it one before the loop")
    message, marked = failure(index_is_gone)
    assert message.startswith("`k` is the index of the loop at line ") and marked == "k"


def test_branches() -> None:
    def in_one_only(x, out):
        if program_index(0) > 3:
            value = 1
        store(out, program_index(0), value)

    def of_two_shapes(x, out):
        value = load(x, 0, 8)
        if program_index(0) > 3:
            value = load(x, 0, 4)
        store(out, program_index(0), value)

    message, marked = failure(in_one_only)
    assert message.startswith("`value` is assigned in one branch of the `if` at line ") and marked == "value"
    check(
        of_two_shapes,
        "`value` has shape (4,) in one branch and (8,) in the other; expected one shape, such as that of zeros((8,), float32)",
        "value = load(x, 0, 4)",
    )


def test_functions() -> None:
    def recursive(x, out):
        store(out, 0, endless(load(x, 0, 8)))

    def in_a_helper(x, out):
        store(out, 0, double_in(load(x, 0, 8)))

    def of_python(x, out):
        store(out, 0, max(load(x, 0, 8), 0))

    def converts(x, out):
        store(out, int(load(x, 0, ())), 1)

    def of_a_kernel(x, out):
        other_kernel(x, out)

    def no_function(x, out):
        x.dtype(3)

    def with_keywords(x, out):
        store(out, 0, np.exp(load(x, 0, 8), where=True))

    def too_many_arguments(x, out):
        store(out, 0, double_in(load(x, 0, 8), 3))

    def opens(x, out):
        open(load(x, 0, 8))

    def raises(x, out):
        store(out, 1 // 0, 1)

    def misses(x, out):
        store(out, (1, 2)[2], 1)

    check(
        recursive,
        "endless calls itself; a kernel's functions are inlined, so recursion would never end: use a loop",
        "endless(value)",
    )
    with pytest.raises(KernelError) as caught:
        np.kernel("(n)->(n)")(in_a_helper)(X)
    text = str(caught.value)
    assert text.startswith("operands could not be broadcast together with shapes (8,) (16,)")
    _, first, line, carets, second, inner, _ = text.split("\n")
    assert "in in_a_helper" in first and line.strip() == "store(out, 0, double_in(load(x, 0, 8)))"
    assert line[carets.index("^") : len(carets)] == "double_in(load(x, 0, 8))"
    assert "in double_in" in second and inner.strip() == "return value + arange(16)"
    check(
        of_python,
        "max cannot take a float32 block of shape (8,); use maximum(a, b) element by element, or x.max() over a block",
        "max(load(x, 0, 8), 0)",
    )
    check(converts, "int cannot take a float32 scalar; use cast(x, int64)", "int(load(x, 0, ()))")
    check(
        of_a_kernel,
        "other_kernel is a kernel of its own; put what both need into an undecorated function and call that",
        "other_kernel(x, out)",
    )
    check(no_function, "dtype('float32') (Float32DType) is no function", "x.dtype(3)")
    check(with_keywords, "exp: keyword arguments are not taken in kernels, found where", "True")
    check(too_many_arguments, "double_in() too many positional arguments", "double_in(load(x, 0, 8), 3)")
    check(
        opens,
        "open cannot take a float32 block of shape (8,); expected a word of the kernel language, a universal function, or a Python "
        "function",
        "open(load(x, 0, 8))",
    )
    check(raises, "ZeroDivisionError: integer division or modulo by zero", "1 // 0")
    check(misses, "IndexError: tuple index out of range", "(1, 2)[2]")


def test_folds_and_products() -> None:
    def axis(x, out):
        store(out, 0, load(x, (0, 0), (4, 8)).sum(axis=2))

    def twice(x, out):
        store(out, 0, np.sum(load(x, (0, 0), (4, 8)), (0, -2)))

    def turned(x, out):
        store(out, (0, 0), load(x, (0, 0), (4, 8)).transpose((0, 0)))

    def of_a_number(x, out):
        store(out, 0, np.max(x))

    def inner(x, out):
        store(out, (0, 0), dot(load(x, (0, 0), (4, 8)), load(x, (0, 0), (4, 8))))

    def vector(x, out):
        store(out, (0, 0), load(x, (0, 0), (4, 8)) @ load(x, (0, 0), 8))

    def onto(x, out):
        a = load(x, (0, 0), (8, 8))
        store(out, (0, 0), dot(a, a, zeros((4, 4), "float32")))

    def into_integers(x, out):
        a = load(x, (0, 0), (8, 8))
        store(out, (0, 0), dot(a, a, zeros((8, 8), "int32")))

    arguments = {"shapes": "(m,n)->(m,n)"}
    message = "sum: axis 2 (int) is out of bounds for a float32 block of shape (4, 8)"
    check(axis, message, "2", MATRIX, **arguments)
    check(twice, "sum: an axis stands twice in (0, -2)", "(0, -2)", MATRIX, **arguments)
    message = "transpose: expected the 2 axes of a float32 block of shape (4, 8) in some order, found (0, 0)"
    check(turned, message, "load(x, (0, 0), (4, 8)).transpose((0, 0))", MATRIX, **arguments)
    check(of_a_number, "max: expected a block, found the array x (float32, 2 axes)", "x", MATRIX, **arguments)
    check(
        inner,
        "dot: the blocks have shapes (4, 8) and (4, 8); expected (M, K) and (K, N), and 8 differs from 4",
        "dot(load(x, (0, 0), (4, 8)), load(x, (0, 0), (4, 8)))",
        MATRIX,
        **arguments,
    )
    check(
        vector,
        "dot: expected blocks with two axes, found a float32 block of shape (8,)",
        "load(x, (0, 0), (4, 8)) @ load(x, (0, 0), 8)",
        MATRIX,
        **arguments,
    )
    check(
        onto,
        "dot: expected an accumulator of shape (8, 8), found a float32 block of shape (4, 4)",
        'zeros((4, 4), "float32")',
        MATRIX,
        **arguments,
    )
    check(
        into_integers,
        "dot: products of float32 cannot be summed in an int32 block of shape (8, 8)",
        'zeros((8, 8), "int32")',
        MATRIX,
        **arguments,
    )


def test_grids_that_cannot_be_derived() -> None:
    def nowhere(x, out, *, block: Static = 8):
        store(out, program_index(0) * block + 1, load(x, 0, block))

    def never(x, out):
        store(out, program_index(1), 1)

    message, marked = failure(nowhere)
    assert message == (
        "nowhere: the number of programs along grid axis 0 cannot be derived: no store has program_index(0) times the block's "
        "extent as its offset; pass grid=(…)"
    )
    message, _ = failure(never)
    assert "grid axis 0 cannot be derived: program_index(0) is never used" in message
