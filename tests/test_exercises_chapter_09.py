"""What is particular to the exercises of chapter 09."""

import pytest
import torch
from torch.nn import functional as F

from mha_teach import scaled_dot_product_attention
from mha_teach.exercises import chapter_09, evaluate

BANK = {exercise.id: exercise for exercise in chapter_09.EXERCISES}


def test_no_answer_to_the_predictions_is_right_by_chance():
    """Else a misconception could pass, such as outputs up to token j."""
    for seed in range(20):
        n, j = (BANK["09-predict"].inputs(seed)[name] for name in "nj")
        assert n - j not in (1, j, j + 1, n)


@pytest.mark.parametrize("seed", range(10))
def test_what_differs_in_a_stack_is_no_accident(seed):
    """The numbers are those of any draw, not of one random start."""
    answer = BANK["09-depth"].as_answer(chapter_09.stacks, seed)
    n = BANK["09-depth"].inputs(seed)["n"]
    assert list(answer.values())[:5] == [n - 1, 0, n - 1, 0, n]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_attention_that_brings_nothing_to_normalised_tokens_hides_the_bug(seed):
    x, attended, *network = BANK["09-bug"].inputs(seed).values()
    x = F.layer_norm(x, x.shape[-1:])
    given = BANK["09-bug"].given(x, 0 * attended, *network)
    expected = chapter_09.finish(x, 0 * attended, *network)
    torch.testing.assert_close(given, expected, atol=1e-4, rtol=1e-4)


def test_a_block_that_adds_in_place_is_told():
    def block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
        result = chapter_09.block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out)
        x += 1
        return result

    report = evaluate(BANK["09-block"], block)
    assert [o.name for o in report.outcomes if not o.holds] == ["inputs"]


@pytest.mark.parametrize("part", ["", ".output"])
def test_a_pair_used_as_a_tensor_is_asked_about(part):
    def block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
        attended = scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)
        attended = attended.output if part else attended
        y = F.layer_norm(x + attended @ w_o, x.shape[-1:])
        return F.layer_norm(y + (y @ w_in).relu() @ w_out, x.shape[-1:])

    report = evaluate(BANK["09-block"], block)
    assert report.passed == bool(part)
    if not part:
        assert report.first_failure.failure.question == (
            "scaled_dot_product_attention returns a pair, output and weights. Which of "
            "the two does this line need?"
        )


@pytest.mark.parametrize("seed", [None, *range(6)])
@pytest.mark.parametrize("name", ["09-bug", "09-block"])
def test_a_result_that_loses_an_axis_of_size_1_is_told(name, seed):
    def squeezed(*inputs):
        return BANK[name].reference(*inputs).squeeze(1)

    report = evaluate(BANK[name], squeezed, seed)
    assert [o.name for o in report.outcomes if not o.holds] == ["single"]
    assert "Which line loses one" in report.first_failure.failure.question


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_a_mask_that_is_only_asked_whether_it_is_causal_is_told(seed):
    def block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
        attended = F.scaled_dot_product_attention(
            x @ w_q, x @ w_k, x @ w_v, is_causal=not mask.all()
        )
        y = F.layer_norm(x + attended @ w_o, x.shape[-1:])
        return F.layer_norm(y + (y @ w_in).relu() @ w_out, x.shape[-1:])

    report = evaluate(BANK["09-block"], block, seed)
    assert [o.name for o in report.outcomes if not o.holds] == ["any mask"]
    assert "as under a causal mask" in report.first_failure.failure.question


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(
    ("weigh", "first", "question"),
    [
        (lambda s, m: s.masked_fill(~m, 0).softmax(-1), "causal", "power of 0?"),
        (lambda s, m: (s * m).softmax(-1), "causal", "power of 0?"),
        (lambda s, m: (s + m.float()).softmax(-1), "causal", "where it is not?"),
        (lambda s, m: s.softmax(-1).masked_fill(~m, 0), "causal", "share the whole?"),
        (lambda s, m: s.where(m, -10).softmax(-1), "causal", "below every score?"),
        (lambda s, m: s.masked_fill(m, -1e9).softmax(-1), "attention", "of this book?"),
        (lambda s, m: (s + m * -1e9).softmax(-1), "attention", "of this book?"),
        (lambda s, m: s.masked_fill(m, 0).softmax(-1), "attention", "of this book?"),
        (lambda s, m: s.softmax(-1) * m.sum(-1), "attention", "of the formulas?"),
        (lambda s, m: s.masked_fill(~m, -2).softmax(-1), "causal", "forbidden key?"),
    ],
)
def test_what_is_wrong_with_a_mask_is_asked_about(weigh, first, question, seed):
    failed = evaluate(
        BANK["09-block"], chapter_09._weighed_by(weigh), seed
    ).first_failure
    assert failed.name == first
    assert failed.failure.question.endswith(question)


def test_a_mask_that_is_used_to_no_effect_is_not_said_to_be_unused():
    def weigh(scores, mask):
        scores.masked_fill(~mask, float("-inf"))
        return scores.softmax(-1)

    block = chapter_09._weighed_by(weigh)
    first = evaluate(BANK["09-block"], block).first_failure
    assert first.name == "causal"
    assert first.failure.question.endswith("mask come in, and what becomes of it?")


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_numbers_counted_in_place_of_rows_are_told_however_many(seed):
    n, d_model, *_ = BANK["09-depth"].inputs(seed).values()
    right = BANK["09-depth"].as_answer(chapter_09.stacks, seed)
    for count in (n + 1, (n - 1) * d_model - 3, torch.tensor((n - 1) * d_model)):
        first = evaluate(BANK["09-depth"], right | {"once": count}, seed).first_failure
        assert first.name == "once"
        assert first.failure.question.startswith("You count numbers.")
    for count in (n, "many", [n - 1], (n - 1) * d_model + 1):
        first = evaluate(BANK["09-depth"], right | {"once": count}, seed).first_failure
        assert not first.failure.question.startswith("You count numbers.")
