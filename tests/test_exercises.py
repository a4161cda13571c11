"""check, hint, solution, progress: what a learner sees, whatever they hand in."""

import copy
import functools
import importlib
import json
import math
import os
import random
import re
import subprocess
import sys
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn
from torch.backends import cuda

from mha_teach import scaled_dot_product_attention
from mha_teach.exercises import (
    EXERCISES,
    _progress,
    chapter_07,
    check,
    hint,
    progress,
    solution,
)
from mha_teach.exercises._compare import difference, has_nan, is_unchanged
from mha_teach.exercises.bank import slip

MHA = chapter_07.mha
ANSWERS = EXERCISES["01-bug"].reference
SCALED = EXERCISES["02-bug"].reference
SHAPES = EXERCISES["07-shapes"]
RIGHT_SHAPES = SHAPES.as_answer(SHAPES.reference)
FRACTIONS = [
    exercise
    for exercise in EXERCISES.values()
    if "returns" in exercise.axes and exercise.id not in ("04-causal", "04-padding")
]


@pytest.fixture(autouse=True)
def kept_in(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "progress.jsonl"
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(path))
    monkeypatch.setattr(_progress, "_unkept", {})
    monkeypatch.setattr("mha_teach.exercises._hints_given", {})
    monkeypatch.setattr("mha_teach.exercises._passed_last", {})
    return path


# What a report says


def test_a_right_answer(capsys):
    report = check("07-mha", MHA)
    printed = capsys.readouterr().out
    assert report.passed
    assert report.score == 4
    assert repr(report) == "<Report 07-mha: 4 of 4 points>"
    names = [p.name for p in EXERCISES["07-mha"].properties]
    assert re.findall(r"^✓ (\w+): .+\(batch=\d+, n=\d+, d_model=", printed, re.M) == (
        names
    )
    assert printed.endswith("\n8 of 8 properties hold: passed, 4 of 4 points.\n")
    assert str(report) + "\n" == printed


def test_a_wrong_answer_is_told_what_why_and_where(capsys):
    def unscaled(x, w_q, w_k, w_v, w_o, heads):
        q, k, v = (
            torch.einsum("bnd,dhk->bhnk", x, w.unflatten(1, (heads, -1)))
            for w in (w_q, w_k, w_v)
        )
        weights = torch.einsum("bhqk,bhnk->bhqn", q, k).softmax(-1)
        mixed = torch.einsum("bhqn,bhnv->bqhv", weights, v)
        return mixed.flatten(2) @ w_o

    report = check("07-mha", unscaled)
    printed = capsys.readouterr().out
    assert not report.passed
    assert report.first_failure.name == "scale"
    assert re.search(
        r"✗ scale: two tokens score by q·k / √d_k \(batch=1, n=2, .*\)\n"
        r"    compared  ln of the weight of token 0 over that of token 1, .*\n"
        r"    expected  -?\d\.\d+ at query \d\n"
        r"    got       -?\d\.\d+, which is \d\.\d+ \(√\d+\) times the expected\n"
        r"    question  Your scores are √d_k times too large\. .*\?\n"
        r"✗ heads: equal to a loop over heads \(batch=",
        printed,
    )
    assert printed.count("question") == 1
    assert 0 < report.score < 4


def test_a_wrong_shape_is_shown_by_axis(capsys):
    check("07-mha", lambda x, w_q, w_k, w_v, w_o, h: x @ w_v)
    printed = capsys.readouterr().out
    assert re.search(r"expected  \(batch=\d+, n=\d+, d_model=\d+\)\n", printed)
    assert re.search(r"got       \(\d+, \d+, \d+\): look at d_model\n", printed)
    check("07-mha", lambda x, w_q, w_k, w_v, w_o, h: x[0])
    assert "): 2 axes, not 3\n" in capsys.readouterr().out


def test_an_answer_that_returns_nothing_now_and_then_is_tried(capsys):
    right = EXERCISES["07-mha"].reference

    def half(x, w_q, w_k, w_v, w_o, h):
        return right(x, w_q, w_k, w_v, w_o, h) if x.shape[1] == 1 else None

    report = check("07-mha", half)
    outcomes = {outcome.name: outcome.failure is None for outcome in report.outcomes}
    assert outcomes["alone"]
    assert not outcomes["heads"]
    assert "NoneType" in capsys.readouterr().out


def test_a_pair_that_holds_no_two_tensors_is_named(capsys):
    right = EXERCISES["03-attention"].reference
    check("03-attention", lambda q, k, v: (right(q, k, v)[0], None))
    assert re.search(r"got       '\(.*\) and NoneType'\n", capsys.readouterr().out)


def test_a_prediction_is_not_given_away(capsys):
    wrong = {**RIGHT_SHAPES, "output": (3, 5, 42), "parameters": 7}
    report = check("07-shapes", wrong)
    printed = capsys.readouterr().out
    assert report.first_failure.name == "output"
    assert "expected  (batch, n, d_model)\n    got       (3, 5, 42): look at" in printed
    assert str(RIGHT_SHAPES["parameters"]) not in printed
    assert str(RIGHT_SHAPES["output"]) not in printed
    check("07-shapes", {**RIGHT_SHAPES, "parameters": 7})
    printed = capsys.readouterr().out
    assert "parameters\n    got       7\n    question  Write the shape" in printed
    assert str(RIGHT_SHAPES["parameters"]) not in printed


def test_a_prediction_is_shown_as_it_was_handed_in(capsys):
    """Not rounded, nor drawn to the number that a known mistake leads to."""
    nearest, symmetry = EXERCISES["01-nearest"], EXERCISES["03-symmetry"]
    right = nearest.as_answer(nearest.reference)
    check("01-nearest", {**right, "random": 0.681})
    assert "    got       0.681\n    question  You compared directions" in (
        capsys.readouterr().out
    )
    right = symmetry.as_answer(symmetry.reference)
    check("03-symmetry", {**right, "random": 0.437})
    assert "    got       0.437\n" in capsys.readouterr().out
    check("03-symmetry", {**right, "random": 0.46})  # half, to one decimal
    assert "✗" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", [Fraction, Decimal, np.float32, np.float64])
@pytest.mark.parametrize("exercise_id", ["01-weights", "01-nearest", "02-predict"])
def test_a_number_may_be_of_any_kind(exercise_id, kind):
    exercise = EXERCISES[exercise_id]
    values = exercise.as_answer(exercise.reference)
    for name in values:
        if isinstance(values[name], int | float):
            values[name] = kind(values[name])
    assert check(exercise_id, values).passed


@pytest.mark.parametrize("number", [Fraction(10**400), Decimal("sNaN")], ids=type)
def test_a_number_that_is_no_float_is_named(number, capsys):
    weights = EXERCISES["01-weights"]
    values = weights.as_answer(weights.reference)
    check("01-weights", {**values, "third": number})
    kind = type(number).__name__
    assert f"    got       a value of type {kind}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("dtype", "digits"), [(torch.float16, "three"), (torch.bfloat16, "two")]
)
def test_a_right_answer_in_half_precision_is_told_so(dtype, digits):
    rounded = asked("02-bug", lambda *inputs: SCALED(*(x.to(dtype) for x in inputs)))
    kind = str(dtype).removeprefix("torch.")
    question = (
        f"Your numbers are nearly right. {kind} keeps about {digits} digits: which "
        "type keeps more?"
    )
    assert rounded == ("even", question)
    assert asked("02-bug", lambda *inputs: SCALED(*inputs).to(dtype) + 1)[1] != question


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("exercise", FRACTIONS, ids=lambda exercise: exercise.id)
def test_a_type_that_rounds_is_named(exercise, dtype):
    """Also where a property looks at something made from what is returned."""

    def rounded(*inputs):
        return exercise.reference(*inputs).to(dtype)

    _, question = asked(exercise.id, rounded)
    assert question.endswith("?")
    assert re.search(rf"\b{str(dtype).removeprefix('torch.')} (keeps|holds)", question)


def test_a_half_precision_number_is_told_so():
    weights = EXERCISES["01-weights"]
    values = weights.as_answer(weights.reference)
    assert (
        "float16 keeps about three digits"
        in asked("01-weights", {**values, "third": np.float16(values["third"])})[1]
    )


@pytest.mark.parametrize(
    ("entry", "value", "expected", "question"),
    [
        ("function", 1, "True or False", "Which of the two is it, True or False?"),
        ("function", "True", "True or False", "That is text; leave out the quotes."),
        ("added", False, "one number", "That says yes or no. Which number is"),
        ("function", False, "", "That is the module's dialect."),
    ],
)
def test_yes_or_no_is_told_from_a_number(entry, value, expected, question, capsys):
    polarity = EXERCISES["04-polarity"]
    right = polarity.as_answer(polarity.reference)
    check("04-polarity", {**right, entry: value})
    wanted = f"    expected  {expected}\n" if expected else ""
    assert f"\n{wanted}    got       {value!r}\n    question  {question}" in (
        capsys.readouterr().out
    )


def test_a_secret_seed_asks_for_other_sizes(capsys):
    assert check("07-shapes", RIGHT_SHAPES).passed
    assert not check("07-shapes", RIGHT_SHAPES, seed="secret").passed
    settings = re.findall(r"^07-shapes (\(.*\))$", capsys.readouterr().out, re.M)
    assert len(set(settings)) == 2
    other = SHAPES.as_answer(SHAPES.reference, "secret")
    assert check("07-shapes", other, seed="secret").passed


def test_a_seed_is_shown_unless_it_is_the_public_one(capsys):
    check("07-mha", MHA)
    check("07-mha", MHA, seed=5)
    check("07-shapes", RIGHT_SHAPES, seed="five")
    first_lines = re.findall(r"^07-.*$", capsys.readouterr().out, re.M)
    assert first_lines[:2] == ["07-mha", "07-mha (seed=5)"]
    assert first_lines[2].endswith(", seed='five')")


@pytest.mark.parametrize("seed", [math.nan, [1], object(), np.int64(3)], ids=type)
def test_what_is_no_seed_is_named(plain, seed):
    exercises = importlib.import_module("mha_teach.exercises")
    message = rf"seed must be None, an int or a str, got {re.escape(repr(seed))[:9]}"
    with pytest.raises(TypeError, match=message):
        exercises.check("07-mha", MHA, seed)


def test_a_result_is_kept_for_the_public_seed_only(capsys, kept_in):
    assert check("07-mha", MHA, seed=5).passed
    solution("07-mha")
    hint("07-mha")
    assert "opens after an attempt" in capsys.readouterr().out
    assert not kept_in.exists()
    assert check("07-mha", MHA).passed
    assert _progress.best() == {"07-mha": 1}
    check("07-mha", lambda *_: 0, seed=5)
    hint("07-mha")
    assert "You have passed 07-mha" in capsys.readouterr().out


def test_a_report_reads_the_same_in_every_process_and_after_any_history(kept_in):
    program = (
        "import torch\n"
        "from mha_teach.exercises import check, hint\n"
        "check('07-mha', lambda x, w_q, w_k, w_v, w_o, h: torch.zeros_like(x))\n"
        "check('07-rank', {'scores': 3})\n"
        "hint('07-mha')\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-X", "utf8", "-W", "error", "-c", program],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        for _ in range(2)
    ]
    assert kept_in.exists()
    assert runs[0].stdout == runs[1].stdout
    assert "Hint 1 of 3: " in runs[0].stdout
    assert not runs[0].stderr


def test_a_notebook_shows_a_report_once():
    report = check("07-mha", MHA)
    assert report._ipython_display_() is None


# Errors in the learner's code


def halved(x):
    return x.view(len(x), 2, -1, 1, 1)


def test_an_error_is_shown_with_its_line_and_its_input(capsys):
    def through_a_helper(x, w_q, w_k, w_v, w_o, h):
        print("q has", (x @ w_q).shape)
        return halved(x.new_ones(3, 5))

    report = check("07-mha", through_a_helper)
    printed = capsys.readouterr().out
    assert not report.passed
    assert "got       RuntimeError: shape '[3, 2, -1, 1, 1]' is invalid" in printed
    assert "line      2 of halved: return x.view(len(x), 2, -1, 1, 1)\n" in printed
    assert re.search(
        r"called    through_a_helper\(x \(batch=\d+, n=\d+, d_model=(\d+)\), "
        r"w_q \(d_model=\1, h·d_k=\d+\), .*, h=\d+\)\n",
        printed,
    )
    assert re.search(r"printed   q has torch\.Size\(\[\d+, \d+, \d+\]\)\n", printed)
    assert printed.count("q has") == 1


def test_an_error_in_a_callable_of_any_kind_is_an_outcome(capsys):
    class Module(nn.Module):
        def forward(self, x, w_q, w_k, w_v, w_o, h):
            return x @ w_o

    check("07-mha", Module())
    assert "line      2 of forward: return x @ w_o\n" in capsys.readouterr().out
    check("07-mha", functools.partial(Module().forward))
    assert "line      2 of forward: return x @ w_o\n" in capsys.readouterr().out
    check("07-mha", lambda *inputs: torch.ones(2) @ torch.ones(3))
    assert "line      1 of <lambda>: " in capsys.readouterr().out


def test_the_line_of_a_decorated_function_is_its_own(capsys):
    @torch.no_grad()
    def decorated(x, w_q, w_k, w_v, w_o, h):
        return x @ w_o

    check("07-mha", decorated)
    assert "line      3 of decorated: return x @ w_o\n" in capsys.readouterr().out


def test_a_misspelt_name_needs_no_question(capsys):
    check("07-mha", lambda *inputs: misspelt)  # noqa: F821
    printed = capsys.readouterr().out
    assert "got       NameError: name 'misspelt' is not defined\n" in printed
    assert "question" not in printed


class Hostile:
    """An object that raises whatever is asked of it."""

    def __getattribute__(self, name):
        raise OSError(name)

    __repr__ = __str__ = __call__ = None


class UnreadableError(Exception):
    def __str__(self):
        raise OSError("str")

    __repr__ = __str__


def raising(error):
    def answer(*inputs):
        raise error

    return answer


def in_itself(result):
    result.append(result)
    return result


def wrapped_by_itself():
    """Return a function that never ends for whoever unwraps it, doctest included."""

    def answer(*inputs):
        raise ValueError("inside")

    answer.__wrapped__ = answer
    return answer


@pytest.mark.parametrize(
    "answer",
    [
        lambda *inputs: sys.exit(3),
        raising(GeneratorExit()),
        raising(BaseException()),
        raising(UnreadableError()),
        wrapped_by_itself(),
        lambda *inputs: Hostile(),
        lambda *inputs: in_itself([]),
        lambda *inputs: {"q": in_itself([])},
        lambda *inputs: torch.sparse_coo_tensor(size=(2, 3)).to_sparse_csr(),
        lambda *inputs: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        in_itself([]),
    ],
    ids=[
        "exit",
        "generator exit",
        "no usual error",
        "unreadable error",
        "wrapped by itself",
        "hostile result",
        "list in itself",
        "dict of a list in itself",
        "sparse",
        "nested",
        "answer in itself",
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch warns of its prototypes
@pytest.mark.parametrize("exercise_id", ["07-mha", "07-bug"])
def test_nothing_that_an_answer_does_is_raised(exercise_id, answer):
    report = check(exercise_id, answer)
    assert not report.passed
    assert not report.not_attempted


@pytest.mark.parametrize("make", [Hostile, lambda: in_itself([])], ids=["any", "list"])
def test_nothing_that_a_value_does_is_raised(make):
    assert check("07-shapes", {**RIGHT_SHAPES, "q": make()}).score < 2
    assert check("07-shapes", {"q": make()}).score == 0
    assert check("07-shapes", make()).score == 0
    assert check("07-mha", make()).score == 0


class Odd:
    """An object that raises when it is compared, counted, printed or read."""

    def raises(self, *args, **kwargs):
        raise OSError

    __eq__ = __len__ = __repr__ = __array__ = raises
    __hash__ = None


class OddList(list):
    def __iter__(self):
        raise OSError


class OddText(str):
    def strip(self):
        raise OSError


RAISES = "something that raises OSError when looked at"
ODD_VALUES = {
    "raises in all": (Hostile, RAISES),
    "raises in some": (Odd, "a value of type Odd"),
    "generator": (lambda: (n for n in (3, 7, 5, 6)), "a value of type generator"),
    "long range": (lambda: range(10**12), "a value of type range"),
    "module": (lambda: nn.Linear(2, 3), "a value of type Linear"),
    "nested dict": (lambda: {"q": {"of": [3, (7, {5})]}}, "a value of type dict"),
    "nested list": (lambda: [[3, [7]], 5], "a list of 2"),
    "list in itself": (lambda: in_itself([]), "a list of 1"),
    "huge": (lambda: torch.ones(1).expand(10**12), "a tensor of shape (1000000000000,"),
    "on no device": (lambda: torch.ones(2, device="meta"), "a tensor of shape (2,)"),
    "objects": (lambda: np.array([object()]), "a value of type ndarray"),
    "mock": (mock.MagicMock, "a value of type MagicMock"),
    "long list of text": (lambda: ["a long word or two"] * 3, "a list of 3"),
}


@pytest.mark.parametrize(("make", "got"), ODD_VALUES.values(), ids=ODD_VALUES)
@pytest.mark.parametrize(
    ("exercise_id", "entry"),
    [("07-shapes", "q"), ("07-shapes", "parameters"), ("07-rank", "why")],
)
def test_an_odd_value_is_named_and_costs_its_own_entry_alone(
    exercise_id, entry, make, got, capsys
):
    exercise = EXERCISES[exercise_id]
    right = exercise.as_answer(exercise.reference)
    report = check(exercise_id, {**right, entry: make()})
    assert [o.name for o in report.outcomes if not o.holds] == [entry]
    assert f"    got       {got}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("exercise_id", "entry", "value"),
    [("07-shapes", "q", OddList([3])), ("07-rank", "why", OddText("four " * 9))],
)
def test_a_value_that_raises_when_read_costs_its_own_entry_alone(
    exercise_id, entry, value, capsys
):
    exercise = EXERCISES[exercise_id]
    right = exercise.as_answer(exercise.reference)
    report = check(exercise_id, {**right, entry: value})
    assert [o.name for o in report.outcomes if not o.holds] == [entry]
    assert (
        f"    got       {RAISES}\n    question  Which object of your own is in it?"
        in capsys.readouterr().out
    )


def test_odd_values_alone_are_an_attempt():
    report = check("07-shapes", dict.fromkeys(RIGHT_SHAPES, Hostile()))
    assert [o.name for o in report.outcomes if o.failure] == list(RIGHT_SHAPES)


def test_an_odd_value_beside_nothing_leaves_the_rest_not_filled_in():
    report = check("07-shapes", {"q": Hostile(), "weights": None})
    assert [o.name for o in report.outcomes if o.failure] == ["q"]
    assert [o.name for o in report.outcomes if not o.filled_in] == (
        ["weights", "output", "parameters", "more"]
    )


def test_a_result_that_raises_fails_the_property_alone():
    def at_times_odd(x, w_q, w_k, w_v, w_o, h):
        lone = x.shape[1] == 1
        return OddList() if lone else MHA(x, w_q, w_k, w_v, w_o, h)

    report = check("07-mha", at_times_odd)
    assert [o.name for o in report.outcomes if o.failure] == ["alone"]


def test_what_cannot_be_looked_at_is_named(capsys):
    check("07-mha", raising(UnreadableError()))
    assert "got       something that raises OSError when looked at\n" in (
        capsys.readouterr().out
    )
    check("07-mha", lambda *inputs: sys.exit(3))
    assert "got       SystemExit: 3\n" in capsys.readouterr().out


def test_an_interrupt_passes_through():
    with pytest.raises(KeyboardInterrupt):
        check("07-mha", raising(KeyboardInterrupt()))

    class Interrupted(dict):
        def values(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("07-shapes", Interrupted())


def test_endless_recursion_is_an_outcome(capsys):
    def endless(*inputs):
        return endless(*inputs)

    assert not check("07-mha", endless).passed
    assert "RecursionError: maximum recursion depth" in capsys.readouterr().out


def test_prints_are_shown_only_where_they_help(capsys):
    def talkative(x, w_q, w_k, w_v, w_o, h):
        for i in range(9):
            print("line", i)
        return MHA(x, w_q, w_k, w_v, w_o, h)

    assert check("07-mha", talkative).passed
    assert "line" not in capsys.readouterr().out

    def talkative_and_wrong(x, w_q, w_k, w_v, w_o, h):
        return talkative(x, w_q, w_k, w_v, w_o, h) + 1

    check("07-mha", talkative_and_wrong)
    printed = capsys.readouterr().out
    assert re.findall(r"line (\d)|(…)", printed) == [
        *((str(i), "") for i in range(5)),
        ("", "…"),
    ]


def test_a_long_line_is_cut(capsys):
    def long_winded(*inputs):
        print("p" * 200)
        print("q" * 200_000)
        raise ValueError("r" * 200_000)

    check("07-mha", long_winded)
    printed = capsys.readouterr().out
    assert f"printed   {'p' * 200}\n              {'q' * 200}…\n" in printed
    assert f"got       ValueError: {'r' * 200}…\n" in printed


def test_writing_into_an_input_is_named_and_harms_nothing_else(capsys):
    def in_place(x, w_q, w_k, w_v, w_o, h):
        output = MHA(x, w_q, w_k, w_v, w_o, h)
        x.mul_(2)
        w_o.zero_()
        return output

    report = check("07-mha", in_place)
    printed = capsys.readouterr().out
    assert [o.name for o in report.outcomes if o.failure] == ["inputs"]
    assert "got       w_o and x overwritten\n" in printed


def test_a_changed_view_of_an_input_is_named(capsys):
    def reshaped(x, w_q, w_k, w_v, w_o, h):
        output = MHA(x, w_q, w_k, w_v, w_o, h)
        w_q.t_()
        return output

    check("07-mha", reshaped)
    assert "got       w_q overwritten\n" in capsys.readouterr().out


def test_the_smallest_change_of_an_input_is_noticed(capsys):
    def clamped(weights):
        result = EXERCISES["02-entropy"].reference(weights)
        weights.clamp_(min=1e-12)
        return result

    report = check("02-entropy", clamped)
    assert [o.name for o in report.outcomes if o.failure] == ["inputs"]
    assert "got       weights overwritten\n" in capsys.readouterr().out


def test_a_change_of_a_list_is_noticed(capsys):
    def shortened(lengths, n_k):
        result = EXERCISES["04-padding"].reference(list(lengths), n_k)
        lengths.pop(0)
        return result

    report = check("04-padding", shortened)
    assert [o.name for o in report.outcomes if o.failure] == ["inputs"]
    assert "got       lengths overwritten\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "changed", "same"),
    [
        (torch.tensor([1.0, math.nan]), lambda x: x.mul_(-1), False),
        (torch.tensor([1.0, math.nan]), lambda x: x.requires_grad_(), True),
        (torch.tensor(0.0), lambda x: x.neg_(), False),
        (torch.eye(3), lambda x: x.t_(), True),  # no number differs
        (torch.ones(2, 3).mT, lambda x: x.unsqueeze_(0), False),
        (torch.tensor([True]), lambda x: x.logical_not_(), False),
        ([3, 5], lambda x: x.reverse(), False),
        ([3, 5], lambda x: x.append(Hostile()), False),
        ([3, 5], lambda x: x.__setitem__(0, Hostile()), False),
        ([3, 5], lambda x: x.copy(), True),
    ],
    ids=range(10),
)
def test_what_is_changed_is_told_bit_by_bit(before, changed, same):
    after = copy.deepcopy(before)
    changed(after)
    assert is_unchanged(before, after) == same


def test_a_part_of_a_tensor_is_compared_like_a_whole_one():
    whole = torch.arange(12.0).view(3, 4)
    assert is_unchanged(whole[:, :1], whole[:, :1].clone())
    assert not is_unchanged(whole[:, :1], whole[:, 1:2])


@pytest.mark.parametrize(
    "altered",
    [
        lambda y: y.double(),
        lambda y: y.numpy(),
        lambda y: y.tolist(),
        lambda y: y.requires_grad_(),
        lambda y: y.mT.contiguous().mT,
        lambda y: y + 1e-6,
        lambda y: nn.Parameter(y),
    ],
    ids=["double", "numpy", "list", "grad", "strided", "rounding", "parameter"],
)
def test_the_form_of_a_right_result_does_not_matter(altered):
    outcomes = check("07-mha", lambda *inputs: altered(MHA(*inputs))).outcomes
    numbers = [o for o in outcomes if o.name not in ("shape", "scale")]
    assert all(outcome.failure is None for outcome in numbers)


@pytest.mark.parametrize(
    "result",
    [
        "text",
        7,
        object(),
        {"output": 3},
        [torch.ones(2), torch.ones(3)],
        torch.ones(2, 3, dtype=torch.complex64),
        torch.ones(2, 3, device="meta"),
        torch.eye(3).to_sparse(),
        np.array(["a", "b"]),
        torch.full((2, 2), torch.nan),
        ValueError("returned, not raised"),
    ],
    ids=lambda result: type(result).__name__,
)
def test_a_result_of_another_kind_is_an_outcome(result):
    for exercise_id in ("07-mha", "07-bug"):
        report = check(exercise_id, lambda *inputs: result)
        assert not report.passed
        assert not report.not_attempted
    values = dict.fromkeys(RIGHT_SHAPES, result)
    assert check("07-shapes", values).score == 0


def test_the_random_stream_of_the_notebook_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()

    def noisy(*inputs):
        torch.manual_seed(5)
        return MHA(*inputs) + 1e-7 * torch.randn(())

    assert check("07-mha", noisy).passed
    check("07-rank", {"scores": 3})
    assert torch.equal(torch.get_rng_state(), before)


def test_a_random_answer_gets_the_same_report_after_any_history():
    def random_error(*inputs):
        raise ValueError(torch.rand(()).item())

    reports = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        reports.append(str(check("07-mha", random_error)))
    assert reports[0] == reports[1]


KERNELS = ("math", "flash", "mem_efficient", "cudnn")


def settings():
    numpy_state = np.random.get_state(legacy=False)  # noqa: NPY002
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
        "deterministic": torch.get_deterministic_debug_mode(),
        "matmul": torch.get_float32_matmul_precision(),
        "autocast": torch.get_autocast_dtype("cpu"),
        "autocast cache": torch.is_autocast_cache_enabled(),
        **{name: getattr(cuda, f"{name}_sdp_enabled")() for name in KERNELS},
        "numpy prints": np.get_printoptions(),
        "numpy errors": np.geterr(),
        "warnings": warnings.filters[:],
        "random": random.getstate(),
        "numpy": (numpy_state["state"]["pos"], numpy_state["state"]["key"].tolist()),
        "torch": torch.get_rng_state().tolist(),
    }


def enable_kernels(enabled):
    for name in KERNELS:
        getattr(cuda, f"enable_{name}_sdp")(enabled)


def unsettle(*inputs):
    torch.set_default_dtype(torch.float16)
    torch.set_default_device("meta")
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("high")
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_cache_enabled(False)
    enable_kernels(False)
    np.set_printoptions(precision=2)
    np.seterr(all="raise")
    warnings.simplefilter("ignore")
    random.random()
    np.random.random()  # noqa: NPY002
    torch.manual_seed(3)


@pytest.fixture
def resettled():
    with warnings.catch_warnings(), np.errstate(), np.printoptions():
        yield
    enable_kernels(True)
    torch.set_autocast_cache_enabled(True)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_float32_matmul_precision("highest")
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("default")


@pytest.mark.usefixtures("resettled")
@pytest.mark.parametrize("ending", [MHA, raising(OSError()), raising(SystemExit())])
def test_what_an_answer_sets_is_restored(plain, ending):  # beartype draws at random
    exercises = importlib.import_module("mha_teach.exercises")
    torch.set_deterministic_debug_mode("warn")
    before = settings()
    report = exercises.check("07-mha", lambda *inputs: unsettle() or ending(*inputs))
    assert settings() == before
    assert report.passed == (ending is MHA)
    assert not torch.overrides.has_torch_function(())  # no mode is left on
    unsettle()
    after = settings()
    assert [name for name in before if before[name] == after[name]] == []


@pytest.mark.usefixtures("resettled")
def test_what_an_answer_sets_is_restored_after_an_interrupt():
    device = torch.get_default_device()

    def interrupted(*inputs):
        unsettle()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check("07-mha", interrupted)
    assert torch.get_default_device() == device
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.usefixtures("resettled")
def test_what_an_answer_sets_does_not_reach_the_next_property():
    seen = []

    def unsettling(*inputs):
        seen.append((torch.get_default_device().type, torch.get_default_dtype()))
        unsettle()
        return MHA(*inputs)

    check("07-mha", unsettling)
    assert len(seen) > 1
    assert set(seen) == {("cpu", torch.float32)}


def test_another_default_dtype_changes_nothing():
    torch.set_default_dtype(torch.float64)
    try:
        assert check("07-mha", MHA).passed
        assert check("07-bug", chapter_07.rebuilt).passed
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("resettled")
def test_another_default_device_changes_nothing():
    def is_right():
        return check("07-mha", MHA).passed and check("07-shapes", RIGHT_SHAPES).passed

    meta = torch.device("meta")
    torch.set_default_device(meta)
    assert is_right()
    assert torch.get_default_device() == meta
    torch.set_default_device(None)
    with meta:
        assert is_right()
        assert torch.get_default_device() == meta
    assert torch.get_default_device() == torch.device("cpu")


def test_comparisons_cannot_be_patched_away(monkeypatch):
    def always(*args, **kwargs):
        return True

    for owner, name in (
        (torch, "allclose"),
        (torch, "equal"),
        (torch, "isclose"),
        (torch.Tensor, "allclose"),
        (torch.Tensor, "equal"),
        (torch.Tensor, "tolist"),
        (torch.testing, "assert_close"),
        (np, "allclose"),
        (math, "isclose"),
    ):
        monkeypatch.setattr(owner, name, always)
    report = check("07-mha", lambda x, w_q, w_k, w_v, w_o, h: torch.zeros_like(x))
    assert report.score < 1


# What is asked about a wrong answer


def changed(function, *edits):
    namespace = {"torch": torch}
    exec(slip(function, *edits).source, namespace)
    return namespace[function.__name__]


def asked(exercise_id, answer):
    failure = check(exercise_id, answer).first_failure
    return failure.name, failure.failure.question


SIZES = "Write the shape of each tensor on this line. Which two sizes must agree?"
USUAL_WIDTH = "h·d_k need not be d_model. From which tensor can you read d_k?"
WHICH_STEP = (
    "Say what each axis of your result stands for. Which step of the formula is "
    "missing, or came too early?"
)
MERGED = "head_outputs.transpose(1, 2).flatten(2)"
SPLIT = "y.unflatten(-1, (h, -1)).transpose(1, 2)"


@pytest.mark.parametrize(
    ("edits", "question"),
    [
        (["x @ w_q", "x @ w_q.T"], SIZES),
        (["k.mT", "k"], SIZES),
        ([SPLIT, "y.unflatten(-1, (h, -1))"], SIZES),
        ([MERGED, "head_outputs.flatten(2)"], SIZES),
        ([MERGED, "head_outputs.mean(1)"], SIZES),
        ([MERGED, "head_outputs.sum(1)"], SIZES),
        ([MERGED, "torch.cat(list(head_outputs.unbind(1)))"], SIZES),
        ([MERGED, "head_outputs[:, 1:].transpose(1, 2).flatten(2)"], SIZES),
        (
            [MERGED, "head_outputs.transpose(1, 2).view(*x.shape[:2], -1)"],
            "After a transpose the numbers lie in memory as before. Which call lays "
            "them out in the new order?",
        ),
        (
            ["softmax(dim=-1)", "softmax(dim=5)"],
            "How many axes has each tensor on this line? Name them, counting from 0.",
        ),
        (
            [f"{MERGED} @ w_o", "list(head_outputs.unbind(1))"],
            "You return a list of 2 tensors. Which call makes one of them, and along "
            "which axis?",
        ),
        (
            [f"{MERGED} @ w_o", "head_outputs.unbind(1)"],
            "You return a tuple of 2 tensors. Which call makes one of them, and along "
            "which axis?",
        ),
        (
            [f"{MERGED} @ w_o", "[q, scores]"],
            "You return a list of 2 tensors. They differ in shape: how should one "
            "tensor hold them all?",
        ),
        (
            ["@ w_o", "@ w_o.max(dim=0)"],
            "Some calls return two things, such as values and their places. Which of "
            "them does this line need?",
        ),
        (
            [f"{MERGED} @ w_o", "x.max(dim=1)"],
            "You return several things at once. Which one is asked for?",
        ),
        (
            ["@ w_o", "@ w_o, scores"],
            "You return a tuple of 2 tensors. Which one is asked for?",
        ),
        (
            ["return head_outputs", "return 3 or head_outputs"],
            "You return a value of type int. Which tensor is asked for?",
        ),
        ([f"{MERGED} @ w_o", "scores.softmax(dim=-1)"], WHICH_STEP),
        (["@ w_o", "@ w_o[:, 1:]"], WHICH_STEP),
        (
            [SPLIT, "y.view(*y.shape[:2], h, x.shape[-1] // h).transpose(1, 2)"],
            USUAL_WIDTH,
        ),
        (
            [
                SPLIT,
                "torch.stack([y[..., i * (x.shape[-1] // h) : (i + 1) * (x.shape[-1] "
                "// h)] for i in range(h)], dim=1)",
            ],
            USUAL_WIDTH,
        ),
    ],
)
def test_a_wrong_kind_of_result_gets_the_question_of_its_kind(edits, question):
    assert asked("07-mha", changed(MHA, *edits)) == ("shape", question)


def test_a_list_of_numbers_is_told_from_a_list_of_heads():
    answer = asked("07-mha", lambda *inputs: MHA(*inputs).tolist())
    assert answer == ("shape", "You return a list. Which call makes one tensor of it?")


def test_a_result_that_cannot_be_looked_at_is_asked_about_not_the_looking():
    def questions(result):
        outcomes = check("07-mha", lambda *inputs: result(MHA(*inputs))).outcomes
        return {outcome.name: outcome.failure.question for outcome in outcomes}

    assert questions(list)["scale"].startswith("You return a list of 1 tensors. Wh")
    assert questions(lambda y: y[0])["scale"] == (
        "How many products does one score add up?"
    )


def test_an_error_outside_the_learners_lines_is_asked_about_not_the_last_result():
    assert asked("02-bug", nn.Linear(3, 3)) == (
        "shape",
        "Which arguments does this call take, and which of them does it get here?",
    )


def test_the_questions_of_a_kind_are_those_of_any_exercise():
    rebuilt = chapter_07.rebuilt
    assert asked("07-bug", changed(rebuilt, "k.mT", "k"))[1] == SIZES
    answer = changed(rebuilt, "return", "return [x, x] #")
    assert asked("07-bug", answer)[1].startswith("You return a list of 2 tensors. W")


@pytest.mark.parametrize(
    ("error", "question"),
    [
        (
            TypeError("unsupported operand type(s) for @: 'AttentionResult' and 'Tens"),
            "scaled_dot_product_attention returns a pair, output and weights. Which of "
            "the two does this line need?",
        ),
        (
            TypeError("list indices must be integers or slices, not tuple"),
            "There is a list on this line where a tensor is needed. Which call makes a "
            "tensor of it?",
        ),
        (
            TypeError("'<' not supported between instances of 'Tensor' and 'list'"),
            "There is a list on this line where a tensor is needed. Which call makes a "
            "tensor of it?",
        ),
        (
            TypeError('can only concatenate tuple (not "Tensor") to tuple'),
            "There is a tuple on this line where one tensor is needed. Which part of "
            "it do you mean?",
        ),
        (
            TypeError('softmax() missing 1 required positional arguments: "dim"'),
            "Which arguments does this call take, and which of them does it get here?",
        ),
        (
            RuntimeError("both arguments to matmul need to be at least 1D, but they a"),
            "How many axes has each tensor on this line? Name them, counting from 0.",
        ),
        (
            RuntimeError("expected m1 and m2 to have the same dtype, but got: float !"),
            "What kind of numbers does each tensor on this line hold? Print its dtype.",
        ),
        (
            RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous"
            ),
            "A yes or no is asked for here, and this tensor holds many. Is it meant "
            "for all, for any, or for each?",
        ),
        (
            IndexError("index 5 is out of bounds for dimension 1 with size 5"),
            "Along which axis does this index count, and how long is that axis here?",
        ),
        (
            RuntimeError(
                "The size of tensor a (5) must match the size of tensor b (3)"
                " at non-singleton dimension 1"
            ),
            "Write the shapes on this line under each other, aligned at the right. "
            "Which axes meet, and which should?",
        ),
        (
            RuntimeError("shape '[7, -1, 3]' is invalid for input of size 770"),
            "How many numbers are there to be cut anew, and for how many do the new "
            "sizes make room?",
        ),
        (
            RecursionError("maximum recursion depth exceeded"),
            "A function calls itself here. What would make it stop?",
        ),
        (
            AttributeError("'Tensor' object has no attribute 'tranpose'"),
            "What does each name on this line stand for? Print it, or type and shape.",
        ),
        (NameError("name 'misspelt' is not defined"), ""),
        (ModuleNotFoundError("No module named 'torhc'"), ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_asked_about(error, question):
    assert asked("07-mha", raising(error)) == ("shape", question)


def test_an_error_of_the_package_is_not_explained_twice():
    def answer(x, w_q, w_k, w_v, w_o, h):
        return scaled_dot_product_attention(x, x, x, torch.ones(2))

    assert asked("07-mha", answer) == (
        "shape",
        "The message says what does not fit. Which part of this line is it?",
    )


def test_an_error_that_comes_with_the_gradients_is_asked_about():
    def attention(q, k, v, mask):
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf"))
        weights = scores.softmax(dim=-1)
        weights[weights.isnan()] = 0
        return weights @ v, weights

    assert asked("04-attention", attention) == (
        "gradients",
        "The gradient needs a tensor as it was. Which line writes into one, and which "
        "call returns a new one instead?",
    )


def test_a_list_of_tensors_is_not_read_as_a_shape(capsys):
    check("02-entropy", lambda weights: [torch.tensor(1.0) for _ in weights])
    assert "\n    got       a list of 7\n" in capsys.readouterr().out
    check("02-entropy", lambda weights: [0.5, 1.5])
    assert "\n    got       a list of 2\n" in capsys.readouterr().out


# A number or a nan is easily the same: a known slip must then agree throughout


def attention_with(line):
    def attention(q, k, v, mask):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = line(scores, mask).softmax(dim=-1)
        return weights @ v, weights

    return attention


INF = float("inf")


@pytest.mark.parametrize(
    ("line", "question"),
    [
        (
            lambda s, mask: s.masked_fill(mask, -INF),
            "Every entry of the mask is True h",
        ),
        (lambda s, mask: torch.where(mask, -INF, s), "Every entry of the mask is True"),
        (
            lambda s, mask: s.masked_fill(mask, -1e9),
            "Every entry of the mask is True h",
        ),
        (lambda s, mask: s + ~mask * -INF, "Everything is nan. What is 0 · ∞, and wha"),
        (lambda s, mask: s + mask * -INF, "Everything is nan. What is 0 · ∞, and what"),
        (lambda s, mask: s * -INF, "Every entry of the mask is True here, so nothing "),
        (
            lambda s, mask: s * 0,
            "Every entry of the mask is True here, so nothing is f",
        ),
    ],
)
def test_only_a_mask_that_is_the_wrong_way_round_is_called_so(line, question):
    name, asked_for = asked("04-attention", attention_with(line))
    assert name == "free"
    assert asked_for.startswith(question)
    polarity = asked_for.endswith("What does True mean in this book?")
    assert polarity == ("and you " in asked_for)


def test_a_test_of_masks_is_asked_about_what_it_overlooks():
    """What is asked is true of a test that always says yes, too."""
    assert asked("04-leak", lambda attend, n: True) == (
        "everyone",
        "Everyone sees everyone, and your test says all is well. Which change must "
        "move no output?",
    )


@pytest.mark.parametrize(
    ("exercise_id", "edits"),
    [
        ("07-mha", ["q.shape[-1] ** 0.5", "torch.tensor(-3.0) ** 0.5"]),
        ("07-mha", ["scores.softmax", "(scores - torch.inf).softmax"]),
        ("07-bug", [" ** 0.5", " ** 0.5 * torch.nan"]),
    ],
)
def test_nan_has_a_question_of_its_own(exercise_id, edits):
    answer = changed(EXERCISES[exercise_id].reference, *edits)
    assert asked(exercise_id, answer)[1] == (
        "nan comes from 0/0, 0 · ∞, a root of a negative number or a softmax over only "
        "−∞. Which line can do that?"
    )


def test_a_nan_that_only_the_check_makes_is_not_asked_about():
    def beyond_one(x, w_q, w_k, w_v, w_o, h):
        is_weight = x.shape[:2] == (1, 2) and w_q.abs().max() < 8
        return MHA(x, w_q, w_k, w_v, w_o, h) * (10 if is_weight else 1)

    assert asked("07-mha", beyond_one) == (
        "scale",
        "How many products does one score add up?",
    )


@pytest.mark.parametrize(("dim", "axis"), [(1, "heads"), (0, "batch")])
def test_softmax_over_an_axis_of_bystanders_is_named(dim, axis):
    _, question = asked(
        "07-mha", changed(MHA, "softmax(dim=-1)", f"softmax(dim={dim})")
    )
    assert (
        question == f"Your weights sum to one over the {axis}; over what should they?"
    )


@pytest.mark.parametrize("seed", [None, *range(9)])
def test_a_scale_by_the_tokens_is_not_taken_for_one_by_d_model(seed):
    by_tokens = changed(MHA, "q.shape[-1] ** 0.5", "x.shape[1] ** 0.5")
    found = check("07-mha", by_tokens, seed).first_failure
    assert found.name == "scale"
    assert found.failure.question == "How many products does one score add up?"


@pytest.mark.parametrize("scale", ["1", "(q.shape[-1] // h) ** 0.5", "x.shape[-1]"])
def test_heads_are_counted_before_the_scale(scale):
    one_head = changed(MHA, SPLIT, "y[:, None]", "q.shape[-1] ** 0.5", scale)
    assert asked("07-mha", one_head) == (
        "several",
        "Your output does not change with h. Where do you use h?",
    )


def test_of_two_slips_alike_here_the_one_alike_elsewhere_is_asked_about():
    answer = changed(chapter_07.rebuilt, "x @ w_v.T", "x @ w_v")
    name, question = asked("07-bug", answer)
    assert name == "values"
    assert question.startswith("Queries and keys are not looked at here.")


@pytest.mark.parametrize(
    "besides",
    [
        ("out_weight.T", "out_weight"),
        ("softmax(dim=-1)", "softmax(dim=-2)"),
        (" / q.shape[-1] ** 0.5", ""),
    ],
    ids=["w_o", "softmax", "scale"],
)
@pytest.mark.parametrize(
    "projections",
    [
        "x @ w_q + b_q, x @ w_k + b_k, x @ w_v + b_v",
        "x @ w_q.T + b_q, x @ w_k.T + b_k, x @ w_v + b_v",
    ],
    ids=["as given", "values left"],
)
def test_a_second_slip_is_not_taken_for_mended_scores(projections, besides):
    mended = "x @ w_q.T + b_q, x @ w_k.T + b_k, x @ w_v.T + b_v"
    answer = changed(chapter_07.rebuilt, mended, projections, *besides)
    name, question = asked("07-bug", answer)
    assert name == "values"
    assert question.endswith("How does nn.Linear use its weight?")
    assert "W^Q" not in question


@pytest.mark.parametrize(
    ("entry", "value", "got", "question"),
    [
        ("q", "(3,7,5,6)", "'(3,7,5,6)'", "That is text; leave out the quotes."),
        ("parameters", "4*56*42", "'4*56*42'", "That is text; leave out the quotes."),
        ("more", False, "False", "That says yes or no. Which number is asked for?"),
        ("more", torch.tensor(False), "False", "That says yes or no. Which number is"),
        ("more", [0, 0], "a list of 2", "One number is asked for. Which of yours"),
        ("parameters", 9590, "9590", "You counted a bias for each matrix. Does this m"),
    ],
    ids=["shape as text", "sum as text", "bool", "bool tensor", "list", "biases"],
)
def test_a_value_of_another_kind_is_named(entry, value, got, question, capsys):
    check("07-shapes", {**RIGHT_SHAPES, entry: value})
    printed = capsys.readouterr().out
    assert f"    got       {got}\n    question  {question}" in printed
    assert "torch." not in printed
    assert "number of numbers" not in printed


@pytest.mark.parametrize("scores", [[4, 4, 4], torch.tensor([4, 4, 4])], ids=type)
def test_one_rank_is_asked_for(scores, capsys):
    check("07-rank", {"scores": scores, "weights": 13})
    printed = capsys.readouterr().out
    assert "    expected  one number\n" in printed
    assert "    question  One number, of one head. Which axis of trace.s" in printed


def test_no_early_hint_gives_the_bug_away():
    assert ".T" not in " ".join(EXERCISES["07-bug"].hints[:2])


# Nothing handed in, or not in the form asked for


def left_out(*inputs):
    raise NotImplementedError


@pytest.mark.parametrize(
    "answer",
    [
        None,
        ...,
        "",
        "  ",
        {},
        (),
        {"q": None, "weights": ..., "output": "", "parameters": [], "more": (None,)},
    ],
    ids=repr,
)
@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_an_empty_answer_is_not_attempted(exercise_id, answer, capsys, kept_in):
    report = check(exercise_id, answer)
    assert report.not_attempted
    assert not report.passed
    assert report.score == 0
    assert capsys.readouterr().out == (
        f"{exercise_id}: not attempted yet. "
        f'Fill in your answer, then hand it in: check("{exercise_id}", your_answer).\n'
    )
    assert repr(report) == f"<Report {exercise_id}: not attempted>"
    assert not kept_in.exists()


@pytest.mark.parametrize(
    ("stub", "reason"),
    [
        (lambda *_: None, "returns None. If you have written it, add a return."),
        (lambda *_: ..., "returns Ellipsis. If you have written it, add a return."),
        (left_out, "left_out raises NotImplementedError."),
    ],
    ids=["None", "dots", "raises"],
)
@pytest.mark.parametrize("exercise_id", ["07-mha", "07-bug"])
def test_a_stub_is_not_attempted(exercise_id, stub, reason, capsys, kept_in):
    assert check(exercise_id, stub).not_attempted
    assert reason in capsys.readouterr().out
    assert not kept_in.exists()


def test_what_torch_has_not_implemented_is_an_error_all_the_same():
    def on_meta(x, *others):
        return x.to("meta").tolist()

    report = check("07-mha", on_meta)
    assert not report.not_attempted
    assert "NotImplementedError" in str(report)


def test_a_missing_return_further_on_is_no_stub(capsys):
    def sometimes(x, w_q, w_k, w_v, w_o, h):
        return MHA(x, w_q, w_k, w_v, w_o, h) if x.shape[1] > 1 else None

    check("07-mha", sometimes)
    assert "got       nothing yet\n" in capsys.readouterr().out


def test_the_code_as_given_is_not_attempted(capsys):
    given = EXERCISES["07-bug"].given
    namespace = {}
    exec(given.source.replace("weights", "p"), namespace)
    assert check("07-bug", namespace["rebuilt"]).not_attempted
    assert (
        "rebuilt still gives the numbers of the code as given."
        in capsys.readouterr().out
    )


def test_a_half_filled_answer_is_told_what_is_missing(capsys):
    report = check("07-shapes", {"q": RIGHT_SHAPES["q"], "weights": None})
    printed = capsys.readouterr().out
    assert "✓ q: the shape of q\n· weights: not filled in\n· output: not f" in printed
    assert printed.endswith(
        "\n1 of 5 properties hold. Half of the points go by that share, the rest "
        "need all of them: 0.2 of 2 points.\n"
    )
    assert "✗" not in printed
    assert "question" not in printed
    assert report.first_failure is None
    assert not report.passed
    assert report.score == 0.2


def test_an_entry_that_nobody_asked_for_is_named(capsys):
    right = {**RIGHT_SHAPES, "Weights": RIGHT_SHAPES["weights"]}
    del right["weights"]
    check("07-shapes", right)
    assert "\n? Weights: no entry of this exercise\n4 of 5" in capsys.readouterr().out
    assert check("07-shapes", {**RIGHT_SHAPES, "mine": 1}).passed
    assert "mine" not in capsys.readouterr().out


def test_what_is_not_filled_in_hides_no_wrong_entry(capsys):
    report = check("07-rank", {"scores": None, "weights": 7, "half": 2, "why": " "})
    printed = capsys.readouterr().out
    assert report.first_failure.name == "weights"
    assert "· scores: not filled in\n✗ weights: " in printed
    assert "✓ half: " in printed
    assert "· why: not filled in\n" in printed


def test_an_answer_left_out_is_no_error(capsys):
    assert check("07-mha").not_attempted
    assert 'check("07-mha", your_answer)' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("exercise_id", "answer", "expected", "got"),
    [
        (
            "07-mha",
            torch.ones(2),
            "a function of (x, w_q, w_k, w_v, w_o, h)",
            "Tensor\n    question  Did you call it?",
        ),
        ("07-mha", lambda x, h: x, "a function of (x, w_q,", "<lambda>(x, h)"),
        ("07-mha", nn.Linear, "a function of (x, w_q, ", "Linear(in_features"),
        ("07-shapes", (3, 5), "a dict with the entries of the st", "tuple: (3, 5)"),
        ("07-shapes", lambda: 3, "a dict with the entries of the ", "function: <func"),
    ],
    ids=["tensor", "signature", "type", "tuple", "function"],
)
def test_an_answer_of_the_wrong_form(exercise_id, answer, expected, got, capsys):
    report = check(exercise_id, answer)
    printed = capsys.readouterr().out
    assert report.score == 0
    assert not report.not_attempted
    assert not report.attempted
    solution(exercise_id)
    assert "opens after an attempt" in capsys.readouterr().out
    assert f"expected  {expected}" in printed
    assert f"got       {got}" in printed


def by_name(q, k, *, v, temperature):
    return ANSWERS(q, k, v, temperature)


@pytest.mark.parametrize(
    "answer",
    [
        by_name,
        functools.partial(by_name),
        lambda q, k, v, /, *, temperature=1: ANSWERS(q, k, v, temperature),
        lambda q, k, v, temperature, /: ANSWERS(q, k, v, temperature),
        lambda q, k, v, temperature=1, dim=-1: ANSWERS(q, k, v, temperature),
        lambda q, k, v, temperature, *more, dim=-1, **others: ANSWERS(
            q, k, v, temperature
        ),
        lambda *inputs: ANSWERS(*inputs),
    ],
    ids=[
        "by name alone",
        "partial",
        "by place alone, and by name",
        "by place alone",
        "defaults",
        "whatever more",
        "any number",
    ],
)
def test_a_function_may_take_its_inputs_by_place_or_by_name(answer):
    report = check("01-bug", answer)
    assert report.passed, str(report)


def test_an_input_of_another_name_is_none(capsys):
    def named_otherwise(q, k, v, *, heat):
        return ANSWERS(q, k, v, heat)

    assert not check("01-bug", named_otherwise).attempted
    assert "got       named_otherwise(q, k, v, *, heat)\n" in capsys.readouterr().out


@pytest.mark.parametrize("ask", [lambda i: check(i, MHA), hint, solution])
def test_an_unknown_id_names_the_nearest(ask):
    with pytest.raises(
        ValueError,
        match=r"no exercise '07-mah'; did you mean '07-mha' or '07-rank'\? progr",
    ):
        ask("07-mah")
    with pytest.raises(ValueError, match=r"no exercise 'ßß'; progress\(\) lists them"):
        ask("ßß")
    with pytest.raises(ValueError, match=r"'07-MHA'; did you mean '07-mha'\?"):
        ask("07-MHA")
    with pytest.raises(ValueError, match=r"did you mean '04-polarity' or '04-bug' or "):
        ask("04")


def test_arguments_in_the_wrong_order(plain):
    exercises = importlib.import_module("mha_teach.exercises")
    with pytest.raises(TypeError, match=r"a string, got 7; write check"):
        exercises.hint(7)
    with pytest.raises(
        TypeError, match=r"first and is a string, got <function mha.*; wr"
    ):
        exercises.check(MHA, "07-mha")
    with pytest.raises(TypeError, match=r">; write check\(\"07-mha\", mha\)$"):
        exercises.check(MHA)


# Comparing


@pytest.mark.parametrize(
    ("expected", "got", "axes", "text"),
    [
        (torch.eye(2), torch.eye(2) * 3, "n d", "3, which is 3 times the expected"),
        (torch.eye(2), torch.ones(2, 2), "n d", "1; 2 of 4 entries differ"),
        (torch.zeros(2), torch.ones(2), "n", "1; 2 of 2 entries differ"),
        (torch.ones(2), torch.tensor([1, math.nan]), "n", "nan; 1 of 2 entries differ"),
        (torch.ones(2), torch.tensor([math.inf, 1]), "n", "inf; 1 of 2 entries differ"),
        (torch.tensor([math.inf, 1]), torch.tensor([math.inf, 2]), "n", "2; 1 of 2"),
        (torch.ones(2), torch.ones(2) * 1e30, "n", "1e+30; 2 of 2 entries differ"),
        (torch.ones(2), -torch.ones(2), "n", "-1, which is -1 times the expected"),
        (torch.ones(2), torch.ones(2) * 0.2**0.5, "n", "0.447 (1/√5) times the exp"),
        (torch.ones(2), torch.ones(2) * 1.0004, "n", "1.0004, which is 1.0004 times"),
        (1.6094, 1.6089, "", "1.6089, which is 0.99969 times the expected"),
        (torch.ones(2, 1), torch.ones(2), "n d", "(2,): 1 axis, not 2"),
        (torch.ones(2), 1.0, "n", "1.0"),
        (torch.tensor([True]), torch.tensor([1.0]), "n", "numbers, not True or Fal"),
        (torch.ones(1), torch.tensor([True]), "n", "True or False, not numb"),
        (torch.ones(2), torch.ones(2) + 0.1j, "n", "complex numbers, not nu"),
        (1048576, 524288, "", "524288, which is 0.5 times the expected"),
        (1048576, 1048577, "", "1048577"),
        (2.5, "2.5", "", "'2.5'"),
        ((2, 3), (2, 4), "n d", "(2, 4): look at d"),
        ((2, 3), "23", "n d", "'23'"),
        ((2, 3), 5, "n d", "5"),
        ((2, 3), (2, math.inf), "n d", "a tuple of 2"),
        (5, [5, 5], "", "a list of 2"),
        (torch.eye(2), torch.eye(2).to_sparse(), "n d", "a sparse tensor of shape (2"),
        (torch.eye(2), torch.eye(2).to("meta"), "n d", "a tensor of shape (2, 2)"),
        (torch.eye(2), torch.zeros(1).expand(10**12), "n d", "1 axis, not 2"),
        (5, torch.zeros(1).expand(10**12), "", "a tensor of shape (1000000000000,)"),
        ((2, 3), torch.zeros(1).expand(10**12), "n d", "a tensor of shape (1000000000"),
        ((2, 3), range(10**12), "n d", "range"),
    ],
)
def test_what_differs_is_said(expected, got, axes, text):
    assert text in difference(expected, got, axes).got


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (torch.eye(2), np.eye(2)),
        (torch.eye(2), [[1, 0], [0, 1.00001]]),
        (torch.tensor([True, False]), np.array([True, False])),
        (torch.zeros(0, 3), torch.zeros(0, 3)),
        (torch.tensor([math.nan, -math.inf, 1]), [math.nan, -math.inf, 1]),
        (5, 5.0),
        (5, torch.tensor(5)),
        (5, np.int64(5)),
        ((2, 3), [2, 3]),
        ((2, 3), torch.Size([2, 3])),
        ((2, 3), np.array([2, 3])),
    ],
)
def test_what_agrees_agrees(expected, got):
    assert difference(expected, got, "n d") is None


def test_a_huge_result_is_told_by_its_shape(capsys):
    check("07-mha", lambda *inputs: torch.zeros(1).expand(10**12))
    assert "got       (1000000000000,): 1 axis, not 3\n" in capsys.readouterr().out


def test_no_nan_is_looked_for_in_a_huge_result():
    assert has_nan(torch.tensor(math.nan).expand(10**6))
    assert not has_nan(torch.tensor(math.nan).expand(10**6 + 1))


def test_a_sparse_result_of_the_right_shape_is_called_sparse(capsys):
    check("07-mha", lambda *inputs: MHA(*inputs).to_sparse())
    assert re.search(
        r"got       a sparse tensor of shape \(\d+, \d+, \d+\)\n"
        r"    question  Your tensor is sparse\. Which call makes it dense\?\n",
        capsys.readouterr().out,
    )


def test_two_numbers_are_written_so_that_they_differ():
    assert difference(1.60944, 1.60914).expected == "1.6094"
    assert difference(3.0, 2.9996) == (
        "3",
        "2.9996, which is 0.99987 times the expected",
    )
    assert difference(0.5, 12.2, reveal=False) == ("", "12.2")
    assert difference(91, 91.02, reveal=False) == ("", "91.02")


def test_the_largest_difference_is_placed_by_axis():
    got = torch.zeros(2, 3, 5)
    got[1, 2, 4], got[0, 1, 0] = 0.5, -0.25
    found = difference(torch.zeros(2, 3, 5), got, "batch n d_model")
    assert found == ("0 at batch 1, n 2, d_model 4", "0.5; 2 of 30 entries differ")


def test_whole_numbers_are_compared_exactly():
    assert difference(10**9, 10**9 + 1) == ("1000000000", "1000000001")


# Hints, solutions, progress


def test_hints_come_one_by_one_and_begin_again(capsys):
    for _ in range(4):
        hint("07-bug")
    lines = capsys.readouterr().out.splitlines()
    hints = EXERCISES["07-bug"].hints
    assert lines == [
        *(f"Hint {i} of 3: {text}" for i, text in enumerate(hints, 1)),
        f"Hint 1 of 3: {hints[0]}",
    ]


def test_a_passed_exercise_needs_no_hint(capsys, monkeypatch):
    check("07-mha", MHA)
    monkeypatch.setattr("mha_teach.exercises._passed_last", {})  # another session
    capsys.readouterr()
    hint("07-mha")
    assert capsys.readouterr().out == (
        "You have passed 07-mha: there is nothing left to hint at. solution('07-mha') "
        "shows a worked solution to compare with yours.\n"
    )


def test_hints_come_back_when_a_passed_exercise_fails_again(capsys):
    check("07-mha", MHA)
    check("07-mha", None)
    hint("07-mha")
    assert "You have passed 07-mha" in capsys.readouterr().out
    check("07-mha", lambda *inputs: 0)
    hint("07-mha")
    assert "\nHint 1 of 3: " in capsys.readouterr().out


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_a_solution_opens_after_an_attempt(exercise, capsys):
    solution(exercise.id)
    closed = capsys.readouterr().out
    assert closed.startswith(f"The solution of {exercise.id} opens after an attempt")
    assert "return" not in closed
    entry = exercise.properties[0].name
    check(exercise.id, (lambda *_: 0) if exercise.wants_function else {entry: 1})
    capsys.readouterr()
    solution(exercise.id)
    opened = capsys.readouterr().out
    assert f"def {exercise.reference.__name__}(" in opened
    assert exercise.explanation in opened


def test_an_attempt_that_was_none_opens_nothing(capsys):
    check("07-mha", None)
    solution("07-mha")
    assert "opens after an attempt" in capsys.readouterr().out


def test_progress_keeps_the_best_of_each(capsys, kept_in):
    check("07-mha", MHA)
    check("07-mha", lambda *inputs: 0)
    check("07-shapes", {**RIGHT_SHAPES, "more": 1})
    capsys.readouterr()
    progress()
    printed = capsys.readouterr().out
    assert "✓ 07-mha       ●●  15 min  Multi-head attention from four mat" in printed
    assert re.search(r"^  07-shapes .* 80% of the properties hold$", printed, re.M)
    assert re.search(
        r"^  07-rank      ●●● 20 min  What a small d_k .* away$", printed, re.M
    )
    assert f"Kept in {kept_in}, on this machine only." in printed
    assert len(kept_in.read_text().strip().splitlines()) == 2


def test_progress_before_anything_is_tried(capsys, kept_in):
    progress()
    printed = capsys.readouterr().out
    assert all(exercise_id in printed for exercise_id in EXERCISES)
    assert "✓" not in printed
    assert not kept_in.exists()


@pytest.mark.parametrize(
    "damage",
    [
        b"\x00\xff\x00garbage",
        b'{"id": "07-bug", "sha',
        b'{"id": 7, "share": 1}',
        b'{"id": "07-bug", "share": "all"}',
        b'{"id": "07-bug", "share": 7}',
        b"[1, 2]",
        b"null",
        b"[" * 200_000,
    ],
    ids=lambda damage: damage[:40],
)
def test_damage_costs_no_more_than_the_damaged_lines(damage, capsys, kept_in):
    check("07-mha", MHA)
    with kept_in.open("ab") as file:
        file.write(b"\n" + damage)
    check("07-shapes", RIGHT_SHAPES)
    capsys.readouterr()
    progress()
    printed = capsys.readouterr().out
    assert "✓ 07-mha" in printed
    assert "✓ 07-shapes" in printed
    assert "  07-bug" in printed
    aside = kept_in.with_name("progress.damaged-1")
    assert f"lines could not be read; the old file is kept as {aside}." in printed
    assert damage in aside.read_bytes()
    results = [json.loads(line) for line in kept_in.read_text().split("\n") if line]
    assert {result["id"] for result in results} == {"07-mha", "07-shapes"}


def test_an_earlier_damaged_file_is_kept(kept_in):
    kept_in.parent.mkdir()
    earlier = kept_in.with_name("progress.damaged-2")
    earlier.write_bytes(b"earlier")
    for damage in (b"one", b"three"):
        kept_in.write_bytes(damage)
        assert _progress.best() == {}
    assert earlier.read_bytes() == b"earlier"
    assert kept_in.with_name("progress.damaged-1").read_bytes() == b"one"
    assert kept_in.with_name("progress.damaged-3").read_bytes() == b"three"


def test_a_byte_order_mark_costs_nothing(kept_in):
    kept_in.parent.mkdir()
    kept_in.write_bytes(b'\xef\xbb\xbf{"id": "07-mha", "share": 1}\n')
    assert _progress.best() == {"07-mha": 1}
    assert _progress.damaged_files() == []


def test_the_home_folder_may_be_written_as_a_tilde(monkeypatch):
    monkeypatch.setenv("MHA_TEACH_PROGRESS", "~/x/progress.jsonl")
    assert _progress.path() == Path.home().resolve() / "x" / "progress.jsonl"


def test_where_nothing_can_be_written_the_session_remembers(
    capsys, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "progress.jsonl"
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(path))
    assert check("07-mha", MHA).passed
    check("07-bug", chapter_07.rebuilt)
    solution("07-mha")
    progress()
    printed = capsys.readouterr().out
    assert "def mha(" in printed
    assert "✓ 07-mha" in printed
    assert (
        f"{path} cannot be written: kept for this session only. Set "
        "MHA_TEACH_PROGRESS to another file before you start Jupyter." in printed
    )


@pytest.mark.parametrize("path", ["", "file/progress.jsonl", "file/deep/progress"])
def test_what_cannot_be_written_is_said_before_anything_is_tried(
    path, capsys, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(tmp_path / path))
    progress()
    place = str(tmp_path / path).rstrip("/")
    assert f"\n{place} cannot be written: kept for" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="devices as POSIX has them")
@pytest.mark.parametrize("name", ["pipe", "/dev/null", "/dev/full", "/dev/zero"])
def test_of_a_pipe_or_a_device_nothing_is_asked(name, capsys, tmp_path, monkeypatch):
    """To read one may never end, and to write it may lose the result."""
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / name
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(path))
    check("07-mha", MHA)
    progress()
    printed = capsys.readouterr().out
    assert "✓ 07-mha" in printed
    assert f"{path} cannot be written: kept for this session only." in printed


@pytest.mark.skipif(os.name == "nt", reason="no limits on Windows")
def test_what_a_full_disk_cuts_off_the_session_remembers():
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9, before[1]))
    try:
        _progress.record("07-mha", 0.5)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert _progress.best() == {"07-mha": 0.5}


@pytest.mark.skipif(os.name == "nt", reason="no limits on Windows")
def test_a_full_disk_costs_no_good_line_of_a_damaged_file(kept_in):
    import resource

    kept_in.parent.mkdir()
    content = b'{"id": "07-mha", "share": 1}\njunk'
    kept_in.write_bytes(content)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9, before[1]))
    try:
        assert _progress.best() == {"07-mha": 1}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert kept_in.read_bytes() == content
    assert _progress.damaged_files() == []
    assert _progress.best() == {"07-mha": 1}
    assert b"junk" not in kept_in.read_bytes()


def test_of_a_link_the_file_behind_it_is_kept(capsys, tmp_path, monkeypatch):
    (tmp_path / "synced").mkdir()
    file, link = tmp_path / "synced" / "progress.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(file)
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(link))
    check("07-mha", MHA)
    with file.open("ab") as opened:
        opened.write(b"\njunk")
    progress()
    assert "✓ 07-mha" in capsys.readouterr().out
    assert link.is_symlink()
    assert b"junk" not in file.read_bytes()
    assert _progress.damaged_files() == [file.with_name("progress.damaged-1")]


def test_progress_is_kept_in_the_users_data_folder(monkeypatch):
    monkeypatch.delenv("MHA_TEACH_PROGRESS")
    path = _progress.path()
    assert path.name == "progress.jsonl"
    assert path.parent.name == "mha-teach"
    assert Path.home().resolve() in path.parents


def test_several_notebooks_may_write_at_once(kept_in):
    program = (
        "import runpy, sys\n"
        "record = runpy.run_path(sys.argv[1])['record']\n"
        "for i in range(40):\n"
        "    record(f'{sys.argv[2]}-{i}', 0.5)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, _progress.__file__, name])
        for name in "abc"
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert _progress.best() == {f"{n}-{i}": 0.5 for n in "abc" for i in range(40)}
    assert _progress.damaged_files() == []


def test_damage_while_several_notebooks_write_costs_no_result(kept_in):
    program = (
        "import pathlib, runpy, sys\n"
        "progress = runpy.run_path(sys.argv[1])\n"
        "for i in range(50):\n"
        "    progress['record'](f'{sys.argv[2]}-{i}', 0.5)\n"
        "    if i % 3 == 0:\n"
        "        with progress['path']().open('ab', buffering=0) as file:\n"
        "            file.write(b'\\njunk')\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, _progress.__file__, name])
        for name in "abcd"
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    assert _progress.best() == {f"{n}-{i}": 0.5 for n in "abcd" for i in range(50)}
    assert all(b"junk" in file.read_bytes() for file in _progress.damaged_files())
