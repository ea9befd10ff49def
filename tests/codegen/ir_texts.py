"""Small kernels as text, for tests that look at one thing."""

from codegen.ir.kernel import Kernel
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel

HEAD = """kernel example(
  n: index
  m: index divisible 16
  f: scalar float32
  x: buffer float32[n] strides (1) align 4
  y: buffer float32[n] strides (1) align 4 written
  even: buffer float32[m] strides (1) align 4
) grid (n by 16) layout lanes 1 run 1 register 16 {
  %zero: int64 = constant dtype=int64 number=0 shape=()
  %tile: int64 = constant dtype=int64 number=16 shape=()
  %program: int64 = program_index axis=0
  %place: int64 = map multiply %program, %tile
  %v: float32[16] = load %x, %place shape=(16) checked=(true) fill=0
"""


def text_of(body: str) -> str:
    """A kernel with `body` behind a loaded tile %v at %place."""
    return HEAD + body.strip("\n") + "\n}\n"


def kernel_of(body: str) -> Kernel:
    """The same, parsed."""
    return parse(text_of(body))


def body_text(kernel: Kernel) -> str:
    """The text without the lines that all kernels of `ir_texts` have, not indented."""
    known = HEAD.splitlines()
    lines = [line for line in print_kernel(kernel).splitlines()[:-1] if line not in known]
    return "\n".join(line.removeprefix("  ") for line in lines)
