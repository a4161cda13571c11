"""Print how the checks of the exercises hold up against wrong and right answers.

One row for each wrong answer: the misconception behind it, the property that rejects
it, and what the learner is asked. Exits with 1 if a wrong answer passes or is rejected
by another property than its own, or if a right answer fails.

    python tools/wrong_answers.py
"""

import sys

from mha_teach.exercises import EXERCISES, evaluate
from mha_teach.exercises.bank import Exercise


def rows(exercise: Exercise) -> list[tuple[bool, str, str, str]]:
    """Return (as it should be, answer, verdict, question asked) for each answer."""
    table = []
    for wrong in exercise.wrong:
        found = evaluate(exercise, exercise.as_answer(wrong.answer)).first_failure
        name = found.name if found else "not rejected"
        question = found.failure.question if found else ""
        table.append((name == wrong.fails, wrong.misconception, name, question))
    for right in (exercise.reference, *exercise.right):
        passed = evaluate(exercise, exercise.as_answer(right)).passed
        name = f"`{right.__name__.lstrip('_')}`"
        table.append((passed, name, "accepted" if passed else "rejected", ""))
    return table


def main() -> int:
    print("| exercise | answer | verdict, or the property that rejects it | question |")
    print("|---|---|---|---|")
    failures = 0
    for exercise in EXERCISES.values():
        for is_right, answer, verdict, question in rows(exercise):
            mark = "" if is_right else "**WRONG** "
            print(f"| {exercise.id} | {answer} | {mark}{verdict} | {question} |")
            failures += not is_right
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
