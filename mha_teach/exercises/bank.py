"""The vocabulary in which the exercises of a chapter are written.

After this file you can read ``chapter_07.py`` and add an exercise to it. An exercise
is a reference, the properties that any right answer shares with it, and the wrong
answers that people really give, each with the property that catches it.
"""

import inspect
import random
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mha_teach.exercises._compare import as_tensor
from mha_teach.exercises._settings import neutral

Inputs = dict[str, Any]
Seed = int | str | None

LOST_AXIS = (
    "An axis of size 1 is an axis still. Which line loses one, or takes one for "
    "another?"
)


class Draw:
    """Random sizes and tensors; the same key gives the same ones, in this order."""

    def __init__(self, *key: object):
        self._random = random.Random("/".join(map(str, key)))
        self._generator = torch.Generator().manual_seed(self._random.getrandbits(60))

    def primes(self, count: int, *, above: int = 1) -> list[int]:
        """Return pairwise different primes, so that no two axes agree by chance."""
        primes = [p for p in (2, 3, 5, 7, 11, 13, 17) if p > above]
        return self._random.sample(primes[: count + 1], count)

    def one_of(self, *options: Any) -> Any:
        """Return one of the options."""
        return self._random.choice(options)

    def normal(self, *shape: int) -> Tensor:
        """Return independent float32 entries of mean 0 and variance 1."""
        return torch.randn(shape, generator=self._generator, dtype=torch.float32)


def call(function: Callable, inputs: Inputs) -> Any:
    """Observe what a function returns."""
    return function(*inputs.values())


def shape(function: Callable, inputs: Inputs) -> Any:
    """Observe the shape of the result, or the result itself if it has none."""
    result = call(function, inputs)
    return tuple(result.shape) if hasattr(result, "shape") else result


def of_pair(index: int) -> Callable[[Callable, Inputs], Any]:
    """Observe one of the two tensors returned, or what came in place of a pair."""

    def observe(function: Callable, inputs: Inputs) -> Any:
        result = call(function, inputs)
        return result[index] if _is_pair(result) else result

    return observe


def sizes_of_pair(function: Callable, inputs: Inputs) -> Any:
    """Observe the sizes of both tensors, or the result if it is no pair.

    A pair that holds something else is observed as a text that names the two.
    """
    result = call(function, inputs)
    if not _is_pair(result):
        return result
    if not all(hasattr(part, "shape") for part in result):
        return _kinds(result)
    return tuple(size for part in result for size in part.shape)


def side_by_side(function: Callable, inputs: Inputs) -> Any:
    """Observe both tensors of a pair, joined along the last axis.

    What cannot be joined is observed as a text that names the two shapes.
    """
    result = call(function, inputs)
    if not _is_pair(result):
        return result
    try:
        return torch.cat([as_tensor(part) for part in result], dim=-1)
    except (TypeError, ValueError, RuntimeError):
        return _kinds(result)


def _kinds(pair: Any) -> str:
    """Name the shapes of two tensors, or the types of what is none."""
    kinds = [getattr(part, "shape", type(part).__name__) for part in pair]
    return " and ".join(str(k if isinstance(k, str) else tuple(k)) for k in kinds)


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple | list) and len(result) == 2


def entry(key: str | int) -> Callable[[Callable, Inputs], Any]:
    """Observe one entry of the dict or tuple that a function returns."""

    def observe(function: Callable, inputs: Inputs) -> Any:
        result = call(function, inputs)
        return result.get(key) if isinstance(result, Mapping) else result[key]

    return observe


def near(
    key: str,
    known: Callable[[Inputs], Sequence[float]],
    margin: Callable[[float], float],
) -> Callable[[Callable, Inputs], Any]:
    """Observe a measured number: the first known one that it is near enough to.

    Known are the right one and what plausible mistakes lead to, given the inputs; what
    is near none of them, or no number, is observed as it is.
    """

    def observe(function: Callable, inputs: Inputs) -> Any:
        value = entry(key)(function, inputs)
        try:
            found = as_tensor(value)
            number = found.double().item()
        except (TypeError, ValueError, RuntimeError):  # not one number
            return value
        if found.dtype == torch.bool:  # yes or no
            return value
        for goal in known(inputs):
            if abs(number - goal) < margin(goal):
                return goal
        return value

    return observe


def words(key: str) -> Callable[[Callable, Inputs], Any]:
    """Observe whether an entry is a written answer; what it says is not judged.

    Three words can be a reason. Chinese has no spaces between words, and three bytes
    for most characters: twenty bytes will do as well.
    """

    def observe(function: Callable, inputs: Inputs) -> Any:
        text = entry(key)(function, inputs)
        if not isinstance(text, str):
            return text
        text = text.strip()
        count = len(text.split())
        if count >= 3 or len(text.encode()) >= 20:
            return "three words or more"
        return {0: "", 1: "1 word", 2: "2 words"}[count]

    return observe


@dataclass(frozen=True)
class Property:
    """What an answer must share with the reference.

    Attributes
    ----------
    name, claim
        A word to find it by, and the sentence that a learner reads.
    question
        Asked when the property fails and neither a known wrong answer nor the kind
        of failure (an error, a list, nan) explains why.
    draw
        Inputs on which little else shows; the exercise's own by default.
    observe
        What to look at, given a function and its inputs; the result by default.
    axes
        Names of the axes of what is observed; those of the result by default.
    compared
        What is observed, in words, where it is not what a function returns.
    on_error
        Asked if the learner's own code raises here and ran on the inputs before.
    """

    name: str
    claim: str
    question: str
    draw: Callable[[Draw], Inputs] | None = None
    observe: Callable[[Callable, Inputs], Any] = call
    axes: str | None = None
    compared: str = ""
    on_error: str = ""


def reason(question: str) -> Property:
    """Ask for a sentence under ``why``; a program can only see that there is one."""
    return Property(
        "why",
        "a reason is there; no program judges it",
        question,
        observe=words("why"),
    )


@dataclass(frozen=True)
class Wrong:
    """A plausible wrong answer.

    Attributes
    ----------
    misconception
        The belief behind it.
    fails
        Name of the first property that it fails.
    answer
        A function of the exercise's inputs, like the reference.
    question
        What to ask a learner whose answer gives the same, or raises the same error:
        it must be true of any such answer, however it was written.
    """

    misconception: str
    fails: str
    answer: Callable
    question: str


@dataclass(frozen=True)
class Slip:
    """The reference with some of its text replaced: a misconception as code."""

    function: Callable
    edits: tuple[tuple[str, str], ...]

    @cached_property
    def source(self) -> str:
        """The changed text; each replaced piece must occur exactly once."""
        text = source(self.function)
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(
                    f"{old!r} occurs {text.count(old)} times in "
                    f"{self.function.__name__}; a slip replaces one place"
                )
            text = text.replace(old, new)
        return text

    @cached_property
    def _changed(self) -> Callable:
        namespace = dict(inspect.unwrap(self.function).__globals__)
        exec(self.source, namespace)
        return namespace[self.function.__name__]

    def __call__(self, *inputs: Any) -> Any:
        """Run the changed function."""
        return self._changed(*inputs)


def slip(function: Callable, *edits: str) -> Slip:
    """Replace text in a function: ``slip(f, old, new)``, or several such pairs."""
    return Slip(function, tuple(zip(edits[::2], edits[1::2], strict=True)))


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise of the book.

    Attributes
    ----------
    id, title
        ``"07-mha"``, and what to call it.
    kind
        ``predict`` and ``measure`` are answered with a dict of values, ``find the
        bug`` and ``write`` with a function.
    level, minutes, points
        How hard (1 to 3), how long, and what it counts.
    reference
        The worked solution: a function of the inputs that returns the right answer.
    draw
        Inputs for one seed, in the order of the reference's parameters.
    axes
        Axis names of each tensor among the inputs, and of the result ("returns").
    properties
        From coarse to fine: a known slip should show in one before it shows in all.
    hints, explanation
        What helps before an answer, and what to say after one.
    wrong, right
        Answers that must fail, and other ways to write one that passes.
    given
        The code that a *find the bug* starts from.
    decisive
        Names of the inputs that a dict of values depends on, if not on all of them.
    """

    id: str
    title: str
    kind: str
    level: int
    minutes: int
    points: int
    reference: Callable
    draw: Callable[[Draw], Inputs]
    axes: dict[str, str]
    properties: Sequence[Property]
    hints: Sequence[str]
    explanation: str
    wrong: Sequence[Wrong]
    right: Sequence[Callable]
    given: Slip | None = None
    decisive: Sequence[str] = ()

    @property
    def wants_function(self) -> bool:
        """Whether the answer is a function; else it is a dict of values."""
        return self.kind in ("find the bug", "write")

    def inputs(self, seed: Seed, prop: Property | None = None) -> Inputs:
        """Draw inputs: for each property anew if the answer is a function.

        Values are asked for of another case than the public one, which is published.
        """
        if self.wants_function and prop is not None:
            return (prop.draw or self.draw)(Draw(seed, self.id, prop.name))
        draw = Draw(seed, self.id)
        inputs = self.draw(draw)
        while not self.wants_function and seed is not None and self._is_public(inputs):
            inputs = self.draw(draw)
        return inputs

    def _is_public(self, inputs: Inputs) -> bool:
        public = self.draw(Draw(None, self.id))
        return all(inputs[name] == public[name] for name in self.decisive or inputs)

    def as_answer(self, function: Callable, seed: Seed = None) -> Any:
        """Turn a function like the reference into what a learner would hand in."""
        if self.wants_function:
            return function
        with neutral():
            return function(*self.inputs(seed).values())

    def remarks(self) -> list[str]:
        """Return what to say beside the reference: its values, the explanation."""
        if self.wants_function:
            return [self.explanation]
        values = self.as_answer(self.reference)
        lines = [f"- `{name}`: {value}" for name, value in values.items()]
        return [f"For `{self.setting()}`:", "\n".join(lines), self.explanation]

    def setting(self, seed: Seed = None) -> str:
        """Return what a dict of values is asked for: ``batch=3, n=5``."""
        pairs = self.inputs(seed).items()
        return ", ".join(f"{name}={value}" for name, value in pairs)


def source(function: Callable) -> str:
    """Return the text of a function, flush left."""
    return textwrap.dedent(inspect.getsource(function))
