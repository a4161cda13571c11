"""The bank: right answers pass, each wrong answer fails for its own reason."""

import ast
import dataclasses
import functools
import re
from itertools import combinations

import pytest
import torch
from torch import Tensor

from exercise_notebook import NOTEBOOKS, cells, printed_by
from mha_teach.exercises import EXERCISES, chapter_07, evaluate
from mha_teach.exercises.bank import Draw, Wrong, slip, source, words
from tools import solutions, wrong_answers

SEEDS = (None, "a secret")
MORE_SEEDS = (1, 2)
KINDS = {"predict", "find the bug", "write", "measure"}
NUMBER_WORDS = {4: "four", 5: "five", 6: "six"}


def labelled(answers_of):
    """One test for each answer of each exercise."""
    return [
        pytest.param(exercise, answer, id=f"{exercise.id}-{number}")
        for exercise in EXERCISES.values()
        for number, answer in enumerate(answers_of(exercise))
    ]


every_exercise = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES)
every_chapter = pytest.mark.parametrize("chapter", NOTEBOOKS)
under_seeds = pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(SEEDS, id="seeds"),
        pytest.param(MORE_SEEDS, id="more seeds", marks=pytest.mark.slow),
    ],
)


def exercises_of(chapter):
    return [e for e in EXERCISES.values() if e.id.startswith(f"{chapter}-")]


@functools.cache
def tried(exercise_id, function, seed):
    exercise = EXERCISES[exercise_id]
    return evaluate(exercise, exercise.as_answer(function, seed), seed)


@under_seeds
@pytest.mark.parametrize(
    ("exercise", "right"), labelled(lambda e: (e.reference, *e.right))
)
def test_right_answers_pass_however_they_are_written(exercise, right, seeds):
    for seed in seeds:
        report = tried(exercise.id, right, seed)
        assert report.passed, str(report)
        assert report.score == exercise.points


@under_seeds
@pytest.mark.parametrize(("exercise", "wrong"), labelled(lambda e: e.wrong))
def test_wrong_answers_fail_for_their_own_reason(exercise, wrong, seeds):
    for seed in seeds:
        report = tried(exercise.id, wrong.answer, seed)
        assert report.first_failure.name == wrong.fails, str(report)
        assert report.first_failure.failure.question == wrong.question
        assert wrong.question in str(report)
        assert report.score < exercise.points / 2


@every_exercise
def test_code_as_given_is_no_attempt(exercise):
    if exercise.given:
        for seed in SEEDS:
            assert evaluate(exercise, exercise.given, seed).not_attempted


def sizes(exercise, inputs):
    """Every axis of the tensors and every whole number among the inputs, by name."""
    found = {}
    for name, value in inputs.items():
        if isinstance(value, Tensor):
            axes = exercise.axes[name].split()[-value.dim() :]
            for axis, size in zip(axes, value.shape, strict=True):
                assert found.setdefault(axis, size) == size, f"two sizes of {axis}"
        elif isinstance(value, int):
            found[name] = value
    for product in [axis for axis in found if "·" in axis]:  # h·d_k stands for d_k
        factor, axis = product.split("·")
        found[axis] = found.pop(product) // int(found.get(factor, factor))
    return found


@every_exercise
def test_sizes_agree_on_purpose_or_never(exercise):
    """Else a wrong size could do for the right one: d_model for n, h for d_k.

    A property may draw equal sizes, but then for every seed: that is on purpose.
    """
    for prop in exercise.properties:
        drawn = [sizes(exercise, exercise.inputs(seed, prop)) for seed in range(30)]
        for a, b in combinations(drawn[0], 2):
            agree = {each[a] == each[b] for each in drawn}
            on_purpose = prop.draw is not None and agree == {True}
            assert agree == {False} or on_purpose, f"{prop.name}: {a} and {b}"


@every_exercise
def test_no_two_wrong_answers_read_alike(exercise):
    reasons = [
        str(tried(exercise.id, wrong.answer, None).first_failure.failure)
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
def test_no_hint_but_the_last_holds_code_of_the_solution(exercise):
    code = source(exercise.reference)
    for hint in exercise.hints[:-1]:
        assert not [call for call in re.findall(r"\w+[(\[]", hint) if call in code]


@every_exercise
def test_every_property_catches_something(exercise):
    """A property that no wrong answer fails first would be there for nothing.

    Only the shape may be: without it the other properties would speak of sizes.
    """
    names = {prop.name for prop in exercise.properties}
    assert names - {"shape"} <= {wrong.fails for wrong in exercise.wrong}


@every_chapter
def test_a_chapter_leads_from_a_prediction_to_an_optional_last_one(chapter):
    first, second, *between, last = exercises_of(chapter)
    assert between
    assert (first.kind, first.level, first.minutes) == ("predict", 1, 5)
    assert (second.kind, second.level, second.minutes) == ("find the bug", 2, 10)
    assert {(e.kind, e.level) for e in between} == {("write", 2)}
    assert {e.minutes for e in between} <= {5, 10, 15}
    assert last.kind in ("write", "measure")
    assert (last.level, last.minutes) == (3, 20)


def returned(exercise, prop):
    """What the reference returns while a property is observed, and its parts."""
    results = []

    def recorded(*inputs):
        results.append(exercise.reference(*inputs))
        return results[-1]

    observed = prop.observe(recorded, exercise.inputs(None, prop))
    parts = [part for r in results if isinstance(r, tuple | list) for part in r]
    return observed, [*results, *parts]


@every_exercise
def test_a_number_that_no_function_returned_is_said_to_be_another(exercise):
    """Else "expected 1.18" would be read as what the function should return."""
    for prop in exercise.properties if exercise.wants_function else ():
        observed, results = returned(exercise, prop)
        is_returned = isinstance(observed, tuple) or any(
            observed is r
            or isinstance(observed, Tensor)
            and isinstance(r, Tensor)
            and torch.equal(observed, r)
            for r in results
        )
        assert is_returned or prop.compared, prop.name


@every_exercise
def test_what_is_asked_of_any_failure_is_a_question(exercise):
    for prop in exercise.properties:
        asked = prop.question, prop.on_error or "?"
        assert all("?" in question for question in asked), prop.name


@every_exercise
def test_a_written_answer_is_not_said_to_be_judged(exercise):
    reasons = [prop for prop in exercise.properties if prop.name == "why"]
    assert len(reasons) == (exercise.kind == "measure")
    assert all("no program judges it" in prop.claim for prop in reasons)


@every_exercise
def test_sizes_vary_with_the_seed_and_not_otherwise(exercise):
    prop = exercise.properties[-1]

    def drawn(seed):
        inputs = exercise.inputs(seed, prop)
        return [getattr(value, "shape", value) for value in inputs.values()]

    assert drawn(None) == drawn(None)
    assert len({str(drawn(seed)) for seed in range(8)}) > 1


@every_exercise
def test_the_published_values_are_those_of_the_public_case_alone(exercise):
    if exercise.wants_function:
        return
    published, tried = exercise.as_answer(exercise.reference), []
    for seed in (*range(30), "None"):
        inputs = exercise.inputs(seed)
        assert inputs != exercise.inputs(None)
        decisive = [inputs[name] for name in exercise.decisive or inputs]
        if decisive not in tried and exercise.id != "03-symmetry":  # a law of any size
            tried.append(decisive)
            assert not evaluate(exercise, published, seed).passed, inputs


def test_random_tensors_and_sizes_depend_on_the_key_alone():
    first, again, other = Draw("a", 1), Draw("a", 1), Draw("a", 2)
    assert first.primes(5) == again.primes(5)
    drawn = first.normal(50)
    assert torch.equal(drawn, again.normal(50))
    assert not torch.equal(drawn, other.normal(50))


@pytest.mark.parametrize("seed", range(20))
def test_prime_sizes_are_pairwise_different(seed):
    drawn = Draw(seed).primes(6)
    assert len(set(drawn)) == 6
    assert all(size % divisor for size in drawn for divisor in range(2, size))
    assert min(Draw(seed).primes(4, above=2)) > 2


def test_a_slip_that_fits_nowhere_or_twice_is_an_error():
    with pytest.raises(ValueError, match=r"'q @ v' occurs 0 times in mha"):
        _ = slip(chapter_07.mha, "q @ v", "q").source
    with pytest.raises(ValueError, match=r"'split' occurs 4 times in mha"):
        _ = slip(chapter_07.mha, "split", "cut").source


@pytest.mark.parametrize(
    ("value", "observed"),
    [
        (" a short reason ", "three words or more"),
        ("s_ij ≠ s_ji", "three words or more"),
        ("单矩阵必然对称", "three words or more"),
        ("incomprehensibilities", "three words or more"),
        ("  because ", "1 word"),
        ("It is.", "2 words"),
        (" ", ""),
        (123456789012345678901, 123456789012345678901),
        (["one sentence", "and another"], ["one sentence", "and another"]),
    ],
)
def test_only_text_is_a_written_answer(value, observed):
    assert words("why")(lambda: {"why": value}, {}) == observed


# What the learner's notebook says is what the bank holds


def prose_of(chapter):
    return "\n".join(cells(chapter, "markdown"))


def heading(exercise):
    return f"{'●' * exercise.level} {solutions.marked_up(exercise.title)}"


def statement(exercise):
    """What stands under the exercise's heading, in one line."""
    _, _, rest = prose_of(exercise.id[:2]).partition(f"\n## {heading(exercise)}\n")
    section, _, _ = rest.partition("\n## ")
    return " ".join(re.sub("^> ?", "", section, flags=re.M).split())


def test_every_exercise_has_a_notebook():
    assert {exercise_id[:2] for exercise_id in EXERCISES} == set(NOTEBOOKS)


@every_chapter
def test_an_untouched_notebook_attempts_nothing_and_shows_the_bug(chapter):
    lines = printed_by(cells(chapter, "code"))
    attempts = [line.partition(":")[0] for line in lines if "not attempted" in line]
    assert attempts == [exercise.id for exercise in exercises_of(chapter)]
    verdicts = {kind: set() for kind in ("same shape", "same output")}
    for kind, verdict in re.findall(r"(same \w+).*: +(\w+)$", "\n".join(lines), re.M):
        verdicts[kind].add(verdict)
    assert verdicts["same shape"] == {"True"}
    assert "False" in verdicts["same output"]


@every_chapter
def test_the_notebook_lists_and_offers_the_exercises_in_order(chapter):
    exercises = exercises_of(chapter)
    prose, code = prose_of(chapter), "\n".join(cells(chapter, "code"))
    row = r"^\| (●+) \| `(.+?)` \| .+? \| (\d+) \| (\d+) \|$"
    assert re.findall(row, prose, re.M) == [
        ("●" * each.level, each.id, str(each.minutes), str(each.points))
        for each in exercises
    ]
    assert "Half of the points of an exercise go by the share" in prose
    assert re.findall(r"`(\S+)` \|.+\(optional\)", prose) == [exercises[-1].id]
    assert re.findall("^## (●.+)$", prose, re.M) == list(map(heading, exercises))
    assert re.findall(r'^check\("(.+)", \w+\)$', code, re.M) == [
        each.id for each in exercises
    ]


@every_chapter
def test_the_minutes_stated_add_up(chapter):
    *needed, last = (exercise.minutes for exercise in exercises_of(chapter))
    count = NUMBER_WORDS[len(needed) + 1]
    name = NOTEBOOKS[chapter].stem
    assert (
        f"{count.capitalize()} exercises for [chapter {chapter}](../{name}.ipynb), "
        f"{sum(needed)} minutes and an optional {last}:"
    ) in prose_of(chapter)
    source = (solutions.FOLDER.parent / f"{name}.py").read_text("utf-8")
    text = " ".join(source.replace("\n# ", " ").split())
    link = f"(exercises/{name}.ipynb)"
    assert f"the [exercises]{link} take {sum(needed)}, and an optional {last}." in text
    assert f"The [exercise notebook]{link} has {count}: " in text


@every_exercise
def test_the_notebook_asks_for_what_the_check_takes(exercise):
    code = cells(exercise.id[:2], "code")
    (call,) = (c for c in code if c.startswith(f'check("{exercise.id}", '))
    name = call.partition(", ")[2].removesuffix(")")
    start = f"def {name}(" if exercise.wants_function else f"{name} = {{"
    (stub,) = (c for c in code if c.startswith(start))
    if exercise.given:
        given = ast.parse(exercise.given.source)
        assert ast.dump(ast.parse(stub)) == ast.dump(given)
    elif exercise.wants_function:
        arguments = ", ".join(exercise.inputs(None))
        assert stub == f"def {name}({arguments}):\n    return None"
    else:
        entries = ast.literal_eval(stub.partition("=")[2].strip())
        assert not any(entries.values())
        assert list(entries) == [prop.name for prop in exercise.properties]
        for entry in entries:
            assert re.search(rf"\b{entry}\b", statement(exercise)), entry


# How each statement that is answered with numbers says its sizes

STATED = {
    "01-weights": lambda power_2, power_3, v_1, v_2, v_3: (
        rf"are $0$, $\ln {power_2}$ and $\ln {power_3}$",
        f"are 1, {power_2} and {power_3}",
        f"their values are the numbers {v_1}, {v_2} and {v_3}",
    ),
    "01-nearest": lambda d_k, n_k: (
        f"A query and {n_k} keys of width {d_k}",
        f"10,000 queries, and {n_k} new keys for each",
    ),
    "02-predict": lambda d_model, d_k, var_q, var_k: (
        rf"$d_\text{{model}} = {d_model}$ numbers wide",
        f"$d_k = {d_k}$ wide",
        f"$q$ have variance {var_q}, those of $k$ have variance {var_k}",
    ),
    "02-spread": lambda d_model, d_k: (f"`d_model={d_model}, d_k={d_k}`",),
    "03-shapes": lambda batch, n_q, n_k, d_model, d_context, d_k, d_v: (
        f"{n_q} tokens of width {d_model} ask {n_k} tokens of width {d_context}",
        f"Queries are {d_k} wide, values {d_v}",
        f"randn({batch}, {n_q}, {d_model}), torch.randn({batch}, {n_k}, {d_context})",
    ),
    "03-symmetry": lambda n, d_model, d_k: (
        f"{n} random tokens of width {d_model}, $d_k = {d_k}$",
        f"`torch.randn(200, {d_model}, {d_k})`",
    ),
    "04-polarity": lambda batch, n_q, n_k: (
        f"a batch of {batch} sentences",
        f"the {n_q} newest tokens ask {n_k} keys",
        f"`masks.padding(lengths, n_k={n_k})`",
        f"how many of the {n_q} · {n_k} looks `masks.causal(n_q={n_q}, n_k={n_k})`",
    ),
    "05-average": lambda value_a, value_b, share, letters, d_model: (
        f"$v_a = {value_a}$ and $v_b = {value_b}$",
        f"a has {value_b} and b has {value_a}",
        {0.75: "a weight of ¾ on a and ¼ on b"}[share],
        f"one of {letters} letters",
        f"MultiHeadAttention({d_model}, num_heads=2, bias=False)",
        f"({d_model}, num_heads=2, d_k={d_model}, bias=False)",
    ),
    "05-line": lambda letters, alpha: (
        f"Take {letters} letters",
        rf"all {letters**2} ordered pairs, and $\alpha = {alpha}$",
        rf"exchanged, $\alpha = {1 - alpha:.1f}$",
        f"Count pairs, from 0 to {letters**2}",
        f"at {alpha}, the ",
    ),
    "06-predict": lambda batch, n, h, d_k, d_v, sentence, token, column: (
        f"{batch} sentences of {n} tokens have been projected for {h} heads",
        f"Queries are {d_k} wide, values {d_v}",
        f"projected = x @ w_q # ({batch}, {n}, {h * d_k})",
        f"unflatten(-1, ({h}, {d_k}))",
        f"`projected.reshape({batch}, {h}, {n}, {d_k})`",
        f"`[{sentence}, {token}, {column}]` of `projected`",
        f"sentence {sentence}, token {token}, column {column}",
    ),
    "06-slice": lambda d_model, h: (
        rf"$d_\text{{model}} = {d_model}$ and $h = {h}$ heads, {d_model // h} wide",
        f"${d_model // h}i$ to ${d_model // h}i + {d_model // h - 1}$",
        f"three matrices of its own, {d_model // h} by {d_model // h}",
        r"random matrices, each divided by $\sqrt{d_\text{model}}$",
        f"how many of the {d_model} columns",
    ),
    "07-shapes": lambda batch, n, d_model, h, d_k: (
        f"MultiHeadAttention(d_model={d_model}, num_heads={h}, d_k={d_k}",
        f"x has the shape ({batch}, {n}, {d_model})",
        f"num_heads={2 * h}, d_k={d_k // 2}",
    ),
    "07-rank": lambda n, d_model, h, d_k: (
        f"`d_model={d_model}, num_heads={h}, d_k={d_k}`, and {n} random tokens",
    ),
    "08-predict": lambda c_0, c_1, c_2, bias, n_k, seen: (
        f"Head 0 contributes {c_0} to it, head 1 contributes −{-c_1}",
        f"head 2 contributes {c_2}. The bias of `out_proj` is {bias} there",
        f"A query may see {seen} of {n_k} keys",
    ),
    "08-permute": lambda n, d_model, h, d_k, d_v: (
        f"Take a module with `n={n}, d_model={d_model}, h={h}, d_k={d_k}, d_v={d_v}`",
    ),
    "09-predict": lambda batch, n, d_model, h, d_mlp, j: (
        f"`Block(d_model={d_model}, h={h}, d_mlp={d_mlp})`",
        f"`({batch}, {n}, {d_model})`",
        f"Token {j}, counted from 0",
    ),
    "09-depth": lambda n, d_model, h, depth: (
        f"{n} random tokens of width {d_model}",
        f"{depth} modules `MultiHeadAttention({d_model}, {h})`",
    ),
}


@every_exercise
def test_the_statement_uses_the_public_sizes(exercise):
    if not exercise.wants_function:
        for phrase in STATED[exercise.id](**exercise.inputs(None)):
            assert phrase in statement(exercise)


# The page of worked solutions


@every_chapter
def test_a_solution_page_is_that_of_the_bank(chapter):
    (path,) = solutions.FOLDER.glob(f"{chapter}_*_solutions.md")
    text = path.read_text("utf-8")
    assert text == solutions.pages()[path], "run: python tools/solutions.py"
    for exercise in exercises_of(chapter):
        assert source(exercise.reference) in text
        assert solutions.marked_up(exercise.explanation) in text


@pytest.mark.parametrize(
    ("printed", "on_the_page"),
    [
        ("h·d_k = d_model, not `h`", r"$h \cdot d_k = d_\text{model}$, not `h`"),
        ("the batch · n_q rows of W^Q", r"the $\text{batch} \cdot n_q$ rows of $W^Q$"),
        ("-1/√d_model to √n_k", r"$-1/\sqrt{d_\text{model}}$ to $\sqrt{n_k}$"),
        ("q_i · k_j = −q_j · k_i:", r"$q_i \cdot k_j = -q_j \cdot k_i$:"),
        ("s_ij = s_ji", "$s_{ij} = s_{ji}$"),
        ("token i + n_k - n_q of n=5", "token $i + n_k - n_q$ of $n=5$"),
        ("|q − b| is -1 or 0.5, which is how", "|q − b| is -1 or 0.5, which is how"),
        ("`n_k = 5` in code", "`n_k = 5` in code"),
    ],
)
def test_formulas_are_set_on_the_page(printed, on_the_page):
    assert solutions.marked_up(printed) == on_the_page


# The table


def test_the_table_lists_every_answer(monkeypatch, capsys):
    some = {exercise.id: exercise for exercise in chapter_07.EXERCISES}
    monkeypatch.setattr(wrong_answers, "EXERCISES", some)
    assert wrong_answers.main() == 0
    table = capsys.readouterr().out
    for exercise in some.values():
        for wrong in exercise.wrong:
            assert f"| {exercise.id} | {wrong.misconception} | {wrong.fails} |" in table
    assert table.count("| accepted |") == sum(
        1 + len(exercise.right) for exercise in some.values()
    )


def test_the_table_exposes_a_wrong_answer_that_passes(monkeypatch, capsys):
    exercise = EXERCISES["07-mha"]
    harmless = Wrong("Nothing is wrong.", "scale", exercise.reference, "Well?")
    changed = dataclasses.replace(exercise, wrong=(harmless,))
    monkeypatch.setattr(wrong_answers, "EXERCISES", {"07-mha": changed})
    assert wrong_answers.main() == 1
    row = "| 07-mha | Nothing is wrong. | **WRONG** not rejected |"
    assert row in capsys.readouterr().out
