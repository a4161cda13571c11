"""What explorers are given: arrays of any library, and words that name their parts."""

import reprlib
from collections.abc import Sequence

import numpy as np

from mha_teach.widgets._svg import printable


def as_array(name: str, given: object, expected: str) -> np.ndarray:
    """Return bools or numbers of any library, or lists of them, as an array.

    Raises
    ------
    TypeError
        If they are not what is ``expected``, in words, or a tensor holds no data.
    """
    try:
        if isinstance(given, list | tuple):
            parts = [as_array(name, part, expected) for part in given]
            return np.stack(parts) if parts else np.empty(0)
        if hasattr(given, "tensor"):  # masks.causal(n)
            given = given.tensor()
        if hasattr(given, "detach"):
            given = given.detach().to_dense().cpu()
            if given.is_floating_point():
                given = given.double()  # NumPy has no bfloat16
        array = np.asarray(given)
        if array.dtype.kind in "biuf":
            return array
    except (TypeError, ValueError, RuntimeError):
        pass
    raise TypeError(
        f"{name} must be {expected}, got {reprlib.repr(given)}; "
        "pass lists of one length, an array, or a tensor that holds data"
    )


def as_code(name: str, given: object) -> str:
    """Return the code of one array, which the way out in a message can cut."""
    if isinstance(given, list | tuple):
        tensors = any(hasattr(part, "detach") for part in given)
        return f"torch.stack({name})" if tensors else f"np.array({name})"
    return f"{name}.tensor()" if hasattr(given, "tensor") else name


def as_labels(name: str, labels: Sequence[str], counted="", n=None) -> list[str]:
    """Return words that a picture may hold, n of them unless n is None.

    ``counted`` says what they name, such as "weights has 7 queries".

    Raises
    ------
    TypeError
        If they have no order, as those of a set, or one is no str.
    ValueError
        If there are more or fewer than n.
    """
    try:
        labels = list(labels[:])  # what has no order has no slices
    except (TypeError, LookupError):
        raise TypeError(
            f"{name} must be a list of str, got {reprlib.repr(labels)}; "
            'pass words in their order, such as ["a", "b"]'
        ) from None
    for i, label in enumerate(labels):
        if not isinstance(label, str):
            raise TypeError(
                f"{name}[{i}] must be a str, got {label!r}; "
                f"pass words, such as list(map(str, {name}))"
            )
    if n not in (None, len(labels)):
        raise ValueError(
            f"{name} has {len(labels)} labels, but {counted}; pass one label for each"
        )
    return [printable(label) for label in labels]
