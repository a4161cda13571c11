"""Chapter 01's own: draws that give nothing away, and shares as they are measured."""

import pytest
import torch

from exercise_notebook import observed
from mha_teach.exercises import chapter_01

BANK = {exercise.id: exercise for exercise in chapter_01.EXERCISES}
NEAREST = BANK["01-nearest"]


def test_no_answer_to_the_predictions_is_right_by_chance():
    """Else a misconception could pass: a mean that is also the best key's value."""
    for seed in range(20):
        answer = BANK["01-weights"].as_answer(chapter_01.weigh, seed)
        outputs = [answer[name] for name in ("output", "cold", "hot", "most")]
        assert len(set(outputs)) == 4
        assert len({answer["third"], 1, 1 / 3}) == 3


def test_large_scores_are_as_large_as_the_statement_says():
    exercise = BANK["01-lookup"]
    (tried,) = (p for p in exercise.properties if p.name == "weights")
    for seed in range(20):
        q, k, _, temperature = exercise.inputs(seed, tried).values()
        scores = q @ k.mT / temperature
        assert scores[1, :3].tolist() == pytest.approx([-300, 300, 297], abs=0.01)
        assert scores[1].max() < 300.01
        assert (scores[2] + 300).abs().max() < 10
        assert scores[0].abs().max() < 30  # and one maximum does not do for all


@pytest.mark.parametrize(("d_k", "n_k"), chapter_01._AGREEMENT)
def test_the_shares_known_for_random_keys_are_those_measured(d_k, n_k):
    draw = torch.Generator().manual_seed(0)
    q = torch.randn(50_000, 1, d_k, generator=draw)
    k = torch.randn(50_000, n_k, d_k, generator=draw)
    near = torch.linalg.vector_norm(q - k, dim=-1).argmin(dim=-1)
    scores = (q * k).sum(dim=-1)
    for known, compared in zip(
        chapter_01._AGREEMENT[d_k, n_k],
        (scores, scores / torch.linalg.vector_norm(k, dim=-1)),
        strict=True,
    ):
        measured = (compared.argmax(dim=-1) == near).float().mean()
        assert measured == pytest.approx(known, abs=0.01)


@pytest.mark.parametrize("name", ["random", "unit", "longer", "far"])
def test_a_measured_share_may_be_off_by_chance_and_no_more(name):
    exact = observed(NEAREST, name, NEAREST.as_answer(chapter_01.nearest)[name])
    for near in (-0.03, 0.03):
        assert observed(NEAREST, name, exact + near) == exact
    assert observed(NEAREST, name, exact - 0.1) == exact - 0.1


@pytest.mark.parametrize("value", [None, True, "a third", [1.0, 2.0]])
def test_what_is_no_number_is_handed_on_as_it_is(value):
    assert observed(NEAREST, "random", value) is value
