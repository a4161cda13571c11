"""What came of a check, and how it reads."""

from dataclasses import dataclass
from typing import NamedTuple

FORM = "form"  # the name of the outcome of what cannot be tried at all


class Failure(NamedTuple):
    """Why a property does not hold; ``notes`` are labelled lines to show besides.

    ``compared`` says what the two numbers are, where the answer did not return them.
    """

    expected: str
    got: str
    question: str = ""
    notes: tuple[tuple[str, str], ...] = ()
    compared: str = ""

    def __str__(self) -> str:
        details = (
            ("compared", self.compared),
            ("expected", self.expected),
            ("got", self.got),
            *self.notes,
            ("question", self.question),
        )
        return "\n".join(
            f"    {label:<9} " + text.replace("\n", "\n" + " " * 14)
            for label, text in details
            if text
        )


class Outcome(NamedTuple):
    """One property, tried on one input of the sizes ``used``.

    It holds, or it has a failure, or there is nothing filled in to try it on.
    """

    name: str
    claim: str
    used: str
    failure: Failure | None
    filled_in: bool = True

    @property
    def holds(self) -> bool:
        """Whether the property was tried and found to hold."""
        return self.filled_in and self.failure is None

    def __str__(self) -> str:
        if not self.filled_in:
            return f"· {self.name}: not filled in"
        mark = "✗" if self.failure else "✓"
        return f"{mark} {self.name}: {self.claim}{_bracketed(self.used)}"


@dataclass(frozen=True, repr=False)
class Report:
    """What came of one check.

    ``check`` prints it; a notebook does not display it again. ``print(report)`` does.

    Attributes
    ----------
    id, points
        The exercise, and what it counts.
    outcomes
        One for each property tried; none if there was nothing to try.
    not_attempted
        Why there was nothing to try; empty if there was.
    setting
        The sizes that a dict of values answers for.
    seed
        What drew the inputs; None is the public seed.
    unknown
        Keys of a dict of values that are not asked for.
    """

    id: str
    points: int
    outcomes: tuple[Outcome, ...] = ()
    not_attempted: str = ""
    setting: str = ""
    seed: int | str | None = None
    unknown: tuple[str, ...] = ()

    @property
    def attempted(self) -> bool:
        """Whether there was something to try: what has not the form is no attempt."""
        return any(o.filled_in and o.name != FORM for o in self.outcomes)

    @property
    def held(self) -> int:
        """How many properties hold."""
        return sum(outcome.holds for outcome in self.outcomes)

    @property
    def share(self) -> float:
        """The share of the properties that hold, 0 to 1."""
        return self.held / len(self.outcomes) if self.outcomes else 0.0

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.share == 1

    @property
    def score(self) -> float:
        """The points earned: half of them by the share that holds, half if all do.

        So an answer that misses the one thing an exercise is about gets less than half.
        """
        return round(self.points * (self.share + self.passed) / 2, 2)

    @property
    def first_failure(self) -> Outcome | None:
        """The first property that was tried and does not hold."""
        return next((o for o in self.outcomes if o.failure), None)

    def __str__(self) -> str:
        if self.not_attempted:
            return f"{self.id}: not attempted yet. {self.not_attempted}"
        first = self.first_failure
        drawn = "" if self.seed is None else f"seed={self.seed!r}"
        used = ", ".join(filter(None, (self.setting, drawn)))
        lines = [self.id + _bracketed(used)]
        for outcome in self.outcomes:
            lines.append(str(outcome))
            if outcome is first:
                lines.append(str(outcome.failure))
        if self.unknown and not all(outcome.filled_in for outcome in self.outcomes):
            lines.append(f"? {', '.join(self.unknown)}: no entry of this exercise")
        lines.append(self._result())
        return "\n".join(lines)

    def __repr__(self) -> str:
        state = "not attempted" if self.not_attempted else self._points()
        return f"<Report {self.id}: {state}>"

    def _result(self) -> str:
        result = f"{self.held} of {len(self.outcomes)} properties hold"
        if self.passed:
            return f"{result}: passed, {self._points()}."
        rule = "Half of the points go by that share, the rest need all of them"
        return f"{result}. {rule}: {self._points()}."

    def _points(self) -> str:
        return f"{self.score:g} of {self.points} points"

    def _ipython_display_(self) -> None:
        """Display nothing: ``check`` has printed the report already."""


def _bracketed(text: str) -> str:
    return f" ({text})" if text else ""
