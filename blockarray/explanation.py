"""Asking what evaluating arrays will take, without running anything."""

from blockarray.fusion.explain import Explanation, explain_plan
from blockarray.fusion.partition import make_plan
from blockarray.fusion.split import split
from blockarray.graph.recording import linearize
from blockarray.ndarray import ndarray, read


def explain(*arrays: ndarray) -> Explanation:
    """The kernels that evaluating `arrays` together takes; nothing is computed.

    Parameters
    ----------
    *arrays : ndarray
        Arrays with values or without; those with values need no kernels.

    Returns
    -------
    Explanation
        Prints as text; has `kernels`, `temporaries` and `temporary_bytes`.

    Examples
    --------
    >>> import blockarray as np
    >>> x = np.ones((4, 3))
    >>> centred = x - x.mean(axis=1, keepdims=True)
    >>> len(np.explain(centred).kernels)
    1
    """
    for array in arrays:
        if not isinstance(array, ndarray):
            raise TypeError(f"explain() takes arrays of this library, not {type(array).__name__}")
    roots = tuple(dict.fromkeys(node for node in map(read, arrays) if not node.is_leaf))
    if not roots:
        return Explanation()
    recording = linearize(roots)
    target = roots[0].device.target
    return explain_plan(split(make_plan(recording, target), target), recording)
