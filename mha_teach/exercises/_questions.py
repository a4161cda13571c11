"""Questions that fit a kind of failure, in whichever exercise it comes up."""

import re
import traceback
from typing import Any

from torch import Tensor

from mha_teach.exercises._compare import coarse_type, has_nan, is_sparse

_ERRORS = (
    (
        "view size is not compatible",
        "After a transpose the numbers lie in memory as before. Which call lays them "
        "out in the new order?",
    ),
    (
        "AttentionResult",
        "scaled_dot_product_attention returns a pair, output and weights. Which of the "
        "two does this line need?",
    ),
    (
        "'list' and 'Tensor'|'Tensor' and 'list'|'list' object|list indices"
        "|must be Tensor, not list|to list$",
        "There is a list on this line where a tensor is needed. Which call makes a "
        "tensor of it?",
    ),
    (
        "'tuple' and 'Tensor'|'Tensor' and 'tuple'|'tuple' object"
        "|must be Tensor, not tuple|to tuple$",
        "There is a tuple on this line where one tensor is needed. Which part of it do "
        "you mean?",
    ),
    (
        "torch.return_types",
        "Some calls return two things, such as values and their places. Which of them "
        "does this line need?",
    ),
    (
        "recursion",
        "A function calls itself here. What would make it stop?",
    ),
    (
        "same dtype|scalar type|without overflow",
        "What kind of numbers does each tensor on this line hold? Print its dtype.",
    ),
    (
        "more than one value is ambiguous",
        "A yes or no is asked for here, and this tensor holds many. Is it meant for "
        "all, for any, or for each?",
    ),
    (
        "out of bounds|index out of range",
        "Along which axis does this index count, and how long is that axis here?",
    ),
    (
        r"number of dimensions|dimension out of range|dimension specified"
        r"|too many indices|at least \d",
        "How many axes has each tensor on this line? Name them, counting from 0.",
    ),
    (
        "argument",
        "Which arguments does this call take, and which of them does it get here?",
    ),
    (
        "non-singleton dimension|could not be broadcast",
        "Write the shapes on this line under each other, aligned at the right. Which "
        "axes meet, and which should?",
    ),
    (
        "is invalid for input of size|multiply up to|must be divisible",
        "How many numbers are there to be cut anew, and for how many do the new sizes "
        "make room?",
    ),
    (
        r"\b(sizes?|shapes?)\b",
        "Write the shape of each tensor on this line. Which two sizes must agree?",
    ),
)
_SAYS_ENOUGH = (NameError, ImportError, NotImplementedError)


def about_error(error: BaseException) -> str:
    """Ask about what stands on the line; some errors say enough by themselves."""
    if not isinstance(error, Exception) or isinstance(error, _SAYS_ENOUGH):
        return ""
    if _is_raised_by_the_package(error):
        return "The message says what does not fit. Which part of this line is it?"
    for pattern, question in _ERRORS:
        if re.search(pattern, str(error), re.IGNORECASE):
            return question
    return "What does each name on this line stand for? Print it, or type and shape."


def about_backward(error: BaseException) -> str:
    """Ask about an error that torch raises later, when the check takes gradients."""
    if "inplace operation" in str(error):
        return (
            "The gradient needs a tensor as it was. Which line writes into one, and "
            "which call returns a new one instead?"
        )
    return ""


def _is_raised_by_the_package(error: BaseException) -> bool:
    names = [
        str(frame.f_globals.get("__name__"))
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    return names[-1:] != [] and (
        names[-1].startswith("mha_teach.") and "exercises" not in names[-1]
    )


def about_result(result: Any) -> str:
    """Ask about what was returned where one tensor is asked for."""
    if isinstance(result, list | tuple):
        return _about_several(result)
    if is_sparse(result):
        return "Your tensor is sparse. Which call makes it dense?"
    if has_nan(result):
        return (
            "nan comes from 0/0, 0 · ∞, a root of a negative number or a softmax over "
            "only −∞. Which line can do that?"
        )
    if not hasattr(result, "shape"):
        kind = type(result).__name__
        return f"You return a value of type {kind}. Which tensor is asked for?"
    return ""


def about_precision(expected: Any, result: Any) -> str:
    """Ask about numbers that differ by no more than what their type rounds away."""
    coarse = coarse_type(expected, result)
    if not coarse:
        return ""
    digits = {"float16": "three", "bfloat16": "two"}.get(coarse)
    if not digits:
        return f"{coarse} holds whole numbers only: which type keeps the fractions?"
    return (
        f"Your numbers are nearly right. {coarse} keeps about {digits} digits: which "
        "type keeps more?"
    )


def about_value(expected: Any, value: Any) -> str:
    """Ask about one value of a dict that is not even of the kind asked for."""
    if isinstance(expected, str):
        return ""
    if isinstance(value, str):
        return "That is text; leave out the quotes."
    if isinstance(expected, tuple):
        return ""
    if isinstance(expected, bool):
        return "" if _is_yes_or_no(value) else "Which of the two is it, True or False?"
    if isinstance(value, list | tuple) or getattr(value, "shape", ()):
        return "One number is asked for. Which of yours is it?"
    if _is_yes_or_no(value):
        return "That says yes or no. Which number is asked for?"
    return ""


def _is_yes_or_no(value: Any) -> bool:
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _about_several(results: list | tuple) -> str:
    if hasattr(results, "_fields"):  # an AttentionResult
        return f"You return {' and '.join(results._fields)}. Which one is asked for?"
    if hasattr(results, "n_fields"):  # what max, sort and others return
        return "You return several things at once. Which one is asked for?"
    kind = "list" if isinstance(results, list) else "tuple"
    if not results or not all(isinstance(result, Tensor) for result in results):
        return f"You return a {kind}. Which call makes one tensor of it?"
    many = f"You return a {kind} of {len(results)} tensors."
    if len({result.shape for result in results}) == 1:
        return f"{many} Which call makes one of them, and along which axis?"
    if kind == "list":
        return f"{many} They differ in shape: how should one tensor hold them all?"
    return f"{many} Which one is asked for?"
