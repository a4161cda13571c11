"""The loop learns, repeats itself, can be stopped; its progress leaves no trace."""

import importlib
import math
import re
import signal
import sys
from types import SimpleNamespace

import pytest
import torch
from jupyter_client.manager import start_new_kernel
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from mha_teach import training
from mha_teach.tasks import two_lookups
from mha_teach.training import (
    LookupModel,
    answer_loss,
    progress,
    share_right,
    train,
)

POSITIONS, SYMBOLS, D_MODEL = 3, 5, 14


def lookups(num_samples, generator):
    return two_lookups(
        num_samples, generator=generator, positions=POSITIONS, symbols=SYMBOLS
    )


def lookup_loss(model, generator):
    batch = lookups(61, generator)
    return answer_loss(model(batch.x), batch.answer)


def small_model(num_heads=2, seed=0):
    torch.manual_seed(seed)
    return LookupModel(num_heads, d_k=7, d_v=11, d_model=D_MODEL, num_symbols=SYMBOLS)


def weights_of(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_the_model_reads_the_last_row_of_self_attention():
    model, x = small_model(num_heads=3), torch.randn(13, 4, D_MODEL)
    last = model.attention.trace(x).output[:, -1]
    expected = last @ model.readout.weight.T + model.readout.bias
    expected = torch.stack(expected.chunk(2, dim=1), dim=1)
    assert model(x).shape == (13, 2, SYMBOLS)
    assert torch.allclose(model(x), expected, atol=1e-6)


def test_nothing_reaches_the_answer_past_the_heads():
    model, x = small_model(), torch.randn(13, 4, D_MODEL)
    model.attention.out_proj.weight.data.zero_()
    expected = model.readout.bias.view(2, SYMBOLS).expand(13, -1, -1)
    assert torch.equal(model(x), expected)


def test_sizes_reach_the_attention():
    attention = small_model(num_heads=3).attention
    sizes = (attention.d_model, attention.num_heads, attention.d_k, attention.d_v)
    assert sizes == (D_MODEL, 3, 7, 11)


def test_answer_loss_is_the_mean_over_both_answers():
    logits = torch.zeros(1, 2, 3)
    logits[0, 1, 2] = math.log(2)  # probabilities ⅓ ⅓ ⅓ and ¼ ¼ ½
    loss = answer_loss(logits, torch.tensor([[0, 2]]))
    assert loss.item() == pytest.approx((math.log(3) + math.log(2)) / 2)


def test_a_question_is_right_only_if_every_answer_is():
    answer = torch.tensor([[0, 1], [0, 1], [0, 1], [2, 2], [1, 0]])
    chosen = torch.tensor([[0, 1], [0, 2], [1, 1], [2, 2], [0, 1]])
    logits = torch.nn.functional.one_hot(chosen, 3).float()
    assert share_right(logits, answer) == pytest.approx(2 / 5)


def test_nan_is_no_right_answer():
    logits = torch.full((2, 2, 3), math.nan)
    logits[1] = torch.tensor([1.0, 0, 0])
    assert share_right(logits, torch.zeros(2, 2).long()) == pytest.approx(1 / 2)


@pytest.mark.parametrize("measure", ["answer_loss", "share_right"])
@pytest.mark.parametrize("shape", [(2, 3), (2,), (3, 1), ()])
def test_every_answer_is_asked_for(plain, measure, shape):
    training = importlib.import_module("mha_teach.training")
    message = re.escape(f"answer has shape {shape}; logits of shape (3, 2, 4) need")
    with pytest.raises(ValueError, match=message):
        getattr(training, measure)(torch.zeros(3, 2, 4), torch.zeros(shape).long())


@pytest.mark.parametrize("measure", ["answer_loss", "share_right"])
def test_answers_are_integers(plain, measure):
    training = importlib.import_module("mha_teach.training")
    message = "answer must hold integers, got torch.float32; convert with .long"
    with pytest.raises(TypeError, match=message):
        getattr(training, measure)(torch.zeros(3, 2, 4), torch.zeros(3, 2))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.uint16])
def test_answers_are_any_integers(dtype):
    logits, answer = torch.randn(3, 2, 4), torch.tensor([[0, 1], [2, 3], [1, 0]])
    for measure in (answer_loss, share_right):
        assert measure(logits, answer.to(dtype)) == measure(logits, answer)


@pytest.mark.parametrize("measure", ["answer_loss", "share_right"])
@pytest.mark.parametrize(
    ("logits", "kind", "message"),
    [
        ([], TypeError, "logits must be a torch.Tensor, got list"),
        (
            torch.zeros(3, 2, 4).long(),
            TypeError,
            "logits must be floating point, got torch.int64; pass the output of a",
        ),
        (
            torch.zeros(6, 4),
            ValueError,
            r"logits has shape \(6, 4\); use \(batch, answer, symbol\)",
        ),
    ],
)
def test_logits_are_three_axes_of_numbers(plain, measure, logits, kind, message):
    training = importlib.import_module("mha_teach.training")
    with pytest.raises(kind, match=message):
        getattr(training, measure)(logits, torch.zeros(3, 2).long())


def test_a_share_is_counted_from_data(plain):
    training = importlib.import_module("mha_teach.training")
    logits, answer = torch.zeros(3, 2, 4), torch.zeros(3, 2).long()
    with pytest.raises(ValueError, match="logits is on meta; pass a tensor that holds"):
        training.share_right(logits.to("meta"), answer.to("meta"))


def test_two_heads_learn_two_lookups():
    model, test = small_model(), lookups(997, torch.Generator().manual_seed(1))
    before = share_right(model(test.x), test.answer)
    generator = torch.Generator().manual_seed(2)
    run = train(model, lookup_loss, steps=200, generator=generator)
    assert len(run.losses) == 200
    assert not run.interrupted
    assert before < 0.2
    assert share_right(model(test.x), test.answer) > 0.9


def test_every_step_has_its_own_gradient():
    layer = torch.nn.Linear(3, 2)
    train(
        layer,
        lambda layer, generator: layer.weight.sum(),
        steps=5,
        generator=torch.Generator(),
    )
    assert torch.equal(layer.weight.grad, torch.ones(2, 3))


def test_equal_seeds_give_equal_runs():
    def trained(seed):
        model = small_model()
        generator = torch.Generator().manual_seed(seed)
        run = train(model, lookup_loss, steps=7, generator=generator)
        return run.losses, weights_of(model)

    losses, weights = trained(seed=3)
    again, weights_again = trained(seed=3)
    assert losses == again
    assert torch.equal(weights, weights_again)
    assert losses != trained(seed=4)[0]


def steps_taken(steps):
    """Train, and return the learning rate and the first momentum of each step."""
    groups = []
    hook = register_optimizer_step_post_hook(
        lambda optimizer, *_: groups.append(dict(optimizer.param_groups[0]))
    )
    try:
        train(
            small_model(),
            lookup_loss,
            steps=steps,
            generator=torch.Generator(),
            learning_rate=0.03,
        )
    finally:
        hook.remove()
    return [g["lr"] for g in groups], [g["betas"][0] for g in groups]


def test_the_learning_rate_climbs_for_a_tenth_and_falls():
    rates, momenta = steps_taken(50)
    assert max(rates) == pytest.approx(0.03)
    assert rates.index(max(rates)) == 4
    assert rates == sorted(rates[:5]) + sorted(rates[5:], reverse=True)
    assert rates[-1] < 0.03 / 1000
    turns = [momenta[0], min(momenta), momenta[-1]]
    assert turns == pytest.approx([0.95, 0.85, 0.95])
    assert momenta.index(min(momenta)) == 4


@pytest.mark.parametrize("steps", range(1, 21))
def test_short_runs_climb_and_fall_too(steps):
    rates, _ = steps_taken(steps)
    assert len(rates) == steps
    assert rates[0] == pytest.approx(0.03 / 25)
    if steps > 1:
        assert rates[1] == max(rates) == pytest.approx(0.03)
    if steps > 2:
        assert rates[1:] == sorted(rates[1:], reverse=True)
        assert rates[-1] < 0.03 / 1000


def test_an_interrupt_keeps_what_was_reached():
    model = small_model()
    start = weights_of(model)
    calls = []

    def stopped_in_the_fifth_step(model, generator):
        calls.append(None)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return lookup_loss(model, generator)

    run = train(
        model, stopped_in_the_fifth_step, steps=100, generator=torch.Generator()
    )
    assert run.interrupted
    assert len(run.losses) == 4
    assert not torch.equal(weights_of(model), start)


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.mark.usefixtures("two_threads")
def test_training_runs_on_one_thread_and_gives_the_others_back():
    threads = []

    def stopped_in_the_second_step(model, generator):
        threads.append(torch.get_num_threads())
        if len(threads) == 2:
            raise KeyboardInterrupt
        return lookup_loss(model, generator)

    train(
        small_model(), stopped_in_the_second_step, steps=3, generator=torch.Generator()
    )
    assert threads == [1, 1]
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"steps": 0}, ValueError, "steps=0 must be at least 1"),
        ({"steps": 2.5}, TypeError, "steps must be an int, got 2.5"),
        ({"steps": "3"}, TypeError, "steps must be an int, got '3'"),
        ({"model": None}, TypeError, "model must be an nn.Module, got NoneType"),
        ({"model": nn.ReLU()}, ValueError, "model=ReLU has no parameters; pass"),
        ({"generator": None}, TypeError, "generator must be .*, got None; pass torch"),
        ({"batch_loss": 1.0}, TypeError, "batch_loss must be a function .*, got 1.0"),
        ({"learning_rate": "x"}, TypeError, "learning_rate must be a number, got 'x'"),
        ({"learning_rate": 0}, ValueError, "learning_rate=0 is out of range; use a"),
        ({"learning_rate": math.nan}, ValueError, "learning_rate=nan is out of range"),
        (
            {"batch_loss": lambda model, _: lookup_loss(model, _).item()},
            TypeError,
            "batch_loss must return a scalar tensor, got [0-9.]+",
        ),
        (
            {"batch_loss": lambda model, _: model.readout.bias},
            ValueError,
            r"batch_loss returned shape \(10,\); return a scalar, such as its mean",
        ),
        (
            {"batch_loss": torch.no_grad()(lookup_loss)},
            ValueError,
            r"batch_loss returned [0-9.]+ without a gradient; compute it from .* model",
        ),
    ],
)
def test_what_cannot_be_trained_is_named(plain, wrong, kind, message):
    training = importlib.import_module("mha_teach.training")
    right = {"batch_loss": lookup_loss, "steps": 3, "generator": torch.Generator()}
    right["model"] = training.LookupModel(
        2, 3, d_model=D_MODEL, num_symbols=SYMBOLS, d_v=2
    )
    with pytest.raises(kind, match=message):
        training.train(**right | wrong)


def test_a_model_has_answers_and_symbols(plain):
    training = importlib.import_module("mha_teach.training")
    with pytest.raises(ValueError, match="num_symbols=0 must be at least 1"):
        training.LookupModel(2, 3, num_symbols=0)


def test_one_question_needs_no_batch_axis():
    model, x = small_model(), torch.randn(2, 4, D_MODEL)
    torch.testing.assert_close(model(x[0]), model(x)[0])


@pytest.fixture
def shown(monkeypatch):
    """Every content of the line, in a stand-in for a notebook; no update is skipped."""
    texts = []

    def show(data, *, raw, **display_id):
        assert raw
        texts.append(data["text/plain"])
        return SimpleNamespace(update=show)

    notebook = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=None),
        display=SimpleNamespace(display=show),
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(training, "SECONDS_BETWEEN_UPDATES", -1.0)
    return texts


def test_progress_counts_between_two_empty_lines(shown):
    assert list(progress("abc", "letter")) == ["a", "b", "c"]
    assert shown == ["", "letter 1 of 3", "letter 2 of 3", "letter 3 of 3", ""]


def test_progress_shows_nothing_if_all_is_over_soon(shown, monkeypatch):
    monkeypatch.setattr(training, "SECONDS_BETWEEN_UPDATES", 60.0)
    assert list(progress(range(5), "number")) == [0, 1, 2, 3, 4]
    assert shown == ["", ""]


def test_an_error_clears_the_line_and_is_passed_on(shown):
    def broken_in_the_second_step(model, generator):
        if len(shown) > 1:
            raise ZeroDivisionError
        return lookup_loss(model, generator)

    with pytest.raises(ZeroDivisionError):
        train(
            small_model(),
            broken_in_the_second_step,
            steps=5,
            generator=torch.Generator(),
        )
    assert shown == ["", "training, step 1 of 5", ""]


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["script", "terminal"])
def test_progress_needs_no_notebook(shell, monkeypatch, capfd):
    stand_in = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", stand_in)
    assert list(progress(range(3), "number")) == [0, 1, 2]
    monkeypatch.delitem(sys.modules, "IPython")
    assert list(progress(range(3), "number")) == [0, 1, 2]
    assert capfd.readouterr() == ("", "")


CELL_STOPPED_BY_THE_READER = """
import time, torch
from mha_teach.training import LookupModel, train

def batch_loss(model, generator):
    time.sleep(0.05)
    return model(torch.randn(2, 3, 5, generator=generator)).square().mean()

model = LookupModel(num_heads=1, d_k=2, d_model=5, num_symbols=3)
run = train(model, batch_loss, steps=10_000, generator=torch.manual_seed(0))
print(run.interrupted, 0 < len(run.losses) < 10_000)
"""


def test_a_reader_stops_a_training_cell():
    manager, client = start_new_kernel()
    lines, printed = [], []

    def receive(message):
        kind, content = message["msg_type"], message["content"]
        if kind in ("display_data", "update_display_data"):
            lines.append(content["data"]["text/plain"])
            if len(lines) == 2:
                manager.interrupt_kernel()
        elif kind == "stream":
            printed.append((content["name"], content["text"]))

    try:
        reply = client.execute_interactive(
            CELL_STOPPED_BY_THE_READER, output_hook=receive, timeout=60
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok"
    assert lines[0] == lines[-1] == ""
    assert lines[1].startswith("training, step ")
    assert printed == [("stdout", "True True\n")]
