"""Fused reductions beside NumPy (host) or the copy bandwidth (GPU)."""

from rows import Row, run


def softmax(xp, x):
    """Over rows."""
    e = xp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normalize(xp, x):
    """Rows to mean 0 and deviation 1."""
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)


def layer_norm(xp, x, scale, shift):
    """Rows to mean 0 and deviation 1, then scaled and shifted by columns."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / xp.sqrt(variance + 1e-5) * scale[0] + shift[0]


def logsumexp(xp, x):
    """Over rows."""
    top = x.max(axis=-1, keepdims=True)
    return xp.log(xp.exp(x - top).sum(axis=-1, keepdims=True)) + top


ROWS = [
    Row("softmax 4096x256", softmax, shape=(4096, 256), traffic=2),
    Row("softmax 4096x1024", softmax, shape=(4096, 1024), traffic=2),
    Row("softmax 4096x4096", softmax, shape=(4096, 4096), traffic=2),
    Row("softmax 8192x4096", softmax, shape=(8192, 4096), traffic=2, host_shape=(2048, 4096)),
    Row("softmax 4096x16384", softmax, shape=(4096, 16384), traffic=2, host_shape=(512, 16384)),
    Row("softmax 4096x65536", softmax, shape=(4096, 65536), traffic=2, host_shape=(128, 65536)),
    Row("softmax 65536x256", softmax, shape=(65536, 256), traffic=2, host_shape=(16384, 256)),
    Row("softmax 65536x1024", softmax, shape=(65536, 1024), traffic=2, host_shape=(16384, 1024)),
    Row("z-score 4096x4096", normalize, shape=(4096, 4096), traffic=2),
    *(
        Row(
            f"layer norm 8192x{length}",
            layer_norm,
            arrays=3,
            shape=(8192, length),
            traffic=2,
            host_shape=(1024, length),
        )
        for length in (1024, 4096, 8192, 16384)
    ),
    Row("logsumexp 4096x4096", logsumexp, shape=(4096, 4096), traffic=1),
    Row("logsumexp 65536x1024", logsumexp, shape=(65536, 1024), traffic=1, host_shape=(4096, 1024)),
    Row("logsumexp 65536x4096", logsumexp, shape=(65536, 4096), traffic=1, host_shape=(2048, 4096)),
    Row("logsumexp 4096x65536", logsumexp, shape=(4096, 65536), traffic=1, host_shape=(128, 65536)),
    Row("sum", lambda xp, x: x.sum(), arrays=1, traffic=1, host=1 << 24, device=1 << 28),
    Row("sqrt(sum(a**2))", lambda xp, x: xp.sqrt((x**2).sum()), arrays=1, traffic=1, host=1 << 24, device=1 << 28),
    Row("mean((x-y)**2)", lambda xp, x, y: ((x - y) ** 2).mean(), arrays=2, traffic=2, host=1 << 24, device=1 << 27),
    Row("var", lambda xp, x: x.var(), arrays=1, traffic=1, host=1 << 24, device=1 << 28),
    Row("mean and var", lambda xp, x: x.mean() + x.var(), arrays=1, traffic=1, host=1 << 24, device=1 << 28),
    Row("max", lambda xp, x: x.max(), arrays=1, traffic=1, host=1 << 24, device=1 << 28),
    *(
        Row(
            f"argmax rows {rows}x{length}", lambda xp, x: x.argmax(-1), shape=(rows, length), traffic=1, host_shape=host
        )
        for rows, length, host in (
            (65536, 1024, (4096, 1024)),
            (4096, 4096, ()),
            (16384, 16384, (512, 16384)),
            (4096, 65536, (128, 65536)),
        )
    ),
    Row(
        "sum(axis=0) 16384x16384", lambda xp, x: x.sum(axis=0), shape=(16384, 16384), traffic=1, host_shape=(4096, 4096)
    ),
    Row(
        "var(axis=0) 16384x16384", lambda xp, x: x.var(axis=0), shape=(16384, 16384), traffic=1, host_shape=(4096, 4096)
    ),
    Row("transpose 16384x16384", lambda xp, x: x.T.copy(), shape=(16384, 16384), traffic=2, host_shape=(4096, 4096)),
    Row("transpose 4096x4096", lambda xp, x: x.T.copy(), shape=(4096, 4096), traffic=2),
    Row("sum(axis=0)", lambda xp, x: x.sum(axis=0), shape=(8192, 4096), traffic=1),
    Row("sum(axis=1)", lambda xp, x: x.sum(axis=1), shape=(8192, 4096), traffic=1),
    Row("sum(axis=1) of a 3-d array", lambda xp, x: x.sum(axis=1), shape=(64, 512, 512), traffic=1),
    Row(
        "sum(axis=1) of 512x512x1024",
        lambda xp, x: x.sum(axis=1),
        shape=(512, 512, 1024),
        traffic=1,
        host_shape=(16, 512, 1024),
    ),
    Row("cumsum", lambda xp, x: x.cumsum(), arrays=1, traffic=2, host=1 << 24, device=1 << 28),
    Row("sum, 100 000", lambda xp, x: x.sum(), arrays=1, traffic=1, host=100_000, device=0),
    Row("mean, 100 000", lambda xp, x: x.mean(), arrays=1, traffic=1, host=100_000, device=0),
    Row("max, 100 000", lambda xp, x: x.max(), arrays=1, traffic=1, host=100_000, device=0),
    Row("var, 100 000", lambda xp, x: x.var(), arrays=1, traffic=1, host=100_000, device=0),
    Row("sum(axis=0), 400x250", lambda xp, x: x.sum(axis=0), host_shape=(400, 250), traffic=1),
    Row("softmax, 400x250", softmax, host_shape=(400, 250), traffic=2),
]


if __name__ == "__main__":
    run("reductions", __doc__, ROWS)
