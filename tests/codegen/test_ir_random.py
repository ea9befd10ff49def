"""Random kernels: their text reads back, passes keep what they mean and leave kernels that hold, the host agrees."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_kernels import Arguments, RandomKernel, random_kernels, same_bits

from codegen.__main__ import run_on_host
from codegen.ir.interpreter import interpret
from codegen.ir.kernel import BufferParameter, Kernel
from codegen.ir.layout import Layout
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.ir.verifier import verify
from codegen.passes import pipeline
from codegen.settings import override
from codegen.target import Target

TARGET = Target("cpu", "x86_64-unknown-linux-gnu", "x86-64", "", 128, 1, 1, 1 << 16, frozenset())
EXAMPLES = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def results(kernel: Kernel, arguments: Arguments) -> Arguments:
    interpret(kernel, arguments)
    written = [row.name for row in kernel.parameters if isinstance(row, BufferParameter) and row.written]
    assert written
    return {name: arguments[name] for name in written}


@EXAMPLES
@given(random_kernels())
def test_text_reads_back(made: RandomKernel) -> None:
    text = print_kernel(made.kernel)
    assert print_kernel(parse(text)) == text


@EXAMPLES
@given(random_kernels())
def test_text_of_distributed_form_reads_back(made: RandomKernel) -> None:
    text = print_kernel(pipeline.run(made.kernel, TARGET))
    assert print_kernel(parse(text)) == text


@pytest.mark.parametrize("name", [row.name for row in pipeline.PASSES])
@settings(EXAMPLES, max_examples=40)
@given(random_kernels())
def test_each_pass_keeps_the_meaning(name: str, made: RandomKernel) -> None:
    (row,) = [row for row in pipeline.PASSES if row.name == name]
    check_same(made, row.run(made.kernel, TARGET))


@settings(EXAMPLES, max_examples=150)
@given(random_kernels())
def test_the_pipeline_keeps_the_meaning(made: RandomKernel) -> None:
    kernel = made.kernel
    for row in pipeline.PASSES:
        kernel = row.run(kernel, TARGET)
        verify(kernel)
    check_same(made, kernel)


def check_same(made: RandomKernel, after: Kernel) -> None:
    expected = results(made.kernel, made.arguments())
    found = results(after, made.arguments())
    for name, array in expected.items():
        assert same_bits(array, found[name]), (name, print_kernel(made.kernel), print_kernel(after))


@settings(EXAMPLES, max_examples=40)
@given(random_kernels([Layout((1, 1), (1, 1), 8)]))
def test_the_host_agrees(made: RandomKernel) -> None:
    expected = results(made.kernel, made.arguments())
    arguments = made.arguments()
    with override(cache=False):
        run_on_host(made.kernel, arguments)
    for name, array in expected.items():
        found = arguments[name]
        if array.dtype.kind == "f":
            # Sums of a row are added in another order.
            np.testing.assert_allclose(found.astype(np.float64), array.astype(np.float64), 1e-2, 1e-2, equal_nan=True)
        else:
            assert same_bits(array, found), (name, print_kernel(made.kernel))
