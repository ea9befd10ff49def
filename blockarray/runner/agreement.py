"""Do two runs of one program agree? Texts word by word, numbers as numbers, arrays by dtype, shape and values.

The rule for two numbers ``a`` (NumPy's) and ``b`` is `Tolerance.allows`. Everything else must be equal, with three
exceptions that no program controls: the blanks beside a number (they depend on its digits), one unit in the last
place of a printed number of four or more significant digits (the exact value may lie on the boundary), and memory
addresses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy

from blockarray.runner.values import Unreadable, Value

_TOKEN = re.compile(
    r"(?P<address>\b0x[0-9a-fA-F]{6,}\b)"
    r"|(?P<number>(?<![\w.])[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf)j?(?!\w))"
    r"|(?P<imaginary>(?<=[\w.])[+-](?:\d+\.?\d*(?:[eE][+-]?\d+)?|nan|inf)j(?!\w))"
    r"|(?P<blank>\s+)"
    r"|(?P<text>[A-Za-z_]\w*|\d\w*|.)"
)
_SIGNIFICANT_FOR_LAST_PLACE = 4


@dataclass(frozen=True)
class Tolerance:
    """How far two numbers may be apart.

    Attributes
    ----------
    relative : float
        Share of the larger of the two.
    absolute : float
        Added to it: residues of numbers that cancel are noise, whatever their ratio.
    """

    relative: float = 1e-5
    absolute: float = 1e-12

    def allows(self, expected: complex, found: complex) -> bool:
        """Whether the two agree; NaN agrees with NaN, an infinity with itself."""
        if isinstance(expected, complex) or isinstance(found, complex):
            first, second = complex(expected), complex(found)
            return self.allows(first.real, second.real) and self.allows(first.imag, second.imag)
        if expected == found or (math.isnan(expected) and math.isnan(found)):
            return True
        if not (math.isfinite(expected) and math.isfinite(found)):
            return False
        return abs(expected - found) <= self.relative * max(abs(expected), abs(found)) + self.absolute


@dataclass(frozen=True)
class Difference:
    """One place where two runs do not agree.

    Attributes
    ----------
    place : str
        ``"output, line 3"`` or ``"weights[4, 0]"``.
    expected, found : str
        What NumPy gave there, and what ``blockarray`` gave.
    remark : str
        What is different about them, if the two texts do not show it.
    """

    place: str
    expected: str
    found: str
    remark: str = ""


# ----------------------------------------------------------------------------------------------------------------
# output


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def compare_outputs(
    expected: str, found: str, tolerance: Tolerance, ignore: re.Pattern[str] | None = None
) -> list[Difference]:
    """Differences between two printed texts, in order.

    Parameters
    ----------
    expected, found : str
        All that the two runs printed.
    tolerance : Tolerance
        For the numbers among it.
    ignore : compiled regular expression, optional
        Lines in which it is found are left out on both sides.

    Returns
    -------
    list of Difference
        Numbers are compared on beyond a difference; where the words differ nothing after them can be told apart, so
        that is the last.
    """
    if expected == found:
        return []
    expected_lines, found_lines = expected.splitlines(), found.splitlines()
    first, second = list(_tokens(expected_lines, ignore)), list(_tokens(found_lines, ignore))
    differences: list[Difference] = []
    for one, other in zip(first, second, strict=False):
        if one.kind == other.kind == "number":
            remark = _number_remark(one.text, other.text, tolerance)
        else:
            remark = None if (one.kind, one.text) == (other.kind, other.text) else ""
        if remark is None:
            continue
        differences.append(
            Difference(f"output, line {one.line + 1}", expected_lines[one.line], found_lines[other.line], remark)
        )
        if not one.kind == other.kind == "number":
            return differences
    if len(first) != len(second):
        differences.append(_length_difference(first, second, expected_lines, found_lines))
    return differences


def _tokens(lines: list[str], ignore: re.Pattern[str] | None) -> Iterator[_Token]:
    """Words, numbers and the blanks that matter.

    Blanks beside a number, and line ends within brackets, depend on the digits of numbers: they do not.
    """
    depth = 0
    pending: _Token | None = None  # a blank that counts unless a number follows
    before = "number"
    for index, line in enumerate(lines):
        if ignore is not None and ignore.search(line):
            continue
        for kind, text in _split(line):
            if kind == "blank":
                pending = _Token("blank", text, index) if before != "number" else None
                continue
            if pending is not None and kind != "number":
                yield pending
            pending = None
            depth = max(0, depth + (text == "[") - (text == "]"))
            before = kind
            yield _Token(kind, "" if kind == "address" else text, index)
        pending = None
        if depth == 0:
            yield _Token("end of line", "", index)
            before = "end of line"


def _split(line: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(line.rstrip()):
        kind = match.lastgroup or "text"
        yield ("number" if kind == "imaginary" else kind), match.group()


def _number_remark(expected: str, found: str, tolerance: Tolerance) -> str | None:
    """What is wrong about two printed numbers; None if they agree."""
    if expected == found:
        return None
    if expected.endswith("j") != found.endswith("j"):
        return f"{expected} and {found}"
    expected, found = expected.rstrip("j"), found.rstrip("j")
    if _is_integer(expected) and _is_integer(found):
        if int(expected) == int(found):
            return None
        return f"{expected} and {found} are different integers"
    first, second = float(expected), float(found)
    if first == second and _is_integer(expected) != _is_integer(found):
        return f"{expected} and {found}: an integer and a float"  # unequal ones may be %g of nearly the same number
    if tolerance.allows(first, second):
        return None
    difference = abs(first - second)
    places = max(_last_place(expected), _last_place(found))
    if _significant_digits(expected) >= _SIGNIFICANT_FOR_LAST_PLACE and difference <= places * (1 + 1e-6):
        return None
    return f"{expected} and {found} are {difference:.3g} apart"


def _is_integer(text: str) -> bool:
    return text.lstrip("+-").isdigit()


def _mantissa_and_exponent(text: str) -> tuple[str, int]:
    mantissa, _, exponent = text.lower().lstrip("+-").partition("e")
    return mantissa, int(exponent or 0)


def _significant_digits(text: str) -> int:
    mantissa, _ = _mantissa_and_exponent(text)
    return len(mantissa.replace(".", "").lstrip("0")) if "." in mantissa else 0


def _last_place(text: str) -> float:
    """The size of one unit in the last printed place."""
    mantissa, exponent = _mantissa_and_exponent(text)
    return float(10.0 ** (exponent - len(mantissa.partition(".")[2])))


def _length_difference(first: list[_Token], second: list[_Token], expected: list[str], found: list[str]) -> Difference:
    shorter, longer, lines = (first, second, found) if len(first) < len(second) else (second, first, expected)
    extra = longer[len(shorter)]
    text, nothing = lines[extra.line], "(nothing more)"
    place = f"output, line {extra.line + 1}"
    return Difference(place, nothing, text) if longer is second else Difference(place, text, nothing)


# ----------------------------------------------------------------------------------------------------------------
# values


def compare_values(path: str, expected: Value, found: Value, tolerance: Tolerance) -> Difference | None:
    """The difference between what the two runs left at ``path``, or None.

    Python's numbers have no dtype: beside one, only the values are compared.
    """
    if isinstance(expected, Unreadable) or isinstance(found, Unreadable):
        same = isinstance(expected, Unreadable) and isinstance(found, Unreadable) and expected == found
        return None if same else _different(path, expected, found, "cannot be computed")
    if isinstance(expected, (str, bytes)) or isinstance(found, (str, bytes)):
        return None if type(expected) is type(found) and expected == found else _different(path, expected, found)
    first, second = numpy.asarray(expected), numpy.asarray(found)
    both_arrays = isinstance(expected, numpy.ndarray) and isinstance(found, numpy.ndarray)
    if both_arrays and first.dtype != second.dtype:
        return _different(path, expected, found, "dtypes differ")
    if first.shape != second.shape:
        return _different(path, expected, found, "shapes differ")
    wrong = _disagreeing(first, second, tolerance)
    if not wrong.any():
        return None
    place = tuple(int(index[0]) for index in numpy.nonzero(numpy.atleast_1d(wrong)))[: first.ndim]
    count = int(numpy.count_nonzero(wrong))
    name = path + (f"[{', '.join(map(str, place))}]" if place else "")
    remark = f"{count} of {first.size} elements differ" if first.ndim else ""
    return Difference(name, repr(first[place]), repr(second[place]), remark)


# Differences of nearly equal intermediate values show rounding of a few operations, not of one.
_NORMWISE = 4.0


def _disagreeing(expected: numpy.ndarray, found: numpy.ndarray, tolerance: Tolerance) -> numpy.ndarray:
    """Where the two disagree; both of one shape."""
    kinds = expected.dtype.kind + found.dtype.kind
    if "c" in kinds and not set(kinds) - set("biufc"):
        return _disagreeing(expected.real, found.real, tolerance) | _disagreeing(expected.imag, found.imag, tolerance)
    if not (_is_floating(expected.dtype) or _is_floating(found.dtype)):
        return numpy.asarray(expected != found)
    precision = max((_precision(array.dtype) for array in (expected, found) if _is_floating(array.dtype)), default=0.0)
    first, second = expected.astype(numpy.float64), found.astype(numpy.float64)
    with numpy.errstate(invalid="ignore", over="ignore"):
        larger = numpy.maximum(numpy.abs(first), numpy.abs(second))
        # Rounding is of the size of what was added up: the largest element of the array speaks for it, so differences count
        # relative to that as well.
        finite = numpy.abs(first[numpy.isfinite(first)])
        rounding = _NORMWISE * max(tolerance.relative, 8 * precision) * (finite.max() if finite.size else 0.0)
        allowed = max(tolerance.relative, 8 * precision) * larger + max(tolerance.absolute, precision / 8) + rounding
        close = numpy.abs(first - second) <= allowed
    same = (first == second) | (numpy.isnan(first) & numpy.isnan(second))
    finite_both = numpy.isfinite(first) & numpy.isfinite(second)
    return numpy.asarray(~(same | (finite_both & close)))


def _is_floating(dtype: numpy.dtype) -> bool:
    # bfloat16 and its kin are registered with kind "V"; a structured dtype has that kind too, but it has fields.
    return dtype.kind == "f" or (
        dtype.kind == "V" and dtype.fields is None and dtype.name.startswith(("bfloat", "float"))
    )


def _precision(dtype: numpy.dtype) -> float:
    """Distance from 1 to the next number."""
    if dtype.kind == "f":
        return float(numpy.finfo(dtype).eps)
    one = numpy.ones((), dtype)
    bits = one.view(f"u{dtype.itemsize}") + numpy.ones((), f"u{dtype.itemsize}")
    return float(bits.view(dtype)) - 1.0


def _different(path: str, expected: Value, found: Value, remark: str = "") -> Difference:
    return Difference(path, _brief(expected), _brief(found), remark)


def _brief(value: Value) -> str:
    if isinstance(value, Unreadable):
        return value.explanation
    if isinstance(value, numpy.ndarray):
        return (
            f"{value.dtype.name} array of shape {value.shape}" if value.ndim else f"{value.dtype.name} {value.item()!r}"
        )
    text = repr(value)
    return text if len(text) <= 72 else text[:69] + "..."
