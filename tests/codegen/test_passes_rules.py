"""The rules of `canonicalize`, one by one: what they do, and what they must leave alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_texts import HEAD, body_text, kernel_of
from random_kernels import same_bits

from codegen.ir.operations import Cast
from codegen.ir.parser import parse
from codegen.ir.printer import print_kernel
from codegen.ir.verifier import verify
from codegen.passes.canonicalize import canonicalize
from codegen.passes.remove_dead_code import remove_dead_code

STORE = "\nstore %y, %place, %w checked=(true)"


def canonical_operand(lines: str) -> str:
    """What is stored in place of %w by rules, once nothing unused is left."""
    kernel = remove_dead_code(canonicalize(kernel_of(lines + STORE)))
    verify(kernel)
    return body_text(kernel)


RULES = [
    ("add", "-0.0", "%v", "x + -0.0 -> x"),
    ("add", "0.0", None, "x + 0.0 is 0.0 for -0.0"),
    ("subtract", "0.0", "%v", "x - 0.0 -> x"),
    ("subtract", "-0.0", None, "x - -0.0 is 0.0 for -0.0"),
    ("multiply", "1", "%v", "x * 1 -> x"),
    ("multiply", "0.0", None, "x * 0.0 is NaN for inf"),
    ("divide", "1.0", "%v", "x / 1 -> x"),
    ("power", "1.0", None, "no rule"),
    ("maximum", "-inf", None, "no rule"),
]


@pytest.mark.parametrize(("function", "number", "result", "why"), RULES, ids=[row[3] for row in RULES])
def test_rules_of_floats_change_no_bit(function: str, number: str, result: str | None, why: str) -> None:
    lines = f"%c = constant dtype=float32 number={number} shape=(16)\n%w = map {function} %v, %c"
    found = canonical_operand(lines)
    kept = (
        f"%c: float32[16] = constant dtype=float32 number={number} shape=(16)\n%w: float32[16] = map {function} %v, %c"
    )
    assert found == ((kept + STORE) if result is None else STORE.strip().replace("%w", result))


@pytest.mark.parametrize("function", ["subtract", "divide", "equal", "floor_divide"])
def test_floats_do_not_cancel(function: str) -> None:
    lines = f"%u = map {function} %v, %v\n%w = cast %u dtype=float32"
    assert f"map {function} %v, %v" in canonical_operand(lines)


INTEGERS = [
    ("map add %i, %none", "%i"),
    ("map add %none, %i", "%i"),
    ("map subtract %i, %none", "%i"),
    ("map subtract %none, %i", None),
    ("map multiply %i, %one", "%i"),
    ("map multiply %one, %i", "%i"),
    ("map multiply %i, %none", "%none"),
    ("map subtract %i, %i", "zero"),
    ("map bitwise_and %i, %none", "%none"),
    ("map bitwise_and %i, %all", "%i"),
    ("map bitwise_or %none, %i", "%i"),
    ("map bitwise_xor %i, %none", "%i"),
    ("map left_shift %i, %none", "%i"),
    ("map left_shift %none, %i", None),
    ("map right_shift %i, %none", "%i"),
    ("map positive %i", "%i"),
    ("map floor_divide %i, %one", None),
]


@pytest.mark.parametrize(("operation", "result"), INTEGERS, ids=[row[0] for row in INTEGERS])
def test_rules_of_integers(operation: str, result: str | None) -> None:
    lines = """
%i = iota shape=(16) axis=0
%none = constant dtype=int64 number=0 shape=(16)
%one = constant dtype=int64 number=1 shape=(16)
%all = constant dtype=int64 number=-1 shape=(16)
"""
    kernel = canonicalize(kernel_of(f"{lines}%u = {operation}\n%w = cast %u dtype=float32{STORE}"))
    text = print_kernel(kernel)
    if result is None:
        assert operation in text
    elif result == "zero":
        assert "%0: int64[16] = constant dtype=int64 number=0 shape=(16)" in text
        assert "cast %0 dtype" in text
    else:
        assert f"cast {result} dtype" in text


CHOICES = [
    ("%w = map where %c, %v, %v", "%v"),
    ("%yes = constant dtype=bool number=true shape=(16)\n%u = map negative %v\n%w = map where %yes, %v, %u", "%v"),
    ("%no = constant dtype=bool number=false shape=(16)\n%u = map negative %v\n%w = map where %no, %u, %v", "%v"),
    ("%u = map negative %v\n%w = map negative %u", "%v"),
    ("%u = cast %v dtype=float64\n%w = cast %u dtype=float32", "%v"),
    ("%w = cast %v dtype=float32", "%v"),
    ("%w = map maximum %v, %v", "%v"),
    ("%w = map fmin %v, %v", "%v"),
    ("%w = broadcast %v shape=(16)", "%v"),
    ("%w = reshape %v shape=(16)", "%v"),
    (
        "%t = constant dtype=bool number=true shape=()\n%w = if %t {\nyield %v\n} else {\n%u = map negative %v\nyield %u\n}",
        "%v",
    ),
    ("%w = for %tile, %zero, %v step=4 (%i, %u) {\n%t = map add %u, %v\nyield %t\n}", "%v"),
]


@pytest.mark.parametrize(("lines", "result"), CHOICES, ids=[row[0] for row in CHOICES])
def test_rules_that_find_the_value_itself(lines: str, result: str) -> None:
    condition = "%c = map less %v, %v\n" if "%c" in lines else ""
    assert canonical_operand(condition + lines) == STORE.strip().replace("%w", result)


@pytest.mark.parametrize(
    "lines",
    [
        "%u = cast %v dtype=float16\n%w = cast %u dtype=float32",
        "%u = cast %v dtype=int32\n%w = cast %u dtype=float32",
        "%u = map absolute %v\n%w = map absolute %u",
    ],
)
def test_what_is_not_the_value_itself_stays(lines: str) -> None:
    kernel = kernel_of(lines + STORE)
    assert canonicalize(kernel) is kernel


def cast_chain(*names: str) -> str:
    """The casts that are left of a chain of casts from the first of the dtypes on."""
    lines = [f"%s = cast %v dtype={names[0]}"]
    lines += [f"%c{k} = cast %{'s' if k == 0 else f'c{k - 1}'} dtype={name}" for k, name in enumerate(names[1:])]
    kernel = canonicalize(kernel_of("\n".join(lines)))
    last = kernel.body.operations[-1]
    assert isinstance(last, Cast)
    chain = [last.dtype.name]
    while last.operands[0].name != "s":
        (last,) = (row for row in kernel.body.operations if row.results == last.operands)
        chain.insert(0, last.dtype.name)
    return " ".join(chain)


CASTS = [
    ("int8 int32 int64", "int64"),
    ("int8 int32 uint8", "uint8"),
    ("uint8 int16 float32", "float32"),
    ("int16 float32 float64", "float64"),
    ("float16 float32 float64", "float64"),
    ("bool float32 float64", "float64"),
    ("int8 uint8 int64", "uint8 int64"),
    ("int32 float32 float64", "float32 float64"),
    ("int64 int32 int64", "int32 int64"),
    ("float16 float32 int8", "float32 int8"),
    ("int8 float32 uint8", "float32 uint8"),
    ("int16 float16 float32", "float16 float32"),
]


@pytest.mark.parametrize(("chain", "left"), CASTS, ids=[row[0] for row in CASTS])
def test_casts_compose_where_nothing_is_lost(chain: str, left: str) -> None:
    assert cast_chain(*chain.split()) == left


@pytest.mark.parametrize("name", [chain.split()[0] for chain, left in CASTS if " " not in left])
def test_composed_casts_give_the_same_numbers(name: str) -> None:
    source = np.dtype(name)
    pattern = np.arange(2**16, dtype=np.uint16)
    values = pattern.astype(source) if source.kind != "f" else pattern.view(np.float16).astype(source)
    for chain, left in CASTS:
        if " " in left or not chain.startswith(f"{name} "):
            continue
        first, second = chain.split()[1:]
        with np.errstate(all="ignore"):
            assert same_bits(values.astype(first).astype(second), values.astype(second)), chain


def test_folds_of_one_element() -> None:
    kernel = kernel_of("""
%one = load %x, %place shape=(1) checked=(true) fill=0
%s = reduce add %one axis=0
%r, %t = scan add %one axis=0
%u = map add %s, %r
%w = map add %u, %t
store %y, %place, %w checked=(true)
""")
    text = print_kernel(canonicalize(kernel))
    assert "map add %one, %one" in text and "map add %u, %one" in text
    assert "reduce" not in text and "scan" not in text


def test_broadcasts_and_constants_compose() -> None:
    lines = """
%one = constant dtype=float32 number=1.5 shape=()
%a = broadcast %one shape=(1)
%w = broadcast %a shape=(16)
"""
    assert canonical_operand(lines) == (
        "%w: float32[16] = constant dtype=float32 number=1.5 shape=(16)\nstore %y, %place, %w checked=(true)"
    )


def test_index_arithmetic_folds() -> None:
    lines = (
        "%c = map multiply %tile, %tile\n%d = map subtract %zero, %c\n%w = load %x, %d shape=(16) checked=(true) fill=0"
    )
    assert "constant dtype=int64 number=-256 shape=()" in canonical_operand(lines)


@settings(deadline=None, max_examples=50)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.sampled_from(("add", "multiply")))
def test_folded_indices_wrap_around(a: int, b: int, function: str) -> None:
    lines = (
        f"%a = constant dtype=int64 number={a} shape=()\n%b = constant dtype=int64 number={b} shape=()\n"
        f"%c = map {function} %a, %b\n%w = load %x, %c shape=(16) checked=(true) fill=0{STORE}"
    )
    exact = a + b if function == "add" else a * b
    wrapped = (exact + 2**63) % 2**64 - 2**63
    found = print_kernel(remove_dead_code(canonicalize(parse(HEAD + lines + "\n}"))))
    neutral = b if exact == b else a
    assert f"number={wrapped if exact not in (a, b) else neutral} shape=()" in found
