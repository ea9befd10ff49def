# ruff: noqa: B007, F841
"""Errors of names, statements, shapes, dtypes and arrays in kernels: the message, and the carets."""

import numpy
from kernel_failures import X, check, failure

import blockarray as np
from blockarray.language import (
    arange,
    cast,
    extent,
    load,
    store,
    zeros,
)

MATRIX = numpy.zeros((20, 30), numpy.float32)


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
        global Y
        Y = 1

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
        declares: ("`global` cannot be used in a kernel; pass the value as a parameter", "global Y"),
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
    def from_outside(x, out):
        store(out, 0, load(x, 0, 8) + X)

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
        from_outside,
        "expected a block or a number, found an array of shape (100,) from outside of the kernel; pass it as a parameter, and load "
        "a block of it",
        "load(x, 0, 8) + X",
    )
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
