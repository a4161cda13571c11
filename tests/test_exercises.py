"""check, hint, solution, progress: what a learner sees, whatever they hand in."""

import functools
import importlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from mha_teach.exercises import (
    EXERCISES,
    _progress,
    chapter_07,
    check,
    hint,
    progress,
    solution,
)
from mha_teach.exercises._compare import difference

MHA = chapter_07.mha
SHAPES = EXERCISES["07-shapes"]
RIGHT_SHAPES = SHAPES.as_answer(SHAPES.reference)


@pytest.fixture(autouse=True)
def kept_in(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "progress.jsonl"
    monkeypatch.setenv("MHA_TEACH_PROGRESS", str(path))
    monkeypatch.setattr(_progress, "_unkept", {})
    monkeypatch.setattr("mha_teach.exercises._hints_given", {})
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
    assert printed.endswith("7 of 7 hold: 4 of 4 points\n")
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
        r"    expected  -?\d\.\d+ at query \d\n"
        r"    got       -?\d\.\d+, which is 2\.65 \(√7\) times the expected\n"
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
    assert "expected  another number\n    got       7\n" in printed
    assert str(RIGHT_SHAPES["parameters"]) not in printed


def test_a_secret_seed_asks_for_other_sizes(capsys):
    assert check("07-shapes", RIGHT_SHAPES).passed
    assert not check("07-shapes", RIGHT_SHAPES, seed="secret").passed
    settings = re.findall(r"^07-shapes (\(.*\))$", capsys.readouterr().out, re.M)
    assert len(set(settings)) == 2
    other = SHAPES.as_answer(SHAPES.reference, "secret")
    assert check("07-shapes", other, seed="secret").passed


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


def test_a_misspelt_name_needs_no_question(capsys):
    check("07-mha", lambda *inputs: misspelt)  # noqa: F821
    printed = capsys.readouterr().out
    assert "got       NameError: name 'misspelt' is not defined\n" in printed
    assert "question" not in printed


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


def test_another_default_dtype_changes_nothing():
    torch.set_default_dtype(torch.float64)
    try:
        assert check("07-mha", MHA).passed
        assert check("07-bug", chapter_07.rebuilt).passed
    finally:
        torch.set_default_dtype(torch.float32)


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
        "Fill in your answer, then run the check again.\n"
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
    assert report.first_failure.name == "weights"
    assert "got       nothing yet\n" in capsys.readouterr().out
    assert report.score == 0.4


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
    assert f"expected  {expected}" in printed
    assert f"got       {got}" in printed


@pytest.mark.parametrize("ask", [lambda i: check(i, MHA), hint, solution])
def test_an_unknown_id_names_the_nearest(ask):
    with pytest.raises(
        ValueError,
        match=r"no exercise '07-mah'; did you mean '07-mha' or '07-rank'\? progr",
    ):
        ask("07-mah")
    with pytest.raises(ValueError, match=r"no exercise 'ßß'; progress\(\) lists them"):
        ask("ßß")


def test_arguments_in_the_wrong_order(plain):
    exercises = importlib.import_module("mha_teach.exercises")
    with pytest.raises(TypeError, match=r"the exercise id comes first .* function; wr"):
        exercises.check(MHA, "07-mha")


# Comparing


@pytest.mark.parametrize(
    ("expected", "got", "axes", "text"),
    [
        (torch.eye(2), torch.eye(2) * 3, "n d", "3, which is 3 times the expected"),
        (torch.eye(2), torch.ones(2, 2), "n d", "1; 2 of 4 entries differ"),
        (torch.zeros(2), torch.ones(2), "n", "1; 2 of 2 entries differ"),
        (torch.ones(2), torch.tensor([1, math.nan]), "n", "nan; 1 of 2 entries differ"),
        (torch.ones(2), torch.tensor([math.inf, 1]), "n", "inf; 1 of 2 entries differ"),
        (torch.ones(2), torch.ones(2) * 1e30, "n", "1e+30; 2 of 2 entries differ"),
        (torch.ones(2), -torch.ones(2), "n", "-1, which is -1 times the expected"),
        (torch.ones(2), torch.ones(2) * 0.2**0.5, "n", "0.447 (1/√5) times the exp"),
        (torch.ones(2, 1), torch.ones(2), "n d", "(2,): 1 axis, not 2"),
        (torch.ones(2), 1.0, "n", "1.0"),
        (torch.tensor([True]), torch.tensor([1.0]), "n", "torch.float32"),
        (torch.ones(1), torch.tensor([True]), "n", "torch.bool"),
        (torch.ones(2), torch.ones(2) + 0.1j, "n", "torch.complex64"),
        (1048576, 524288, "", "524288, which is 0.5 times the expected"),
        (1048576, 1048577, "", "1048577"),
        (2.5, "2.5", "", "'2.5'"),
        ((2, 3), (2, 4), "n d", "(2, 4): look at d"),
        ((2, 3), "23", "n d", "'23'"),
        ((2, 3), 5, "n d", "5"),
        ((2, 3), (2, math.inf), "n d", "tuple"),
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


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
def test_a_solution_opens_after_an_attempt(exercise, capsys):
    solution(exercise.id)
    closed = capsys.readouterr().out
    assert closed.startswith(f"The solution of {exercise.id} opens after an attempt")
    assert "return" not in closed
    check(exercise.id, lambda *inputs: 0 if exercise.wants_function else {"q": 1})
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
    ],
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
    assert (
        "Some lines could not be read; the old file is kept as progress.damaged-1."
        in (printed)
    )
    assert damage in kept_in.with_name("progress.damaged-1").read_bytes()
    results = [json.loads(line) for line in kept_in.read_text().split("\n") if line]
    assert {result["id"] for result in results} == {"07-mha", "07-shapes"}


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
    assert f"{path} cannot be written: kept for this session only." in printed


def test_progress_is_kept_in_the_users_data_folder(monkeypatch):
    monkeypatch.delenv("MHA_TEACH_PROGRESS")
    path = _progress.path()
    assert path.name == "progress.jsonl"
    assert path.parent.name == "mha-teach"
    assert Path.home() in path.parents


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
