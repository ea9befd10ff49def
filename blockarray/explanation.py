"""Asking what evaluating arrays will take, without running anything."""

from blockarray.fusion.explain import Explanation, explain_plan
from blockarray.fusion.partition import make_plan
from blockarray.fusion.split import split
from blockarray.graph.recording import linearize
from blockarray.ndarray import lazy_arrays, ndarray, read


def explain(*arrays: ndarray) -> Explanation:
    """The kernels that evaluating `arrays` together takes; nothing is computed.

    Parameters
    ----------
    *arrays : ndarray
        Arrays with values or without; those with values need no kernels. NumPy's arrays and scalars and Python's
        numbers may stand among them, as for `evaluate`.

    Returns
    -------
    Explanation
        Prints as text; has `kernels`, `temporaries` and `temporary_bytes`.

    Raises
    ------
    TypeError
        For any other object.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.ones((4, 3))
    >>> centred = x - x.mean(axis=1, keepdims=True)
    >>> len(np.explain(centred).kernels)
    1
    """
    roots = tuple(dict.fromkeys(node for node in map(read, lazy_arrays("explain", arrays)) if not node.is_leaf))
    if not roots:
        return Explanation()
    recording = linearize(roots)
    target = roots[0].device.target
    return explain_plan(split(make_plan(recording, target), target), recording)
