"""Choices as JSON holds them: numbers of any library become ints and floats."""

import math
import operator

import numpy as np


def whole(name: str, value: object) -> int:
    """Return a whole number as an int.

    Raises
    ------
    TypeError
        If ``value`` is no whole number. ``True`` is none.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name} must be an int, got {value!r}; pass a whole number")


def real(name: str, value: object) -> float:
    """Return a number as a float.

    Raises
    ------
    TypeError
        If ``value`` is no number. ``True`` and ``"1"`` are none.
    """
    try:
        if hasattr(value, "__float__") and not isinstance(value, bool | np.bool_):
            return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    raise TypeError(f"{name} must be a number, got {value!r}; pass a float")


def tenths(name: str, value: object) -> float:
    """Return a number as a float, as ``real`` does, but 0.1 + 0.2 as 0.3."""
    x = real(name, value)
    near = round(10 * x) / 10 if math.isfinite(x) else x
    return near if abs(x - near) < 1e-6 else x


def flag(name: str, value: object) -> bool:
    """Return a truth value, also one of NumPy, as a bool.

    Raises
    ------
    TypeError
        If ``value`` is something else, a number for example.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, got {value!r}; pass True or False")
    return bool(value)
