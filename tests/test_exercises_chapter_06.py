"""Chapter 06's own: what its notebook prints, and draws that give nothing away."""

import pytest
import torch

from exercise_notebook import cells, printed_by
from mha_teach.exercises import chapter_06, evaluate

BANK = {exercise.id: exercise for exercise in chapter_06.EXERCISES}


def test_as_given_one_sentence_hides_the_bug():
    lines = printed_by(cells("06", "code"))
    assert [line for line in lines if "same" in line] == [
        "one sentence, same shape:  True",
        "one sentence, same output: True",
        "two sentences, same shape:  True",
        "two sentences, same output: False",
    ]


def test_a_mended_bug_passes_the_test_of_the_notebook():
    code = cells("06", "code")
    (test,) = (cell for cell in code if cell.startswith("x = torch.randn"))
    lines = printed_by([test], torch=torch, several=chapter_06.several)
    assert "\n".join(lines).count("True") == 4


@pytest.mark.parametrize("seed", range(20))
def test_no_wrong_rule_sends_the_number_to_the_right_place_by_chance(seed):
    exercise = BANK["06-predict"]
    answer = exercise.as_answer(exercise.reference, seed)
    for wrong in exercise.wrong:
        assert (
            exercise.as_answer(wrong.answer, seed)[wrong.fails] != (answer[wrong.fails])
        )
    sizes = list(exercise.inputs(seed).values())
    assert len(set(sizes)) == len(sizes)
    for name in ("index", "reshaped"):  # else two axes in the wrong order would pass
        assert len(set(answer[name])) == 4


def test_who_notices_is_no_accident():
    """Under the scale of the statement no random start makes a softmax stand still."""
    for d_model, h in ((24, 4), (35, 5), (40, 5)):
        for seed in range(100):
            torch.manual_seed(seed)
            found = chapter_06.noticed(d_model, h)
            assert list(found.values())[:3] == [h, 1, d_model]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_code_as_given_is_right_for_one_sentence_and_for_one_head(seed):
    exercise = BANK["06-bug"]
    alone, together = exercise.properties[1:]
    for inputs in (
        exercise.inputs(seed, alone),
        exercise.inputs(seed, together) | {"h": 1},
    ):
        found = exercise.given(*inputs.values())
        torch.testing.assert_close(found, exercise.reference(*inputs.values()))
    inputs = exercise.inputs(seed, together)
    assert len(inputs["x"]) > 1
    found = exercise.given(*inputs.values())
    assert (found - exercise.reference(*inputs.values())).abs().max() > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_a_view_that_guesses_would_recut_the_tokens_of_the_last_property(seed):
    (prop,) = (p for p in BANK["06-split"].properties if p.name == "refuses")
    x, h = BANK["06-split"].inputs(seed, prop).values()
    assert x.shape[-1] % h
    recut = x.view(len(x), -1, h, x.shape[-1] // h)
    assert recut.shape[1] == x.shape[1] + 1
    assert prop.observe(lambda x, h: recut, {"x": x, "h": h}) == (
        f"{x.shape[-1]} columns, h={h}: a result of shape {tuple(recut.shape)}"
    )


@pytest.mark.parametrize("said", [None, False, "an error", ValueError()])
def test_what_is_returned_in_place_of_an_error_raises_none(said):
    def split(x, h):
        return said if x.shape[-1] % h else chapter_06.split(x, h)

    failure = evaluate(BANK["06-split"], split).first_failure.failure
    assert failure.got == "7 columns, h=3: no tensor, and no error"
    assert failure.question.endswith("Which statement raises an error?")


ERRORS = [ValueError, SystemExit, GeneratorExit, BaseException]


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_of_any_kind_is_a_refusal(error):
    def split(x, h):
        if x.shape[-1] % h:
            raise error("h does not divide")
        return chapter_06.split(x, h)

    report = evaluate(BANK["06-split"], split)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("name", "axis", "told"),
    [
        ("06-split", 0, "one sentence: "),
        ("06-split", 1, "one head: "),
        ("06-split", 2, "one token: "),
        ("06-split", 3, "one number in a head: "),
        ("06-merge", 0, "one sentence: "),
        ("06-merge", 1, "one token: "),
        ("06-merge", 2, "one of each: "),
    ],
)
def test_an_axis_of_length_one_stays(name, axis, told):
    exercise = BANK[name]
    squeezed = {
        "06-split": lambda x, h: exercise.reference(x, h).squeeze(axis),
        "06-merge": lambda x: exercise.reference(x).squeeze(axis),
    }
    report = evaluate(exercise, squeezed[name])
    assert report.first_failure.name == "one"
    assert report.first_failure.failure.got.startswith(told)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", ["06-split", "06-merge"])
def test_an_error_with_one_of_something_is_named(name, error):
    exercise = BANK[name]

    def picky(*inputs):
        if 1 in inputs[0].shape[1:]:
            raise error("too short")
        return exercise.reference(*inputs)

    (prop,) = (p for p in exercise.properties if p.name == "one")
    observed = prop.observe(picky, exercise.inputs(None, prop))
    assert observed.endswith(f": {error.__name__}")


@pytest.mark.parametrize("name", ["06-split", "06-merge"])
def test_an_interrupt_with_one_of_something_passes_through(name):
    exercise = BANK[name]

    def interrupted(*inputs):
        if 1 in inputs[0].shape[1:]:
            raise KeyboardInterrupt
        return exercise.reference(*inputs)

    with pytest.raises(KeyboardInterrupt):
        evaluate(exercise, interrupted)
