"""Chapter 08's own: a bug that a test hides, and draws that give nothing away."""

import pytest
import torch

from exercise_notebook import cells, printed_by
from mha_teach.exercises import chapter_08, evaluate
from mha_teach.exercises.bank import slip

BANK = {exercise.id: exercise for exercise in chapter_08.EXERCISES}


def test_as_given_the_identity_hides_the_bug():
    lines = printed_by(cells("08", "code"))
    assert [line for line in lines if "same" in line] == [
        "identity, same shape:  True",
        "identity, same output: True",
        "as trained, same shape:  True",
        "as trained, same output: False",
    ]


def test_no_answer_to_the_predictions_is_right_by_chance():
    """Else a misconception could pass, such as a bias counted for each head."""
    for seed in range(20):
        answer = BANK["08-predict"].as_answer(chapter_08.sums, seed)
        outputs = [answer[name] for name in ("output", "without", "off", "shares")]
        assert len({*outputs, 0}) == 5
        assert answer["shares"] % 1 == 0
        thrice = answer["shares"] + 2 * answer["off"]  # the bias for each head
        assert thrice not in outputs


@pytest.mark.parametrize("seed", range(10))
def test_what_changes_when_heads_change_places_is_no_accident(seed):
    """Every map and every token differs by far more than the tolerance."""
    n, _, h, _, _ = BANK["08-permute"].inputs(seed).values()
    answer = BANK["08-permute"].as_answer(chapter_08.swaps, seed)
    assert list(answer.values())[:3] == [0, 2, n]
    assert h > 2


BY_SLICES = """heads = t.unflatten(dim, (h, -1)).movedim(dim, 0)
        a, b = heads[0], heads[2]
        heads[0], heads[2] = b, {first}
        return t"""


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("copied", [True, False])
def test_a_slice_that_was_written_over_is_asked_about(copied, seed):
    """As a learner would swap: with slices, and with or without a copy of them."""
    by_index = "return t.unflatten(dim, (h, -1)).index_select(dim, order)"
    by_slices = BY_SLICES.format(first="a.clone()" if copied else "a")
    swapped = slip(chapter_08.swaps, f"{by_index}.flatten(dim, dim + 1)", by_slices)
    exercise = BANK["08-permute"]
    report = evaluate(exercise, exercise.as_answer(swapped, seed), seed)
    assert report.passed == copied
    if not copied:
        assert report.first_failure.failure.question.startswith("One map is another")


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_symmetric_matrix_hides_the_bug(seed):
    inputs = BANK["08-bug"].inputs(seed)
    inputs["out_weight"] = inputs["out_weight"] + inputs["out_weight"].T
    given = BANK["08-bug"].given(*inputs.values())
    torch.testing.assert_close(given, chapter_08.terms(*inputs.values()))


def test_a_gate_that_overwrites_its_input_is_told():
    def gate(head_outputs, w_o, gate):
        head_outputs *= gate[..., None, None]
        return head_outputs.transpose(-3, -2).flatten(-2) @ w_o

    report = evaluate(BANK["08-gate"], gate)
    assert [o.name for o in report.outcomes if not o.holds] == ["inputs"]


def cut_from_columns(out_weight, h, d_v):
    return out_weight.unflatten(1, (h, d_v)).transpose(0, 1)  # right, but for .mT


def cut_from_rows(out_weight, h, d_v):
    return out_weight.unflatten(0, (h, d_v)).mT


@pytest.mark.parametrize("cut", [cut_from_columns, cut_from_rows])
def test_a_block_that_lies_across_is_asked_about_whichever_way_it_was_cut(cut):
    def terms(head_outputs, out_weight, out_bias):
        h, d_v = head_outputs.shape[1], head_outputs.shape[3]
        contributions = head_outputs @ cut(out_weight, h, d_v)
        rest = out_bias.expand_as(contributions[:, :1])
        return torch.cat([contributions, rest], dim=1)

    failure = evaluate(BANK["08-bug"], terms).first_failure.failure
    assert failure.question.startswith(
        "Your blocks are d_model by d_v. Which axis of a block must meet the d_v of a "
    )


def one_einsum(head_outputs, w_o, gate):
    if gate.dim() == 2:
        scaled = torch.einsum("bhnd,bh->bhnd", head_outputs, gate)
    else:
        scaled = head_outputs * gate[:, None, None]
    return scaled.transpose(-3, -2).flatten(-2) @ w_o


def one_reshape(head_outputs, w_o, gate):
    if gate.dim() > 1:
        gate = gate.reshape(-1, head_outputs.shape[-3], 1, 1)
    else:
        gate = gate[:, None, None]
    return (head_outputs * gate).transpose(-3, -2).flatten(-2) @ w_o


@pytest.mark.parametrize("seed", [None, *range(6)])
@pytest.mark.parametrize("answer", [one_einsum, one_reshape])
def test_a_gate_for_each_sequence_is_tried_with_two_batch_axes(answer, seed):
    report = evaluate(BANK["08-gate"], answer, seed)
    assert [o.name for o in report.outcomes if not o.holds] == ["per sequence, twice"]
    assert "the gate is (more, batch, head)" in report.first_failure.failure.question


@pytest.mark.parametrize("seed", [None, *range(6)])
@pytest.mark.parametrize(("exercise", "axes"), [("08-bug", 2), ("08-gate", 1)])
def test_a_result_that_loses_an_axis_of_size_1_is_told(exercise, axes, seed):
    def squeezed(*inputs):
        return BANK[exercise].reference(*inputs).squeeze(-axes)

    report = evaluate(BANK[exercise], squeezed, seed)
    assert [o.name for o in report.outcomes if not o.holds] == ["single"]
    assert "Which line loses one" in report.first_failure.failure.question


def test_an_axis_lost_on_the_way_is_asked_about_as_well():
    def gated(head_outputs, w_o, gate):
        scaled = (head_outputs * gate[..., None, None]).squeeze()
        return scaled.transpose(-3, -2).flatten(-2) @ w_o

    first = evaluate(BANK["08-gate"], gated).first_failure
    assert first.name == "single"
    assert "Which line loses one" in first.failure.question


def test_a_gate_that_is_never_used_is_not_asked_about_where():
    def gated(head_outputs, w_o, gate):
        return head_outputs.transpose(-3, -2).flatten(-2) @ w_o

    failure = evaluate(BANK["08-gate"], gated).first_failure.failure
    assert failure.question.endswith("On which line does your code use the gate?")


def by_index(head_outputs, w_o, gate):
    blocks = w_o.chunk(len(gate))
    return sum(
        g * head_outputs[:, i] @ block
        for i, (g, block) in enumerate(zip(gate, blocks, strict=True))
    )


def by_unpacking(head_outputs, w_o, gate):
    batch, h, n, d_v = head_outputs.shape
    gated = (head_outputs * gate[:, None, None]).transpose(1, 2)
    return gated.reshape(batch, n, h * d_v) @ w_o


@pytest.mark.parametrize("seed", [None, *range(6)])
@pytest.mark.parametrize("answer", [by_index, by_unpacking])
def test_without_a_batch_axis_the_question_is_where_the_head_is(answer, seed):
    first = evaluate(BANK["08-gate"], answer, seed).first_failure
    assert first.name == "unbatched"
    assert "Without a batch axis, where is the head? Count from the end" in (
        first.failure.question
    )
