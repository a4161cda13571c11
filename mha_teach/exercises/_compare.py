"""How an answer differs from what was expected, in words a learner can use.

Numbers are compared as plain Python floats, by functions taken when this module is
first imported: code that later replaces ``torch.allclose`` changes no verdict.
"""

from collections.abc import Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite, isnan, sqrt
from numbers import Number, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

TOLERANCE = 1e-4  # of the largest expected entry; float32 sums in any order pass

MOST_AXES = 64  # of a shape; what is longer was meant as something else
MOST_ENTRIES = 1_000_000

ROWS = (Tensor, np.ndarray, list, tuple)

_entries = Tensor.tolist
_array = Tensor.numpy


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
        Whether the expected sizes and numbers may be shown. If not, nothing is said
        of what was expected but its kind, and only if that is missed.
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
        found = as_tensor(value)
        if found.numel() > MOST_ENTRIES:
            return False
        return any(map(isnan, _entries(found.flatten())))
    except (TypeError, ValueError, RuntimeError):
        return False


def says_little(value: Any) -> bool:
    """Return whether quite different answers may give the same: one number, or nan."""
    if isinstance(value, list | tuple) or has_nan(value):
        return has_nan(value)
    try:
        found = as_tensor(value)
        return found.numel() <= MOST_ENTRIES and len(set(_entries(found.flatten()))) < 2
    except (TypeError, ValueError, RuntimeError):
        return False


def is_sparse(value: Any) -> bool:
    """Return whether a value is a tensor in one of the sparse layouts."""
    return isinstance(value, Tensor) and "sparse" in str(value.layout)


def is_unchanged(before: Any, after: Any) -> bool:
    """Return whether a tensor or a list is as it was, bit by bit."""
    try:
        if isinstance(before, list):
            return before == after
        return _bits(before) == _bits(after)
    except Exception:  # its new entries raise, or it is on no device
        return False


def _bits(tensor: Tensor) -> tuple:
    laid_out = tensor.detach().contiguous().flatten().view(torch.uint8)
    return tensor.shape, tensor.dtype, _array(laid_out).tobytes()


def coarse_type(expected: Any, got: Any) -> str:
    """Return the name of the type that is all that is wrong, if any.

    Half precision costs the last digits, a tensor of whole numbers the fractions.
    """
    try:
        wanted, found = torch.as_tensor(expected), as_tensor(got)
        if found.dtype == wanted.dtype or found.shape != wanted.shape:
            return ""
        a, b = _entries(wanted.flatten()), _entries(found.flatten())
    except (TypeError, ValueError, RuntimeError):
        return ""
    if found.dtype in (torch.float16, torch.bfloat16):
        largest = max((1.0, *map(abs, filter(isfinite, a))))
        margin = 8 * torch.finfo(found.dtype).eps * largest
    elif _is_fraction_lost(expected, found.dtype):
        margin = 1.0
    else:
        return ""
    return "" if _off(a, b, margin) else str(found.dtype).removeprefix("torch.")


def _is_fraction_lost(expected: Any, dtype: torch.dtype) -> bool:
    is_whole = _sort(dtype) == "numbers" and not dtype.is_floating_point
    return is_whole and isinstance(expected, Tensor) and expected.is_floating_point()


def as_tensor(value: Any) -> Tensor:
    """Turn numbers into a tensor; a range or a generator may have no end."""
    if not isinstance(value, (*ROWS, Number, np.generic)):
        raise TypeError
    if isinstance(value, Real | Decimal) and not isinstance(value, int | np.generic):
        try:
            value = float(value)
        except OverflowError as error:
            raise ValueError from error
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
        found = tuple(_size(size, got) for size in islice(got, MOST_AXES + 1))
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


def _size(size: Any, shape: Any) -> int:
    """Read one size of a shape; a list of tensors or of fractions is no shape."""
    if isinstance(size, Tensor) and not isinstance(shape, Tensor) or size != int(size):
        raise TypeError
    return int(size)


def _number_difference(
    expected: Tensor, got: Any, axes: str, reveal: bool
) -> Difference | None:
    sort = _sort(expected.dtype)
    if expected.dim():
        wanted = f"a tensor {named_sizes(expected.shape, axes)}"
    elif reveal:
        wanted = _number(_entries(expected))
    else:
        wanted = "True or False" if sort == "True or False" else "one number"
    try:
        found = as_tensor(got)
    except (TypeError, ValueError, RuntimeError):
        return Difference(wanted, _kind(got))
    if found.shape != expected.shape:
        if expected.dim() and found.dim():
            return _shape_difference(tuple(expected.shape), found.shape, axes, reveal)
        return Difference(wanted if expected.dim() else "one number", _kind(got))
    try:
        a, b = _entries(expected.flatten()), _entries(found.flatten())
    except RuntimeError:  # a sparse tensor, or one on the meta device
        return Difference(wanted, _kind(got))
    if _sort(found.dtype) != sort:
        said = f"{_sort(found.dtype)}, not {sort}" if expected.dim() else str(b[0])
        return Difference(wanted, said)
    margin = 0.0
    if expected.is_floating_point():
        margin = TOLERANCE * max((1.0, *map(abs, filter(isfinite, a))))
    off = _off(a, b, margin)
    if not off:
        return None
    if not expected.dim() and not reveal:
        return Difference("", _number(b[0], digits=7))
    worst = max(off, key=lambda i: float("inf") if isnan(b[i]) else abs(a[i] - b[i]))
    wanted, said = _told_apart(a[worst], b[worst])
    if not expected.dim():
        return Difference(wanted, said + _factor(a, b))
    place = _place(worst, expected.shape, axes)
    share = _factor(a, b) or f"; {len(off)} of {len(a)} entries differ"
    return Difference(f"{wanted} at {place}", said + share)


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
    _, said = _told_apart(1, factor)
    return f", which is {said}{_as_root(factor)} times the expected"


def _as_root(factor: float) -> str:
    for square, sign in ((factor**2, "√"), (factor**-2, "1/√")):
        whole = round(square)
        is_root = whole > 1 and sqrt(whole) % 1 and factor > 0
        if is_root and abs(square / whole - 1) < 10 * TOLERANCE:
            return f" ({sign}{whole})"
    return ""


def _told_apart(expected: float | int, got: float | int) -> tuple[str, str]:
    """Write two different numbers with as few digits as show that they differ."""
    for digits in (3, 5, 7):
        pair = _number(expected, digits), _number(got, digits)
        if pair[0] != pair[1]:
            break
    return pair


def _number(value: float | int, digits: int = 3) -> str:
    if isinstance(value, bool):
        return str(value)
    is_whole = abs(value) < 1e15 and value % 1 == 0
    return str(int(value)) if is_whole else f"{value:.{digits}g}"


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
        return f"a {'list' if isinstance(got, list) else 'tuple'} of {len(got)}"
    if isinstance(got, int | float | str):
        return f"{got!r:.40}"
    return f"a value of type {type(got).__name__}"
