"""Fused elementwise chains beside NumPy (host) or the copy bandwidth (GPU)."""

from rows import Row, run

ROWS = [
    Row("a*x+b", lambda xp, x: 2.5 * x + 1.5, arrays=1, traffic=2, host=1 << 24, device=1 << 28),
    Row("x+y", lambda xp, x, y: x + y, arrays=2, traffic=3, host=1 << 24, device=1 << 27),
    Row("12-operation chain", lambda xp, x, y: chain(xp, x, y), arrays=2, traffic=3, host=1 << 24, device=1 << 27),
    Row("gelu (tanh)", lambda xp, x: gelu(xp, x), arrays=1, traffic=2, host=1 << 23, device=1 << 27),
    Row("exp", lambda xp, x: xp.exp(x), arrays=1, traffic=2, host=1 << 23, device=1 << 27),
    Row("sin", lambda xp, x: xp.sin(x), arrays=1, traffic=2, host=1 << 23, device=1 << 27),
    Row("x+y, 100 000", lambda xp, x, y: x + y, arrays=2, traffic=3, host=100_000, device=0),
    Row("12-operation chain, 100 000", lambda xp, x, y: chain(xp, x, y), arrays=2, traffic=3, host=100_000, device=0),
]


def chain(xp, x, y):
    """Twelve operations, of which two are transcendental."""
    a = x * y + 0.5
    b = xp.exp(-a * a)
    c = xp.sqrt(x * x + y * y + 1.0)
    return xp.tanh(b * c) - a / c


def gelu(xp, x):
    """The usual approximation by tanh."""
    return 0.5 * x * (1.0 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


if __name__ == "__main__":
    run("elementwise", __doc__, ROWS)
