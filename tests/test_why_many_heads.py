"""The stored runs of chapter 05 are what the card says, and training gives them again.

Its proof holds for every linear readout; here it is tried on many.
"""

import json
from statistics import mean

import pytest
import torch

from tools import why_many_heads
from tools.heads_grid import accuracy, questions
from tools.why_many_heads import EQUAL, FIXED, OTHERS, SETTINGS, Setting

TEXT = why_many_heads.ARTIFACT.read_text(encoding="utf-8")
ARTIFACT = json.loads(TEXT)
CARD = why_many_heads.CARD.read_text(encoding="utf-8")
RUNS = {
    Setting(*(run[field] for field in Setting._fields)): run for run in ARTIFACT["runs"]
}


def shares(model="linear", **fixed):
    """All runs of some settings, together."""
    fixed["model"] = model
    found = [
        run for run in RUNS.values() if all(run[key] == fixed[key] for key in fixed)
    ]
    assert found
    return [share for run in found for share in run["accuracy"]]


def test_the_file_is_small_and_its_keys_are_sorted():
    assert len(TEXT.encode()) <= 200_000
    assert json.dumps(ARTIFACT, indent=1, sort_keys=True) + "\n" == TEXT


def test_the_task_is_described():
    assert ARTIFACT["task"] == {
        "d_model": 64,
        "positions": 16,
        "symbols": 16,
        "seeds": [0, 1, 2, 3, 4],
    }
    assert set(ARTIFACT) == {"task", "runs"}


def test_every_setting_has_its_runs_in_order():
    assert list(RUNS) == SETTINGS
    assert len(RUNS) == len(ARTIFACT["runs"]) == 26


@pytest.mark.parametrize("run", RUNS.values(), ids=map(str, RUNS))
def test_a_run_is_complete(run):
    measured = {"accuracy", "each", "loss"}
    assert set(run) == {*Setting._fields, "parameters", *measured}
    assert all(len(run[name]) == 5 for name in measured)
    assert all(loss == round(loss, 4) > 0 for loss in run["loss"])
    for both, each in zip(run["accuracy"], run["each"], strict=True):
        shares = [both, *each]
        assert len(each) == 2
        assert shares == [round(share, 4) for share in shares]
        assert max(0, sum(each) - 1 - 1e-3) <= both <= min(each) <= max(each) <= 1


@pytest.mark.parametrize("setting", SETTINGS, ids=map(str, SETTINGS))
def test_parameters_are_counted(setting):
    counted = why_many_heads.attention_parameters(setting)
    layers = 2 if setting.model == "second layer" else 1
    by_formula = layers * 4 * 64 * setting.num_heads * setting.d_k
    assert RUNS[setting]["parameters"] == counted == by_formula


def test_what_is_called_equal_is_equal():
    counts = {run["parameters"] for s, run in RUNS.items() if s[:3] in EQUAL}
    assert counts == {RUNS[s]["parameters"] for s in SETTINGS if s.model != "linear"}
    assert counts == {16_384}


def test_no_reader_of_an_even_average_gets_the_loss_lower():
    """Its best answer knows both letters, and nothing of their order."""
    first, second = torch.cartesian_prod(torch.arange(16), torch.arange(16)).T
    known = (torch.eye(16)[first] + torch.eye(16)[second]) / 2
    loss = -(known[torch.arange(256), first].log()).mean().item()
    assert loss == pytest.approx(why_many_heads.LEAST_LOSS)


def test_one_head_and_a_matrix_fail_for_good():
    for d_k in (16, 64):
        short, long = (shares(num_heads=1, d_k=d_k, steps=s) for s in (400, 1200))
        assert max(long) < min(short) <= max(short) < 0.25
        for each in RUNS["linear", 1, d_k, 1200]["each"]:
            assert 0.08 < min(each) < 0.14 < 0.96 < max(each)
        assert max(RUNS["linear", 1, d_k, 1200]["loss"]) < why_many_heads.LEAST_LOSS
        assert min(RUNS["linear", 1, d_k, 400]["loss"]) > why_many_heads.LEAST_LOSS


def test_two_to_sixteen_heads_succeed_and_half_the_parameters_will_do():
    for num_heads in (2, 4, 8, 16):
        assert min(shares(num_heads=num_heads)) > 0.98
    assert RUNS["linear", 2, 16, 400]["parameters"] == 16_384 / 2


def test_narrow_heads_lack_patience():
    assert max(shares(num_heads=32, steps=400)) < 0.6
    assert min(shares(num_heads=32, steps=1200)) > 0.98
    assert max(shares(num_heads=64, steps=400)) < 0.1
    assert min(shares(num_heads=64, steps=1200)) > 0.2


def test_one_head_succeeds_if_a_network_or_a_layer_follows():
    assert mean(shares("network", steps=400)) > 0.8
    assert min(shares("network", steps=1200)) > 0.98
    assert min(shares("second layer")) > 0.98


def test_the_card_shows_the_figures_of_the_file():
    for rows in (EQUAL, FIXED, OTHERS):
        assert why_many_heads.table(ARTIFACT["runs"], rows) in CARD
    assert why_many_heads.table_of_symbols(ARTIFACT["runs"]) in CARD
    assert f"{len(TEXT.encode()) / 1000:.0f} kB" in CARD
    facts = ("python -m tools.why_many_heads", "0, 1, 2, 3, 4", "CC BY 4.0", "torch ")
    assert all(fact in CARD for fact in facts)


@pytest.mark.parametrize("name", why_many_heads.MODELS)
def test_a_model_answers_two_questions_and_learns_all_it_has(name):
    model = why_many_heads.MODELS[name](1, 32)
    batch = questions(7, torch.Generator().manual_seed(0))
    logits = model(batch.x)
    assert logits.shape == (7, 2, 16)
    logits.square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


def test_with_two_layers_the_second_answer_may_depend_on_the_first():
    model = why_many_heads.SecondLayer(1, 32)
    x = questions(1, torch.Generator().manual_seed(0)).x
    first, second = model.layers
    told = x[:, -1:] + first(x[:, -1:], x)
    expected = model.readout((told + second(told, x)).squeeze(1))
    assert torch.allclose(model(x).flatten(1), expected, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.49, 0.51, 0.7, 0.9])
def test_a_linear_readout_names_the_letter_with_more_weight_and_never_both(alpha):
    generator = torch.Generator().manual_seed(0)
    d = torch.randn(2, 100_000, generator=generator)  # for x alone, and for y alone
    pairs = torch.cartesian_prod(torch.arange(2), torch.arange(2))
    says_x = torch.tensor([alpha, 1 - alpha]) @ d[pairs] > 0  # (pair, readout)
    can_name = [(says_x.mT == (p == 0)).all(dim=-1).any() for p in pairs.T]
    assert can_name == [alpha > 0.5, alpha < 0.5]


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", [Setting("linear", 2, 16, 400), Setting("second layer", 1, 32, 400)]
)
def test_training_again_gives_the_same_accuracies(setting):
    again = [
        accuracy(why_many_heads.trained(setting, seed))
        for seed in ARTIFACT["task"]["seeds"]
    ]
    # Another processor may round differently, and 400 steps magnify that.
    assert again == pytest.approx(RUNS[setting]["accuracy"], abs=0.02)
