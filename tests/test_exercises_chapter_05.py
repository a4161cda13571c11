"""Chapter 05's own: what its notebook prints, and limits that are those of a line."""

import pytest
import torch

from exercise_notebook import cells, observed, printed_by
from mha_teach.exercises import chapter_05, evaluate

BANK = {exercise.id: exercise for exercise in chapter_05.EXERCISES}
LINE = BANK["05-line"]


def test_as_given_two_heads_answer_as_one():
    lines = printed_by(cells("05", "code"))
    assert [line for line in lines if "same" in line or "differ" in line] == [
        *["same shape:  True", "same output: False"] * 2,
        "the two answers differ: False",
    ]


def test_once_mended_the_answer_changes_with_the_letters(tmp_path, monkeypatch):
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(tmp_path / "progress.jsonl"))
    code = [cell.replace(".mean(dim=0)", "") for cell in cells("05", "code")]
    lines = printed_by(code)
    assert [line for line in lines if "same" in line or "differ" in line] == [
        *["same shape:  True", "same output: True"] * 2,
        "the two answers differ: True",
    ]
    assert "6 of 6 properties hold: passed, 2 of 2 points." in lines


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_one_map_for_both_heads_is_no_attempt(seed):
    exercise = BANK["05-bug"]
    assert evaluate(exercise, exercise.given, seed).not_attempted


@pytest.mark.parametrize("seed", range(6))
def test_in_the_questions_asked_of_hand_set_heads_there_is_a_place_after_a(seed):
    places, letters = BANK["05-hand"].inputs(seed).values()
    tokens, pointers = chapter_05._questions(places, letters)
    a, b = pointers.T
    assert a.max() == places - 2
    assert b.unique().tolist() == list(range(places))
    assert (a != b).all()
    assert tokens.unique().tolist() == list(range(letters))


def test_a_trained_network_may_miss_a_pair_and_no_more():
    assert (
        observed(LINE, "bent", 97) == observed(LINE, "bent", torch.tensor(100)) == 100
    )
    assert observed(LINE, "bent", 90) == 90
    assert observed(LINE, "bent", 101) == 101


@pytest.mark.parametrize("value", [None, "all", [100, 100]])
def test_what_is_no_number_is_handed_on_as_it_is(value):
    assert observed(LINE, "bent", value) is value


def test_another_matrix_reads_more_second_letters_but_never_all():
    """The worked solution says so: let half of the letters never be named."""
    letters, alpha = 10, 0.7
    pairs = torch.cartesian_prod(torch.arange(letters), torch.arange(letters))
    average = torch.tensor([alpha, 1 - alpha]) @ torch.eye(letters)[pairs]
    named = (torch.arange(letters) < letters // 2).float()
    readout = torch.diag(2 * named - 1)
    right = ((average @ readout).argmax(dim=-1) == pairs[:, 1]).sum()
    fitted = chapter_05.readable(letters, alpha)["second"]
    assert fitted < right < letters**2


def heads_that_ask(turned, factor):
    """Set both heads as the solution does, but for the columns of head 1's matrix."""

    def by_hand(places, letters):
        groups = torch.eye(letters + 3 * places).split([letters, *[places] * 3], dim=1)
        letter, place, a, b = groups
        w_q = factor * torch.stack([b, turned(a, place)])
        return w_q, torch.stack([place, place]), torch.stack([letter, letter])

    return by_hand


@pytest.mark.parametrize("factor", [1, 40])
@pytest.mark.parametrize(
    ("turned", "words"),
    [
        (lambda a, place: a, "at a"),
        (lambda a, place: a.roll(-1, dims=1), "right before a"),
        (lambda a, place: a + a.roll(1, dims=1), "at several places alike"),
        (lambda a, place: float("inf") * a, "nowhere: there are weights of nan"),
        (lambda a, place: a.roll(2, dims=1), "at this place and that"),
        (lambda a, place: place, "everywhere alike"),
        (lambda a, place: -a, "everywhere but at a"),
    ],
)
def test_a_head_is_said_to_look_where_it_looks(turned, words, factor):
    report = evaluate(BANK["05-hand"], heads_that_ask(turned, factor))
    assert report.first_failure.name == "after a"
    failure = report.first_failure.failure
    assert (failure.compared, failure.expected) == (
        "where head 1 looks",
        "right after a",
    )
    assert failure.got == words
    assert ("at a itself" in failure.question) == (words == "at a")
    assert ("right before a" in failure.question) == (words == "right before a")


@pytest.mark.parametrize(
    ("matrices", "got"),
    [
        ((1, 2), "three tensors are asked for: w_q, w_k and w_v"),
        ([[torch.eye(2)] * 2] * 3, "w_q is no tensor but a list"),
    ],
)
def test_what_is_no_triple_of_tensors_is_told_so(matrices, got):
    failure = evaluate(BANK["05-hand"], lambda *_: matrices).first_failure.failure
    assert failure.got == f"TypeError: {got}"


@pytest.mark.parametrize("seed", range(20))
def test_no_other_rule_gives_the_right_numbers_by_chance(seed):
    kept = BANK["05-average"].inputs(seed)
    a, b = kept["value_a"], kept["value_b"]
    assert (a + b) / 2 not in (a - b, a / 2, b)
    line = BANK["05-line"].inputs(seed)
    pairs, alpha = line["letters"] ** 2, line["alpha"]
    assert abs((1 - alpha) * pairs - line["letters"]) > 1


def set_by_hand(change):
    return lambda places, letters: change(*chapter_05.by_hand(places, letters))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize(("factor", "is_enough"), [(4, False), (6, True)])
def test_a_head_has_to_be_sharp_for_as_many_places_as_the_statement_allows(
    factor, is_enough, seed
):
    by_hand = set_by_hand(lambda w_q, *others: (factor / 40 * w_q, *others))
    report = evaluate(BANK["05-hand"], by_hand, seed)
    assert report.passed == is_enough
    assert is_enough or report.first_failure.name == "sharp"


def test_queries_and_keys_of_different_width_are_told_so():
    by_hand = set_by_hand(lambda w_q, w_k, w_v: (w_q[..., 2:], w_k, w_v))
    outcome = evaluate(BANK["05-hand"], by_hand).first_failure
    assert outcome.name == "shape"
    assert "differ in their last axis, d_k" in outcome.failure.got
    assert "differ in width" in outcome.failure.question
