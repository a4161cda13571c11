"""Questions that fit a kind of failure, in whichever exercise it comes up."""

import re
from typing import Any

from torch import Tensor

from mha_teach.exercises._compare import has_nan, is_sparse

_ERRORS = (
    (
        "view size is not compatible",
        "After a transpose the numbers lie in memory as before. Which call lays them "
        "out in the new order?",
    ),
    (
        r"number of dimensions|dimension out of range",
        "How many axes has each tensor on this line? Name them, counting from 0.",
    ),
    (
        r"\b(sizes?|shapes?)\b",
        "Write the shape of each tensor on this line. Which two sizes must agree?",
    ),
)


def about_error(error: BaseException) -> str:
    """Ask about tensors that do not fit; other errors say enough by themselves."""
    if not isinstance(error, RuntimeError | ValueError | IndexError):
        return ""
    for pattern, question in _ERRORS:
        if re.search(pattern, str(error), re.IGNORECASE):
            return question
    return ""


def about_result(result: Any) -> str:
    """Ask about what was returned where one tensor is asked for."""
    if isinstance(result, list | tuple):
        return _about_several(result)
    if is_sparse(result):
        return "Your tensor is sparse. Which call makes it dense?"
    if has_nan(result):
        return (
            "nan comes from 0/0, a root of a negative number or a softmax over only "
            "−∞. Which line can do that?"
        )
    if not hasattr(result, "shape"):
        kind = type(result).__name__
        return f"You return a value of type {kind}. Which tensor is asked for?"
    return ""


def about_value(expected: Any, value: Any) -> str:
    """Ask about one value of a dict that is not even of the kind asked for."""
    if isinstance(expected, str):
        return ""
    if isinstance(value, str):
        return "That is text; leave out the quotes."
    if isinstance(expected, tuple):
        return ""
    if isinstance(value, list | tuple) or getattr(value, "shape", ()):
        return "One number is asked for. Which of yours is it?"
    if isinstance(value, bool):
        return "That says yes or no. How many are there?"
    return ""


def _about_several(results: list | tuple) -> str:
    kind = type(results).__name__
    if not results or not all(isinstance(result, Tensor) for result in results):
        return f"You return a {kind}. Which call makes one tensor of it?"
    if len({result.shape for result in results}) == 1:
        return f"You return a {kind}. What joins the heads, and along which axis?"
    return f"You return a {kind} of {len(results)} tensors. Which one is asked for?"
