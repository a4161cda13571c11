"""Chapter 04's own: a list in place of a tensor, and padding that asks."""

import pytest
import torch

from mha_teach.exercises import chapter_04, evaluate

BANK = {exercise.id: exercise for exercise in chapter_04.EXERCISES}


def the_line_of_the_chapter(lengths, n_k):
    place = torch.arange(n_k)
    return (place < lengths[:, None])[:, None, None, :]


def without_the_new_axis(lengths, n_k):
    return torch.arange(n_k) < lengths


def without_a_tensor(lengths, n_k):
    return torch.arange(n_k) < lengths.view(-1, 1, 1, 1)


@pytest.mark.parametrize(
    "answer", [the_line_of_the_chapter, without_the_new_axis, without_a_tensor]
)
def test_lengths_that_are_still_a_list_are_asked_about(answer):
    failure = evaluate(BANK["04-padding"], answer).first_failure.failure
    assert failure.question == (
        "There is a list on this line where a tensor is needed. Which call makes a "
        "tensor of it?"
    )


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_padding_looks_at_real_tokens_as_the_statement_says(seed):
    """Its answers are the mean of real values when all scores are the same."""
    exercise = BANK["04-bug"]
    (prop,) = (p for p in exercise.properties if p.name == "queries")
    inputs = exercise.inputs(seed, prop)
    inputs["q"].zero_()
    real = inputs["lengths"].item()
    found = exercise.reference(*inputs.values())
    expected = inputs["v"][:, :real].mean(dim=1, keepdim=True).expand_as(found)
    torch.testing.assert_close(found, expected)
    assert real < found.shape[1]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_same_verdict_on_every_head_earns_next_to_nothing(seed):
    for verdict, held in ((True, 1), (False, 0)):
        report = evaluate(BANK["04-leak"], lambda attend, n, v=verdict: v, seed)
        assert report.held == held


def test_a_head_to_be_tested_does_not_tell_which_it_is():
    seen = []

    def ask(attend, n):
        seen.append((attend.__name__, type(attend), hasattr(attend, "mask")))
        return True

    evaluate(BANK["04-leak"], ask)
    assert len(seen) > 50
    assert all(each == seen[0] for each in seen)


@pytest.mark.parametrize(
    ("verdict", "got"),
    [
        ("yes", "'yes', of type str"),
        (1, "1, of type int"),
        (torch.ones(2) > 0, "a tensor of shape (2,)"),
    ],
)
def test_what_is_neither_yes_nor_no_is_shown_as_it_is(verdict, got):
    report = evaluate(BANK["04-leak"], lambda attend, n: verdict)
    assert report.held == 0
    assert report.first_failure.failure.got == got
