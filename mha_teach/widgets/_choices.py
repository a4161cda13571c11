"""Choices as JSON holds them: whole numbers of any library become ints."""

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
