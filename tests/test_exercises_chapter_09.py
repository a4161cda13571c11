"""What is particular to the exercises of chapter 09."""

import pytest
import torch

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
    x = torch.nn.functional.layer_norm(x, x.shape[-1:])
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
