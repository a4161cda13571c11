"""Exercises with instant answers: ``check``, ``hint``, ``solution``, ``progress``.

Open ``chapter_07.py`` to see what an exercise is made of, ``bank.py`` for the words it
is written in.
"""

import reprlib
from difflib import get_close_matches
from typing import Any

from mha_teach.exercises import (
    _progress,
    chapter_01,
    chapter_02,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_08,
    chapter_09,
)
from mha_teach.exercises._report import Report
from mha_teach.exercises._trial import evaluate
from mha_teach.exercises.bank import Exercise, Seed, source

__all__ = ["EXERCISES", "check", "evaluate", "hint", "progress", "solution"]

EXERCISES: dict[str, Exercise] = {
    exercise.id: exercise
    for chapter in (
        chapter_01,
        chapter_02,
        chapter_03,
        chapter_04,
        chapter_05,
        chapter_06,
        chapter_07,
        chapter_08,
        chapter_09,
    )
    for exercise in chapter.EXERCISES
}

_hints_given: dict[str, int] = {}
_passed_last: dict[str, bool] = {}


def check(id: str, answer: Any = None, seed: Seed = None) -> Report:
    """Try an answer, and print one line for each property of a right one.

    Parameters
    ----------
    id
        The exercise, for example ``"07-mha"``.
    answer
        A function, or a dict of values, as the statement says. None is no attempt.
    seed
        Draws the inputs: an int or a str. None is the public seed, the same for all,
        and the only one whose results are kept: others are for more practice, or for
        a teacher. The report shows them.

    Returns
    -------
    Report
        With ``passed`` and ``score``.

    Raises
    ------
    TypeError, ValueError
        If the id is no string, there is no such exercise, or the seed is no seed.
        Nothing that the answer does is raised, except KeyboardInterrupt.

    Notes
    -----
    Points are for practice and make no grade: an answer runs beside the reference and
    could look it up.
    """
    exercise = _find(id)
    report = evaluate(exercise, answer, seed)
    if report.attempted and seed is None:
        _progress.record(id, report.share)
        _passed_last[id] = report.passed
    print(report)
    return report


def hint(id: str) -> None:
    """Print the next hint; after the last one, the first again.

    An exercise that is passed needs none, until a check of it fails again.
    """
    hints = _find(id).hints
    if _passed_last.get(id, _progress.best().get(id) == 1):
        print(
            f"You have passed {id}: there is nothing left to hint at. "
            f"solution({id!r}) shows a worked solution to compare with yours."
        )
        return
    given = _hints_given.get(id, 0) % len(hints)
    _hints_given[id] = given + 1
    print(f"Hint {given + 1} of {len(hints)}: {hints[given]}")


def solution(id: str) -> None:
    """Print a worked solution, once the exercise has been attempted."""
    exercise = _find(id)
    if id not in _progress.best():
        print(
            f"The solution of {id} opens after an attempt: check({id!r}, your_answer). "
            f"Until then, hint({id!r}) helps."
        )
        return
    print(f"{id} · {exercise.title}\n")
    print(source(exercise.reference))
    print("\n\n".join(exercise.remarks()))


def progress() -> None:
    """Print what has been passed and tried, and where that is kept."""
    best = _progress.best()
    for exercise in EXERCISES.values():
        share = best.get(exercise.id)
        mark = "✓" if share == 1 else " "
        state = (
            f"  {share:.0%} of the properties hold" if share not in (None, 1) else ""
        )
        level = "●" * exercise.level
        print(
            f"{mark} {exercise.id:<12} {level:<3} {exercise.minutes:>2} min  "
            f"{exercise.title}{state}"
        )
    if _progress.is_kept():
        print(f"Kept in {_progress.path()}, on this machine only.")
    else:
        print(
            f"{_progress.path()} cannot be written: kept for this session only. "
            "Set MHA_TEACH_PROGRESS to another file before you start Jupyter."
        )
    for file in _progress.damaged_files():
        print(f"Some lines could not be read; the old file is kept as {file}.")


def _find(id: str) -> Exercise:
    if not isinstance(id, str):
        raise TypeError(
            f"the exercise id comes first and is a string, got {reprlib.repr(id)}; "
            'write check("07-mha", mha)'
        )
    if id not in EXERCISES:
        text = id.lower()
        nearest = get_close_matches(text, EXERCISES, n=2, cutoff=0.6)
        if len(text) > 1:  # such as "04"
            nearest = [i for i in EXERCISES if i.startswith(text)] or nearest
        guess = f"did you mean {' or '.join(map(repr, nearest))}? " if nearest else ""
        raise ValueError(
            f"there is no exercise {id!r}; {guess}progress() lists them all"
        )
    return EXERCISES[id]
