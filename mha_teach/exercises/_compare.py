"""How an answer differs from what was expected, in words a learner can use.

Numbers are compared as plain Python floats, by functions taken when this module is
first imported: code that later replaces ``torch.allclose`` changes no verdict.
"""

from collections.abc import Sequence
from itertools import islice
from math import isfinite, isnan, sqrt
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

TOLERANCE = 1e-4  # of the largest expected entry; float32 sums in any order pass

MOST_AXES = 64  # of a shape; what is longer was meant as something else
MOST_ENTRIES = 1_000_000

ROWS = (Tensor, np.ndarray, list, tuple)

_entries = Tensor.tolist


class Difference(NamedTuple):
    """What was expected, and what came instead."""

    expected: str
    got: str


def difference(
    expected: Any, got: Any, axes: str = "", *, reveal: bool = True
) -> Difference | None:
    """Compare an answer with the reference; None if they agree.

    Parameters
    ----------
    expected
        A tensor, a number, a shape (tuple of int) or a string.
    got
        The answer. Tensors of any float dtype, NumPy arrays, lists and numbers will do.
    axes
        The names of the axes, separated by spaces.
    reveal
        Whether the expected sizes and numbers may be shown.
    """
    if isinstance(expected, str):
        return _text_difference(expected, got)
    if isinstance(expected, tuple):
        return _shape_difference(expected, got, axes, reveal)
    return _number_difference(torch.as_tensor(expected), got, axes, reveal)


def named_sizes(shape: Sequence[int], axes: str) -> str:
    """Write a shape with the names of its axes: ``(batch=2, n=5)``."""
    if len(axes.split()) != len(shape):
        return str(tuple(shape))
    pairs = zip(axes.split(), shape, strict=True)
    return "(" + ", ".join(f"{axis}={size}" for axis, size in pairs) + ")"


def has_nan(value: Any) -> bool:
    """Return whether a tensor, an array or a number holds a nan, if not too large."""
    try:
        found = _as_tensor(value)
        if found.numel() > MOST_ENTRIES:
            return False
        return any(map(isnan, _entries(found.flatten())))
    except (TypeError, ValueError, RuntimeError):
        return False


def is_sparse(value: Any) -> bool:
    """Return whether a value is a tensor in one of the sparse layouts."""
    return isinstance(value, Tensor) and "sparse" in str(value.layout)


def _as_tensor(value: Any) -> Tensor:
    """Turn numbers into a tensor; a range or a generator may have no end."""
    if not isinstance(value, (*ROWS, Number, np.generic)):
        raise TypeError
    return torch.as_tensor(value).detach()


def _text_difference(expected: str, got: Any) -> Difference | None:
    if not isinstance(got, str):
        return Difference(expected, _kind(got))
    return None if got == expected else Difference(expected, got)


def _shape_difference(
    expected: tuple[int, ...], got: Any, axes: str, reveal: bool
) -> Difference | None:
    names = axes.split()
    wanted = named_sizes(expected, axes) if reveal else f"({', '.join(names)})"
    if not isinstance(got, ROWS) or isinstance(got, Tensor) and got.numel() > MOST_AXES:
        return Difference(wanted, _kind(got))
    try:
        found = tuple(int(size) for size in islice(got, MOST_AXES + 1))
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return Difference(wanted, _kind(got))
    if len(found) > MOST_AXES:
        return Difference(wanted, _kind(got))
    if found == expected:
        return None
    if len(found) != len(expected):
        return Difference(wanted, f"{found}: {_axes(len(found))}, not {len(expected)}")
    if len(names) != len(expected):
        return Difference(wanted, str(found))
    off = [n for n, a, b in zip(names, expected, found, strict=True) if a != b]
    return Difference(wanted, f"{found}: look at {' and '.join(off)}")


def _number_difference(
    expected: Tensor, got: Any, axes: str, reveal: bool
) -> Difference | None:
    if expected.dim():
        wanted = f"a tensor {named_sizes(expected.shape, axes)}"
    else:
        wanted = _number(_entries(expected)) if reveal else "another number"
    try:
        found = _as_tensor(got)
    except (TypeError, ValueError, RuntimeError):
        return Difference(wanted, _kind(got))
    if found.shape != expected.shape:
        if expected.dim() and found.dim():
            return _shape_difference(tuple(expected.shape), found.shape, axes, reveal)
        return Difference(wanted if expected.dim() else "one number", _kind(got))
    sort, wanted_sort = _sort(found.dtype), _sort(expected.dtype)
    if sort != wanted_sort:
        return Difference(wanted, f"{sort}, not {wanted_sort}")
    try:
        a, b = _entries(expected.flatten()), _entries(found.flatten())
    except RuntimeError:  # a sparse tensor, or one on the meta device
        return Difference(wanted, _kind(got))
    margin = 0.0
    if expected.is_floating_point():
        margin = TOLERANCE * max((1.0, *map(abs, filter(isfinite, a))))
    off = _off(a, b, margin)
    if not off:
        return None
    if not expected.dim():
        return Difference(wanted, _number(b[0]) + (_factor(a, b) if reveal else ""))
    worst = max(off, key=lambda i: float("inf") if isnan(b[i]) else abs(a[i] - b[i]))
    place = _place(worst, expected.shape, axes)
    share = _factor(a, b) or f"; {len(off)} of {len(a)} entries differ"
    return Difference(f"{_number(a[worst])} at {place}", _number(b[worst]) + share)


def _off(expected: list, got: list, margin: float) -> list[int]:
    """Return where numbers differ; nan agrees with nan, infinity with itself."""
    return [
        i
        for i, (a, b) in enumerate(zip(expected, got, strict=True))
        if not (abs(a - b) <= margin or a == b or isnan(a) and isnan(b))
    ]


def _place(flat_index: int, shape: Sequence[int], axes: str) -> str:
    index = []
    for size in reversed(shape):
        index.append(flat_index % size)
        flat_index //= size
    index.reverse()
    if len(axes.split()) != len(shape):
        return f"index {tuple(index)}"
    return ", ".join(f"{a} {i}" for a, i in zip(axes.split(), index, strict=True))


def _factor(expected: list, got: list) -> str:
    """Say so if the whole answer is the expected one times a number."""
    largest = max(range(len(expected)), key=lambda i: abs(expected[i]))
    if not expected[largest] or not got[largest]:
        return ""
    factor = got[largest] / expected[largest]
    margin = TOLERANCE * abs(got[largest])
    tells_something = abs(factor - 1) > TOLERANCE and 1e-6 < abs(factor) < 1e6
    if not tells_something or any(
        abs(g - factor * e) > margin for e, g in zip(expected, got, strict=True)
    ):
        return ""
    return f", which is {factor:.3g}{_as_root(factor)} times the expected"


def _as_root(factor: float) -> str:
    for square, sign in ((factor**2, "√"), (factor**-2, "1/√")):
        whole = round(square)
        is_root = whole > 1 and sqrt(whole) % 1 and factor > 0
        if is_root and abs(square / whole - 1) < 10 * TOLERANCE:
            return f" ({sign}{whole})"
    return ""


def _number(value: float | int) -> str:
    if isinstance(value, bool):
        return str(value)
    is_whole = abs(value) < 1e15 and value % 1 == 0
    return str(int(value)) if is_whole else f"{value:.3g}"


def _sort(dtype: torch.dtype) -> str:
    if dtype == torch.bool:
        return "True or False"
    return "complex numbers" if dtype.is_complex else "numbers"


def _axes(count: int) -> str:
    return f"{count} axis" if count == 1 else f"{count} axes"


def _kind(got: Any) -> str:
    if got is None or got is ...:
        return "nothing yet"
    if isinstance(got, Tensor):
        kind = "a sparse tensor" if is_sparse(got) else "a tensor"
        return f"{kind} of shape {tuple(got.shape)}"
    if isinstance(got, list | tuple):
        return f"a {type(got).__name__} of {len(got)}"
    if isinstance(got, int | float | str):
        return f"{got!r:.40}"
    return f"a value of type {type(got).__name__}"
