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
