"""The bank: right answers pass, each wrong answer fails for its own reason."""

import ast
import dataclasses
import io
import re
from contextlib import redirect_stdout

import jupytext
import pytest
import torch

from mha_teach.exercises import EXERCISES, chapter_07, evaluate
from mha_teach.exercises.bank import Draw, Wrong, slip, source, words
from tools import solutions, wrong_answers

SEEDS = (None, 1, 2, "a secret")
KINDS = {"predict", "find the bug", "write", "measure"}


def labelled(answers_of):
    """One test for each answer of each exercise."""
    return [
        pytest.param(exercise, answer, id=f"{exercise.id}-{number}")
        for exercise in EXERCISES.values()
        for number, answer in enumerate(answers_of(exercise))
    ]


every_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)


@pytest.mark.parametrize(
    ("exercise", "right"), labelled(lambda e: (e.reference, *e.right))
)
def test_right_answers_pass_however_they_are_written(exercise, right):
    for seed in SEEDS:
        report = evaluate(exercise, exercise.as_answer(right, seed), seed)
        assert report.passed, str(report)
        assert report.score == exercise.points


@pytest.mark.parametrize(("exercise", "wrong"), labelled(lambda e: e.wrong))
def test_wrong_answers_fail_for_their_own_reason(exercise, wrong):
    for seed in SEEDS:
        report = evaluate(exercise, exercise.as_answer(wrong.answer, seed), seed)
        assert report.first_failure.name == wrong.fails, str(report)
        assert report.first_failure.failure.question == wrong.question
        assert wrong.question in str(report)
        assert report.score < exercise.points


@every_exercise
def test_sizes_drawn_are_pairwise_different(exercise):
    """Else a wrong size could do for the right one: d_model for n, h for d_k."""

    def sizes(inputs):
        if not exercise.wants_function:
            return list(inputs.values())
        x, h = inputs["x"], inputs["h"]
        d_k = inputs.get("w_q", x).shape[-1] // h
        return [*x.shape, h, d_k]

    for seed in range(30):
        for prop in exercise.properties:
            drawn = sizes(exercise.inputs(seed, prop))
            assert len(set(drawn)) == len(drawn), f"{prop.name}, {seed}: {drawn}"


@every_exercise
def test_no_two_wrong_answers_read_alike(exercise):
    reasons = [
        str(evaluate(exercise, exercise.as_answer(wrong.answer)).first_failure.failure)
        for wrong in exercise.wrong
    ]
    assert len(set(reasons)) == len(exercise.wrong) >= 4


@every_exercise
def test_an_exercise_is_complete(exercise):
    assert exercise.kind in KINDS
    assert len(exercise.right) >= 3
    assert len(exercise.hints) >= 2
    assert len({p.name for p in exercise.properties}) == len(exercise.properties)
    assert {wrong.fails for wrong in exercise.wrong} <= {
        p.name for p in exercise.properties
    }
    assert all(wrong.question.endswith("?") for wrong in exercise.wrong)
    assert (exercise.given is not None) == (exercise.kind == "find the bug")


@every_exercise
def test_every_property_catches_something(exercise):
    """A property that no wrong answer fails first would be there for nothing.

    Only the shape may be: without it the other properties would speak of sizes.
    """
    names = {prop.name for prop in exercise.properties}
    assert names - {"shape"} <= {wrong.fails for wrong in exercise.wrong}


def test_a_chapter_has_one_exercise_of_each_kind():
    assert {e.kind for e in chapter_07.EXERCISES} == KINDS
    assert [e.minutes for e in chapter_07.EXERCISES] == [5, 10, 15, 20]


@every_exercise
def test_sizes_vary_with_the_seed_and_not_otherwise(exercise):
    prop = exercise.properties[-1]

    def sizes(seed):
        inputs = exercise.inputs(seed, prop)
        return [getattr(value, "shape", value) for value in inputs.values()]

    assert sizes(None) == sizes(None)
    assert len({str(sizes(seed)) for seed in range(8)}) > 1


def test_random_tensors_and_sizes_depend_on_the_key_alone():
    first, again, other = Draw("a", 1), Draw("a", 1), Draw("a", 2)
    assert first.primes(5) == again.primes(5)
    drawn = first.normal(50)
    torch.testing.assert_close(drawn, again.normal(50))
    assert not torch.equal(drawn, other.normal(50))


@pytest.mark.parametrize("seed", range(20))
def test_prime_sizes_are_pairwise_different(seed):
    sizes = Draw(seed).primes(6)
    assert len(set(sizes)) == 6
    assert all(size % divisor for size in sizes for divisor in range(2, size))
    assert min(Draw(seed).primes(4, above=2)) > 2


def test_a_slip_that_fits_nowhere_or_twice_is_an_error():
    with pytest.raises(ValueError, match=r"'q @ v' occurs 0 times in mha"):
        _ = slip(chapter_07.mha, "q @ v", "q").source
    with pytest.raises(ValueError, match=r"'split' occurs 4 times in mha"):
        _ = slip(chapter_07.mha, "split", "cut").source


@pytest.mark.parametrize(
    ("value", "observed"),
    [
        (" a reason of 20 chars ", "a sentence or two"),
        ("  because ", "7 characters"),
        (" ", ""),
        (123456789012345678901, 123456789012345678901),
        (["one sentence", "and another"], ["one sentence", "and another"]),
    ],
)
def test_only_text_is_a_written_answer(value, observed):
    assert words("why")(lambda: {"why": value}, {}) == observed


# What the learner's notebook says is what the bank holds


@pytest.fixture(scope="module")
def notebook():
    return jupytext.read(solutions.FOLDER / "07_multi_head_attention.py")


def code_of(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def prose_of(notebook):
    return "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")


def test_an_untouched_notebook_runs_and_attempts_nothing(notebook):
    printed = io.StringIO()
    namespace = {}
    with redirect_stdout(printed):
        for code in code_of(notebook):
            exec(code, namespace)
    lines = printed.getvalue().splitlines()
    attempts = [line.partition(":") for line in lines if "not attempted" in line]
    assert [exercise_id for exercise_id, _, _ in attempts] == list(EXERCISES)
    assert "same shape:  True" in lines
    assert "same output: False" in lines


def test_the_statement_uses_the_public_sizes(notebook):
    prose = prose_of(notebook)
    batch, n, d_model, h, d_k = EXERCISES["07-shapes"].inputs(None).values()
    assert f"MultiHeadAttention(d_model={d_model}, num_heads={h}, d_k={d_k}" in prose
    assert f"x has the shape ({batch}, {n}, {d_model})" in prose
    assert f"num_heads={2 * h}, d_k={d_k // 2}" in prose
    n, d_model, h, d_k = EXERCISES["07-rank"].inputs(None).values()
    assert f"`d_model={d_model}, num_heads={h}, d_k={d_k}`, and {n} random" in prose


def test_the_bug_in_the_notebook_is_the_one_in_the_bank(notebook):
    (cell,) = (code for code in code_of(notebook) if code.startswith("def rebuilt"))
    assert ast.dump(ast.parse(cell)) == ast.dump(
        ast.parse(EXERCISES["07-bug"].given.source)
    )


@every_exercise
def test_the_notebook_offers_every_exercise(exercise, notebook):
    assert f"`{exercise.id}` |" in prose_of(notebook)
    assert f"## {'●' * exercise.level} {exercise.title}".replace("d_k", "$d_k$") in (
        prose_of(notebook)
    )
    assert re.search(rf'^check\("{exercise.id}", ', "\n".join(code_of(notebook)), re.M)


def test_entries_asked_for_are_those_checked(notebook):
    for exercise_id, name in (("07-shapes", "shapes"), ("07-rank", "rank")):
        (cell,) = (c for c in code_of(notebook) if c.startswith(f"{name} = {{"))
        stub = ast.literal_eval(cell.partition("=")[2].strip())
        assert list(stub) == [p.name for p in EXERCISES[exercise_id].properties]
        assert not any(stub.values())


def test_solution_pages_are_those_of_the_bank():
    for path, text in solutions.pages().items():
        assert path.read_text("utf-8") == text, "run: python tools/solutions.py"
        for exercise in EXERCISES.values():
            assert source(exercise.reference) in text
            assert solutions.marked_up(exercise.explanation) in text


def test_formulas_and_code_are_marked_up_on_the_page():
    text = "h·d_k = d_model, not `h`: x @ w.T has W^Q and n=5 rows, which is how."
    assert solutions.marked_up(text) == (
        r"$h \cdot d_k = d_\text{model}$, not `h`: `x @ w.T` has $W^Q$ and $n=5$ rows, "
        "which is how."
    )


# The table


def test_the_table_lists_every_answer(capsys):
    assert wrong_answers.main() == 0
    table = capsys.readouterr().out
    for exercise in EXERCISES.values():
        for wrong in exercise.wrong:
            assert f"| {exercise.id} | {wrong.misconception} | {wrong.fails} |" in table
    assert table.count("| accepted |") == sum(
        1 + len(exercise.right) for exercise in EXERCISES.values()
    )


def test_the_table_exposes_a_wrong_answer_that_passes(monkeypatch, capsys):
    exercise = EXERCISES["07-mha"]
    harmless = Wrong("Nothing is wrong.", "scale", exercise.reference, "Well?")
    changed = dataclasses.replace(exercise, wrong=(harmless,))
    monkeypatch.setitem(EXERCISES, "07-mha", changed)
    assert wrong_answers.main() == 1
    row = "| 07-mha | Nothing is wrong. | **WRONG** not rejected |"
    assert row in capsys.readouterr().out
