"""Try an answer against the properties of its exercise.

Nothing that the learner's code does raises from here: an error in it is an outcome
like any other. Only KeyboardInterrupt passes through.
"""

import copy
import functools
import inspect
import io
import linecache
import reprlib
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mha_teach.exercises._compare import (
    Difference,
    difference,
    is_unchanged,
    named_sizes,
    says_little,
)
from mha_teach.exercises._questions import (
    about_backward,
    about_error,
    about_precision,
    about_result,
    about_value,
)
from mha_teach.exercises._report import FORM, Failure, Outcome, Report
from mha_teach.exercises._settings import Interrupts, kept, neutral
from mha_teach.exercises.bank import Exercise, Inputs, Property, Seed, call

MAX_DEPTH = 9  # of lists in lists, one of which may contain itself
PRINTED_LINES = 5
LINE_LENGTH = 200


def evaluate(exercise: Exercise, answer: Any, seed: Seed = None) -> Report:
    """Try every property of an exercise on an answer.

    Points are for practice and make no grade: an answer runs in the same process as
    the reference and could look it up. There is no time limit either.
    """
    if not isinstance(seed, int | str | None):
        raise TypeError(
            f"seed must be None, an int or a str, got {reprlib.repr(seed)}; "
            "None is the public seed"
        )
    with Interrupts() as interrupts:
        # Not for each call: Python would show a warning again after each restoring.
        return interrupts.within(
            neutral(), _evaluated, exercise, answer, seed, interrupts
        )


def _evaluated(
    exercise: Exercise, answer: Any, seed: Seed, interrupts: Interrupts
) -> Report:
    trial = _Trial(exercise, answer, seed, interrupts)
    try:
        not_attempted = trial.why_not_attempted()
        outcomes = () if not_attempted else trial.outcomes()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        not_attempted, outcomes = "", (_form(_unreadable(error)),)
    return Report(
        exercise.id,
        exercise.points,
        outcomes,
        not_attempted,
        setting="" if exercise.wants_function else exercise.setting(seed),
        seed=seed,
        unknown=_unknown_keys(exercise, answer),
    )


def _unknown_keys(exercise: Exercise, answer: Any) -> tuple[str, ...]:
    if exercise.wants_function or not issubclass(type(answer), dict):
        return ()
    names = [prop.name for prop in exercise.properties]
    keys = [key for key in dict.keys(answer) if type(key) is str]
    return tuple(_cut(key) for key in keys if key not in names)


class _Raised(NamedTuple):
    """Observed instead of a result."""

    error: BaseException

    def is_like(self, other: Any) -> bool:
        """Return whether the other raised the same, about the same sizes."""
        return isinstance(other, _Raised) and repr(self.error) == repr(other.error)


_NOTHING = object()  # in place of a result, when a call has raised


class _Trial:
    """One answer to one exercise: what it returned and printed last, and overwrote."""

    def __init__(
        self, exercise: Exercise, answer: Any, seed: Seed, interrupts: Interrupts
    ):
        self.exercise, self.answer, self.seed = exercise, answer, seed
        self.interrupts = interrupts
        self.input_names = list(exercise.inputs(seed))
        self.values: dict[Callable, Any] = {}
        self.called_with: tuple[Any, ...] = ()
        self.returned: Any = _NOTHING
        self.printed = ""
        self.overwritten: set[str] = set()

    @functools.cached_property
    def named_only(self) -> list[str]:
        """Names of the inputs that the answer, after a ``*``, takes by name alone."""
        try:
            taken = inspect.signature(self.answer).parameters
        except ValueError:  # some built-in functions have none
            return []
        return [
            name
            for name in self.input_names
            if name in taken and taken[name].kind is inspect.Parameter.KEYWORD_ONLY
        ]

    def why_not_attempted(self) -> str:
        """Return the reason, or nothing if there is an answer to try."""
        if _is_empty(self.answer):
            handing_in = f'check("{self.exercise.id}", your_answer)'
            return f"Fill in your answer, then hand it in: {handing_in}."
        if not self.exercise.wants_function or self._misfit():
            return ""
        name = _name(self.answer)
        first = self._run(call, self.exercise.inputs(self.seed))
        if isinstance(first, _Raised):
            if ": raise NotImplementedError" in _own_line(first.error, self.answer):
                return f"{name} raises NotImplementedError."
        elif _is_empty(first) and self._returns_nothing_ever():
            return f"{name} returns {first}. If you have written it, add a return."
        if self._is_as_given():
            return f"{name} still gives the numbers of the code as given."
        return ""

    def _returns_nothing_ever(self) -> bool:
        tried = (self.exercise.inputs(self.seed, p) for p in self.exercise.properties)
        return all(_is_empty(self._run(call, inputs)) for inputs in tried)

    def outcomes(self) -> tuple[Outcome, ...]:
        """Try the properties in order."""
        misfit = self._misfit()
        if misfit:
            return (_form(misfit),)
        tried = tuple(map(self._outcome, self.exercise.properties))
        return (*tried, self._overwriting()) if self.overwritten else tried

    def _misfit(self) -> Failure | None:
        """Say why an answer cannot be tried at all."""
        if not self.exercise.wants_function:
            if isinstance(self.answer, Mapping):
                return None
            got = f"{type(self.answer).__name__}: {self.answer!r:.40}"
            return Failure("a dict with the entries of the statement", got)
        wanted = f"a function of ({', '.join(self.input_names)})"
        if not callable(self.answer):
            question = "Did you call it? Pass the function itself, without brackets."
            return Failure(wanted, type(self.answer).__name__, question)
        try:
            signature = inspect.signature(self.answer)
        except ValueError:  # some built-in functions have none
            return None
        by_name = dict.fromkeys(self.named_only)
        by_place = [name for name in self.input_names if name not in by_name]
        try:
            signature.bind(*by_place, **by_name)
        except TypeError:
            return Failure(wanted, f"{_name(self.answer)}{signature}")
        return None

    def _outcome(self, prop: Property) -> Outcome:
        inputs = self.exercise.inputs(self.seed, prop)
        observed = self._run(prop.observe, inputs)
        if not self.exercise.wants_function and _is_empty(observed):
            return Outcome(prop.name, prop.claim, "", None, filled_in=False)
        try:
            failure = self._failure(observed, prop, inputs)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failure = _unreadable(error)
        is_drawn_anew = self.exercise.wants_function
        used = _sizes(inputs, self.exercise.axes) if is_drawn_anew else ""
        return Outcome(prop.name, prop.claim, used, failure)

    def _failure(self, observed: Any, prop: Property, inputs: Inputs) -> Failure | None:
        if not isinstance(observed, _Raised):
            return self._mismatch(observed, prop)
        if self.exercise.wants_function:
            return self._failure_by(observed, prop, inputs)
        return _unreadable(observed.error)

    def _failure_by(self, raised: _Raised, prop: Property, inputs: Inputs) -> Failure:
        error, line = raised.error, _own_line(raised.error, self.answer)
        notes = (
            ("line", line),
            ("called", _call_text(self.answer, inputs, self.exercise.axes)),
            ("printed", self.printed),
        )
        reason = str(error).partition("\n")[0]
        got = f"{type(error).__name__}: {_cut(reason)}"
        if line or self.returned is _NOTHING:
            by_kind = prop.on_error or about_error(error)
        else:
            by_kind = about_backward(error) or self._about_returned() or prop.question
        question = self._known_slip(raised, prop) or by_kind
        return Failure("a result", got, question, notes)

    def _mismatch(self, observed: Any, prop: Property) -> Failure | None:
        try:
            expected = self._observed_by(self.exercise.reference, prop)
        except Exception as error:
            return _not_to_blame(error)
        found = self._difference(expected, observed, prop)
        if found is None:
            return None
        if self.exercise.wants_function:
            by_kind = self._about_returned()
        else:
            by_kind = about_value(expected, observed)
        if not self.exercise.wants_function and not isinstance(expected, str):
            handed_in = self.answer.get(prop.name)  # not rounded, nor taken to a goal
            found = self._difference(expected, handed_in, prop) or found
        notes = (("printed", self.printed),)
        by_kind = self._about_precision(expected, observed) or by_kind
        question = self._known_slip(observed, prop) or by_kind or prop.question
        return Failure(*found, question, notes, prop.compared)

    def _about_precision(self, expected: Any, observed: Any) -> str:
        """Ask about what was observed, or else about what was returned for it."""
        by_observed = about_precision(expected, observed)
        if by_observed or "returns" not in self.exercise.axes:
            return by_observed
        try:
            return about_precision(
                self.exercise.reference(*self.called_with), self.returned
            )
        except Exception:  # these inputs should be refused
            return ""

    def _about_returned(self) -> str:
        is_tensor_wanted = "returns" in self.exercise.axes
        return about_result(self.returned) if is_tensor_wanted else ""

    def _known_slip(self, observed: Any, prop: Property) -> str:
        """Return the question for the wrong answer that gives the same, if any.

        Of several, the one that gives the same in most of the other properties too.
        Where there is little to see, it must do so in all of them.
        """
        alike = [
            wrong
            for wrong in self.exercise.wrong
            if wrong.fails == prop.name and self._equals(wrong.answer, observed, prop)
        ]
        if self.exercise.wants_function and says_little(observed):
            everywhere = len(self.exercise.properties)
            alike = [w for w in alike if self._agreement(w.answer) == everywhere]
        if len(alike) > 1:
            alike.sort(key=lambda wrong: self._agreement(wrong.answer), reverse=True)
        return alike[0].question if alike else ""

    def _agreement(self, function: Callable) -> int:
        """Count the properties in which the answer gives the same as a function."""
        return sum(
            self._equals(function, self._observed(prop), prop)
            for prop in self.exercise.properties
        )

    def _overwriting(self) -> Outcome:
        names = " and ".join(sorted(self.overwritten))
        failure = Failure(
            f"{names} as before the call",
            f"{names} overwritten",
            "Which line changes what was passed in, in place of a copy?",
        )
        return Outcome("inputs", "what is passed in is left alone", "", failure)

    def _is_as_given(self) -> bool:
        given = self.exercise.given
        return given is not None and all(
            self._equals(given, self._observed(prop), prop)
            for prop in self.exercise.properties
        )

    def _equals(self, function: Callable, observed: Any, prop: Property) -> bool:
        """Compare what was observed with another function, which may raise."""
        try:
            expected = self._observed_by(function, prop)
        except Exception as error:
            return _Raised(error).is_like(observed)
        return self._difference(expected, observed, prop) is None

    def _difference(
        self, expected: Any, observed: Any, prop: Property
    ) -> Difference | None:
        axes = self.exercise.axes.get("returns", "") if prop.axes is None else prop.axes
        return difference(expected, observed, axes, reveal=self.exercise.wants_function)

    def _observed_by(self, function: Callable, prop: Property) -> Any:
        torch.default_generator.manual_seed(0)
        inputs = self.exercise.inputs(self.seed, prop)
        if self.exercise.wants_function:
            return prop.observe(function, inputs)
        if function not in self.values:  # the same dict for every property
            self.values[function] = function(*inputs.values())
        return prop.observe(lambda *_: self.values[function], inputs)

    def _observed(self, prop: Property) -> Any:
        return self._run(prop.observe, self.exercise.inputs(self.seed, prop))

    def _run(self, observe: Callable, inputs: Inputs) -> Any:
        """Observe the answer: what it returns, or what it raises."""
        torch.default_generator.manual_seed(0)
        printed = io.StringIO()
        try:
            return self.interrupts.within(
                redirect_stdout(printed), observe, self._answer_on_copies, inputs
            )
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return _Raised(error)
        finally:
            lines = printed.getvalue().splitlines()
            more = ["…"] if len(lines) > PRINTED_LINES else []
            self.printed = "\n".join([*map(_cut, lines[:PRINTED_LINES]), *more])

    def _answer_on_copies(self, *inputs: Any) -> Any:
        if not self.exercise.wants_function:
            return self.answer
        copies = copy.deepcopy(inputs)
        named = dict(zip(self.input_names, copies, strict=True))
        by_name = {name: named.pop(name) for name in self.named_only}
        try:
            self.called_with, self.returned = inputs, _NOTHING
            self.returned = self.interrupts.within(
                kept(), functools.partial(self.answer, *named.values(), **by_name)
            )
            return self.returned
        finally:
            for name, before, after in zip(
                self.input_names, inputs, copies, strict=True
            ):
                if isinstance(before, Tensor | list) and not is_unchanged(
                    before, after
                ):
                    self.overwritten.add(name)


def _cut(line: str) -> str:
    return line if len(line) <= LINE_LENGTH else line[:LINE_LENGTH] + "…"


def _form(failure: Failure) -> Outcome:
    return Outcome(FORM, "the answer has the form asked for", "", failure)


def _unreadable(error: BaseException) -> Failure:
    """Say that an answer, or what it made, raised while it was looked at."""
    return Failure(
        "plain tensors, numbers, text or errors",
        f"something that raises {type(error).__name__} when looked at",
        "Which object of your own is in it? Hand in plain values instead.",
    )


def _not_to_blame(error: Exception) -> Failure:
    """Say that the reference raised, as it does where torch itself is changed."""
    return Failure(
        "a worked solution that runs",
        f"{type(error).__name__}: {_cut(str(error))}, in the solution itself",
        "Your answer is not to blame. Is a part of torch replaced? Restart the kernel.",
    )


def _is_empty(answer: Any, depth: int = MAX_DEPTH) -> bool:
    """Return whether there is nothing in an answer.

    What lies too deep, or raises when looked at, is something.
    """
    try:
        return _holds_nothing(answer, depth)
    except Exception:
        return False


def _holds_nothing(answer: Any, depth: int) -> bool:
    if answer is None or answer is ... or answer is NotImplemented:
        return True
    if isinstance(answer, str):
        return not answer.strip()
    if isinstance(answer, Mapping):
        answer = answer.values()
    elif not isinstance(answer, tuple | list):
        return False
    return depth > 0 and all(_is_empty(entry, depth - 1) for entry in answer)


def _sizes(inputs: Inputs, axes: dict[str, str]) -> str:
    """List every axis and every number among the inputs once: ``batch=2, n=5``."""
    sizes = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor):
            names = _last_axes(axes[name], value).split()
            sizes |= dict(zip(names, value.shape, strict=True))
        else:
            sizes[name] = value
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _call_text(answer: Callable, inputs: Inputs, axes: dict[str, str]) -> str:
    arguments = [
        f"{name} {named_sizes(value.shape, _last_axes(axes[name], value))}"
        if isinstance(value, Tensor)
        else f"{name}={value}"
        for name, value in inputs.items()
    ]
    return f"{_name(answer)}({', '.join(arguments)})"


def _last_axes(names: str, value: Tensor) -> str:
    """Return the names of a tensor's axes: it may come without the leading ones."""
    return " ".join(names.split()[-value.dim() :])


def _own_line(error: BaseException, answer: Callable) -> str:
    """Return the last line of the learner's own code that an error passed through."""
    namespace = getattr(_function(answer), "__globals__", None)
    own = [
        (frame.f_code, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_globals is namespace
    ]
    if not own:
        return ""
    code, number = own[-1]
    text = linecache.getline(code.co_filename, number).strip()
    return f"{number - code.co_firstlineno + 1} of {code.co_name}: {text}"


def _function(answer: Callable) -> Callable:
    """Return the function behind a partial, a decorated function or a module."""
    while isinstance(answer, functools.partial):
        answer = answer.func
    answer = inspect.unwrap(answer)
    if inspect.ismethod(answer) or inspect.isfunction(answer):
        return answer
    return getattr(answer, "forward", type(answer).__call__)


def _name(answer: Callable) -> str:
    return getattr(answer, "__name__", type(answer).__name__)
