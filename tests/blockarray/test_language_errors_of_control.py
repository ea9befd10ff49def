# ruff: noqa: B007
"""Errors of branches, loops, functions and products in kernels: the message, and the carets."""

import math

import numpy
import pytest
from kernel_failures import X, check, failure

import blockarray as np
from blockarray.language import (
    KernelError,
    Static,
    arange,
    dot,
    extent,
    full,
    load,
    program_index,
    store,
    zeros,
)

MATRIX = numpy.zeros((20, 30), numpy.float32)


def double_in(value):
    return value + arange(16)


def endless(value):
    return endless(value) + 1


@np.kernel("(n)->(n)")
def other_kernel(x, out):
    store(out, program_index(0), 1)


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

    message, marked = failure(nowhere)
    assert message == (
        "nowhere: the number of programs along grid axis 0 cannot be derived: no store has program_index(0) times the block's "
        "extent as its offset; pass grid=(…)"
    )
