"""Chapter 02's own: numbers as they are measured."""

import pytest

from exercise_notebook import observed
from mha_teach.exercises import chapter_02

BANK = {exercise.id: exercise for exercise in chapter_02.EXERCISES}
SPREAD = BANK["02-spread"]


@pytest.mark.parametrize("name", ["variance", "spread", "divisor", "doubled"])
def test_a_measured_number_may_be_off_by_chance_and_no_more(name):
    inputs = SPREAD.inputs(None)
    exact = chapter_02.right.start_by_formula(**inputs)[name]
    for near in (0.92, 1.08):
        assert observed(SPREAD, name, exact * near) == pytest.approx(exact)
    assert observed(SPREAD, name, exact * 0.85) == exact * 0.85


@pytest.mark.parametrize("value", [None, "a third", [1.0, 2.0]])
def test_what_is_no_number_is_handed_on_as_it_is(value):
    assert observed(SPREAD, "variance", value) is value
