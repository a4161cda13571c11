"""What explorers are given: arrays of any library, and words that name their parts."""

from collections.abc import Sequence

import numpy as np

from mha_teach.widgets._svg import printable


def as_array(numbers) -> np.ndarray:
    """Return numbers of any library, or lists of them, as float64."""
    if isinstance(numbers, list | tuple):
        return np.stack([as_array(part) for part in numbers])
    if hasattr(numbers, "detach"):
        numbers = numbers.detach().cpu().double()  # NumPy has no bfloat16
    return np.asarray(numbers, dtype=np.float64)


def as_labels(name: str, labels: Sequence[str], counted: str, n: int) -> list[str]:
    """Return n words that a picture may hold.

    ``counted`` says what they name, such as "weights has 7 queries".

    Raises
    ------
    TypeError
        If there are none, or one is no str.
    ValueError
        If there are more or fewer than n.
    """
    if labels is None:
        raise TypeError(f"{name} must be a list of str, got None; pass {n} labels")
    labels = list(labels)
    for i, label in enumerate(labels):
        if not isinstance(label, str):
            raise TypeError(
                f"{name}[{i}] must be a str, got {label!r}; "
                f"pass words, such as list(map(str, {name}))"
            )
    if len(labels) != n:
        raise ValueError(
            f"{name} has {len(labels)} labels, but {counted}; pass one label for each"
        )
    return [printable(label) for label in labels]
