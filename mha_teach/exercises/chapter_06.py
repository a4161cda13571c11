"""Exercises of chapter 06: split, merge, and what a head gets of a token."""

from itertools import product

import torch

from mha_teach.exercises import _chapter_06_right as right
from mha_teach.exercises._compare import difference
from mha_teach.exercises.bank import (
    Draw,
    Exercise,
    Inputs,
    Property,
    Wrong,
    call,
    entry,
    reason,
    shape,
    slip,
)


def places(batch, n, h, d_k, d_v, sentence, token, column):
    """Say where split puts the number at [sentence, token, column] of x @ w_q."""
    place = token * h * d_k + column  # within its sentence
    return {
        "split": (batch, h, n, d_k),
        "index": (sentence, column // d_k, token, column % d_k),
        "strides": (n * h * d_k, d_k, h * d_k, 1),
        "merged": (batch, n, h * d_v),
        "reshaped": (sentence, place // (n * d_k), place // d_k % n, place % d_k),
    }


def _setting(draw: Draw) -> Inputs:
    """Choose a number that no wrong rule sends to the right place by chance."""
    batch, n, h = draw.one_of(10, 12), draw.one_of(5, 6), draw.one_of(3, 4)
    d_k, d_v = draw.one_of(7, 8), draw.one_of(9, 11)
    sizes = (batch, n, h, d_k, d_v)

    def tells(sentence, token, column):
        head, place = column // d_k, token * h * d_k + column
        other_head, row = place // (n * d_k), place // d_k % n
        return (
            len({*sizes, sentence, token, column}) == 8
            and len({sentence, head, token, column % d_k}) == 4
            and len({sentence, other_head, row, place % d_k}) == 4
            and head not in (0, column % h, other_head)
            and row != token
        )

    numbers = [
        number
        for number in product(range(1, batch), range(1, n), range(h * d_k))
        if tells(*number)
    ]
    sentence, token, column = draw.one_of(*numbers)
    names = ("batch", "n", "h", "d_k", "d_v", "sentence", "token", "column")
    return dict(zip(names, (*sizes, sentence, token, column), strict=True))


PREDICT = Exercise(
    id="06-predict",
    title="Follow one number",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=places,
    draw=_setting,
    axes={},
    properties=(
        Property(
            "split",
            "the shape of q after split",
            "Which axis is cut in two, and where does the head go then?",
            observe=entry("split"),
            axes="batch head query d_k",
        ),
        Property(
            "index",
            "where the number stands in q",
            "Head i owns columns i·d_k to (i+1)·d_k. Which head owns this column, and "
            "which of its numbers is it?",
            observe=entry("index"),
            axes="batch head query d_k",
        ),
        Property(
            "strides",
            "the strides of q",
            "In memory nothing has moved. How many places lie between a number and "
            "its neighbour along each axis?",
            observe=entry("strides"),
            axes="batch head query d_k",
        ),
        Property(
            "merged",
            "the shape of the merged heads",
            "What stands side by side, and how wide is one of them?",
            observe=entry("merged"),
            axes="batch query h·d_v",
        ),
        Property(
            "reshaped",
            "where a plain reshape puts the number",
            "At which place of its sentence does the number lie in memory? Count the "
            "pieces of d_k before it: which block do they fill, and which row?",
            observe=entry("reshaped"),
            axes="batch head query d_k",
        ),
    ),
    hints=(
        "Make it small: one sentence of 2 tokens, 2 heads of 3 columns. Number the "
        "places as they lie in memory. Which step cuts an axis, and which reads in "
        "another order?",
        "x @ w_q is written row by row. One column further is 1 place, one token "
        "further h·d_k, one sentence further n·h·d_k. How far is one head?",
        "unflatten cuts a column number c into (c // d_k, c % d_k). For the reshape: "
        "the number's place within its sentence is token · h·d_k + column. One block "
        "holds n·d_k places, one row d_k.",
    ),
    explanation=(
        "Column `c` is number `c % d_k` of head `c // d_k`. The transpose only reads "
        "in another order: its strides are those of `x @ w_q`, with d_k for one step "
        "to the next head. A plain reshape keeps the number's place in memory instead, "
        "divides it by n·d_k and calls the result a head."
    ),
    wrong=(
        Wrong(
            "To split is to cut.",
            "split",
            slip(places, "(batch, h, n, d_k)", "(batch, n, h, d_k)"),
            "That is the shape after unflatten. Attention works on the last two axes: "
            "which two must they be?",
        ),
        Wrong(
            "The head goes in front of everything.",
            "split",
            slip(places, "(batch, h, n, d_k)", "(h, batch, n, d_k)"),
            "The sentence stays the first axis. Beside which axis does the head go?",
        ),
        Wrong(
            "Every head keeps the whole width.",
            "split",
            slip(places, "(batch, h, n, d_k)", "(batch, h, n, h * d_k)"),
            "That makes h times as many numbers as there were. How many columns does "
            "one head own?",
        ),
        Wrong(
            "Head i takes every h-th column.",
            "index",
            slip(
                places,
                "(sentence, column // d_k, token, column % d_k)",
                "(sentence, column % h, token, column // h)",
            ),
            "You dealt the columns out in turn. Which columns stand side by side in "
            "the matrix of one head?",
        ),
        Wrong(
            "The token still comes before the head.",
            "index",
            slip(
                places,
                "(sentence, column // d_k, token, column % d_k)",
                "(sentence, token, column // d_k, column % d_k)",
            ),
            "That is after unflatten. Which two of the four change places next?",
        ),
        Wrong(
            "In front of everything stands the head.",
            "index",
            slip(
                places,
                "(sentence, column // d_k, token, column % d_k)",
                "(column // d_k, sentence, token, column % d_k)",
            ),
            "Your first number is the head. Which axis does transpose(1, 2) leave in "
            "front?",
        ),
        Wrong(
            "A number keeps its column.",
            "index",
            slip(places, "column % d_k)", "column)"),
            "A head is d_k wide. Counted from the first column of its head, where is "
            "the number?",
        ),
        Wrong(
            "A transpose moves the numbers.",
            "strides",
            slip(
                places,
                "(n * h * d_k, d_k, h * d_k, 1)",
                "(h * n * d_k, n * d_k, d_k, 1)",
            ),
            "Those are the strides of a tensor written in the order of q. Who has "
            "written anything since x @ w_q?",
        ),
        Wrong(
            "A transpose changes the shape alone.",
            "strides",
            slip(
                places,
                "(n * h * d_k, d_k, h * d_k, 1)",
                "(n * h * d_k, h * d_k, d_k, 1)",
            ),
            "Those are the strides before the transpose. Which step is longer, to the "
            "next head or to the next token?",
        ),
        Wrong(
            "Strides are sizes.",
            "strides",
            slip(places, "(n * h * d_k, d_k, h * d_k, 1)", "(batch, h, n, d_k)"),
            "A size says how many there are. How many places further is the next one?",
        ),
        Wrong(
            "Values are as wide as keys.",
            "merged",
            slip(places, "(batch, n, h * d_v)", "(batch, n, h * d_k)"),
            "What is merged is what the heads found. Is it made of keys or of values?",
        ),
        Wrong(
            "Merging adds the heads up.",
            "merged",
            slip(places, "(batch, n, h * d_v)", "(batch, n, d_v)"),
            "That is as wide as one head. Where have the others gone?",
        ),
        Wrong(
            "Merging puts the heads one after the other.",
            "merged",
            slip(places, "(batch, n, h * d_v)", "(batch, h * n, d_v)"),
            "That has a row for each head of each token. How many rows does W^O expect "
            "of a sentence?",
        ),
        Wrong(
            "A reshape to the right shape is a split.",
            "reshaped",
            slip(
                places,
                "(sentence, place // (n * d_k), place // d_k % n, place % d_k)",
                "(sentence, column // d_k, token, column % d_k)",
            ),
            "That is where split puts it. What does a reshape without a transpose do "
            "with the order in memory?",
        ),
        Wrong(
            "At least the token keeps its row.",
            "reshaped",
            slip(places, "place // d_k % n", "token"),
            "The block is right. Each token fills h rows now, so which row of the "
            "block is reached?",
        ),
    ),
    right=(
        right.places_by_running,
        right.places_as_lists,
        right.places_as_tensors,
    ),
)


def several(x, w_q, w_k, w_v, w_o, h):
    """Attend in h heads, all on one axis with the sentences."""

    def stack(t):  # (batch, n, h * width) to (h * batch, n, width)
        return torch.cat(t.chunk(h, dim=-1))

    q, k, v = stack(x @ w_q), stack(x @ w_k), stack(x @ w_v)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    heads = (weights @ v).chunk(h)
    return torch.cat(heads, dim=-1) @ w_o


def _matrices(draw: Draw, batch, n, d_model, h, d_k, d_v) -> Inputs:
    return {
        "x": draw.normal(batch, n, d_model),
        "w_q": 2 * draw.normal(d_model, h * d_k) / d_model**0.5,
        "w_k": draw.normal(d_model, h * d_k) / d_model**0.5,
        "w_v": draw.normal(d_model, h * d_v) / d_model**0.5,
        "w_o": draw.normal(h * d_v, d_model) / (h * d_v) ** 0.5,
        "h": h,
    }


def _some_sentences(draw: Draw) -> Inputs:
    return _matrices(draw, *draw.primes(6))


def _one_sentence(draw: Draw) -> Inputs:
    return _matrices(draw, 1, *draw.primes(5))


_CHUNK = "(weights @ v).chunk(h)"
_GIVEN = "(weights @ v).unflatten(0, (len(x), h)).unbind(1)"
_BY_SENTENCES = "unflatten(-1, (h, -1)).transpose(1, 2).flatten(0, 1)"

BUG = Exercise(
    id="06-bug",
    title="Right for one sentence",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=several,
    draw=_some_sentences,
    axes={
        "x": "batch n d_model",
        "w_q": "d_model h·d_k",
        "w_k": "d_model h·d_k",
        "w_v": "d_model h·d_v",
        "w_o": "h·d_v d_model",
        "returns": "batch n d_model",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_model per token",
            "Write the shape after each line. Which axis holds the heads, and what "
            "must stand side by side for W^O?",
            observe=shape,
        ),
        Property(
            "alone",
            "one sentence: equal to a loop over heads",
            "With one sentence the code as given was right. Which of your lines has "
            "changed what happens there?",
            draw=_one_sentence,
        ),
        Property(
            "together",
            "several sentences: each as if it were alone",
            "Name the entries of the first axis in order, once after stack and once as "
            "they are taken apart: heads first, or sentences first?",
        ),
    ),
    hints=(
        "With one sentence it is right, so no line of attention is wrong. What do "
        "several sentences have that one has not?",
        "Take 2 sentences and 3 heads, and write down the 6 entries of the first axis "
        "after stack: head 0 of sentence 0, then …?",
        "unflatten(0, (len(x), h)) reads 6 entries as 2 rows of 3. Is the second entry "
        "the next head or the next sentence?",
    ),
    explanation=(
        "The bug was in the line that makes heads. stack lays the heads one after the "
        "other, each with all its sentences: heads first. The line reads the axis "
        "back as sentences first, so with several of both, sentences get what heads "
        "found in others. One sentence, or one head, cannot show it. Either order "
        "will do, if both lines agree on it: `unflatten(0, (h, len(x))).unbind(0)` "
        "is right as well, and so is a stack that puts sentences first."
    ),
    given=slip(several, _CHUNK, _GIVEN),
    wrong=(
        Wrong(
            "One piece for each sentence.",
            "shape",
            slip(several, _CHUNK, "(weights @ v).chunk(len(x))"),
            "You have as many pieces as there are sentences. How many pieces must "
            "stand side by side for W^O?",
        ),
        Wrong(
            "Merging adds the heads up.",
            "shape",
            slip(several, "torch.cat(heads, dim=-1)", "sum(heads)"),
            "What meets W^O is d_v wide, like one head. How many rows has W^O?",
        ),
        Wrong(
            "Merging puts the heads one after the other.",
            "shape",
            slip(several, "torch.cat(heads, dim=-1)", "torch.cat(heads, dim=1)"),
            "What meets W^O is d_v wide, and has rows for every head. Along which axis "
            "are heads side by side?",
        ),
        Wrong(
            "stack is only a matter of shape.",
            "alone",
            slip(
                several,
                "torch.cat(t.chunk(h, dim=-1))",
                "t.reshape(len(t) * h, t.shape[1], -1)",
                _CHUNK,
                _GIVEN,
            ),
            "Your heads see the first tokens only, or the last. What does a reshape "
            "without a transpose cut apart?",
        ),
        Wrong(
            "In which order the heads stand does not matter.",
            "alone",
            slip(several, "torch.cat(heads, dim=-1)", "torch.cat(heads[::-1], dim=-1)"),
            "Your heads stand in reverse. Which rows of W^O belong to head 0?",
        ),
        Wrong(
            "The scale was the bug.",
            "alone",
            slip(several, " / q.shape[-1] ** 0.5", "", _CHUNK, _GIVEN),
            "You took the scale away, and it was right. What differs between one "
            "sentence and two?",
        ),
        Wrong(
            "stack was the bug.",
            "together",
            slip(several, "torch.cat(t.chunk(h, dim=-1))", f"t.{_BY_SENTENCES}"),
            "Now stack puts sentences first. In which order does chunk(h) take them "
            "apart?",
        ),
        Wrong(
            "Only what is handed over must stand in order.",
            "together",
            slip(
                several,
                "stack(x @ w_v)",
                f"(x @ w_v).{_BY_SENTENCES}",
                _CHUNK,
                _GIVEN,
            ),
            "Your weights stand heads first, your values sentences first. Whose values "
            "does a head of sentence 0 meet?",
        ),
    ),
    right=(
        right.several_heads_first,
        right.several_sentences_first,
        right.several_by_loop,
        right.several_fused,
        right.several_in_numpy,
    ),
)


def split(x, h):
    """Cut x (batch, n, h * width) into heads: (batch, h, n, width)."""
    return x.unflatten(-1, (h, -1)).transpose(1, 2)


def _projected(draw: Draw) -> Inputs:
    batch, n, h, width = draw.primes(4)
    return {"x": draw.normal(batch, n, h * width), "h": h}


def _named_tokens(draw: Draw) -> Inputs:
    inputs = _projected(draw)
    inputs["x"][:] = torch.arange(inputs["x"].shape[1])[:, None]
    return inputs


def _named_sentences(draw: Draw) -> Inputs:
    inputs = _projected(draw)
    inputs["x"][:] = torch.arange(len(inputs["x"]))[:, None, None]
    return inputs


def _named_columns(draw: Draw) -> Inputs:
    inputs = _projected(draw)
    inputs["x"][:] = torch.arange(inputs["x"].shape[-1])
    return inputs


def _no_sentence(draw: Draw) -> Inputs:
    n, h, width = draw.primes(3)
    return {"x": draw.normal(0, n, h * width), "h": h}


def _heads_with_one(heads):
    """Yield heads (batch, h, n, width) with one of each kind in turn, then of all."""
    for axis, name in enumerate(("sentence", "head", "token", "number in a head")):
        yield f"one {name}", heads.narrow(axis, 0, 1)
    yield "one of each", heads[:1, :1, :1, :1]


def _first_odd(function, cases, axes):
    """Say which of the cases (name, inputs, expected) comes out otherwise, and how."""
    for name, inputs, expected in cases:
        try:
            found = difference(expected, call(function, inputs), axes)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return f"{name}: {type(error).__name__}"
        if found:
            return f"{name}: {found.got}"
    return "nothing"


def _split_of_one(function, inputs):
    cases = (
        (name, {"x": merge(heads).contiguous(), "h": heads.shape[1]}, heads)
        for name, heads in _heads_with_one(split(**inputs))
    )
    return _first_odd(function, cases, SPLIT.axes["returns"])


def _merge_of_one(function, inputs):
    cases = (
        (name, {"x": heads.contiguous()}, merge(heads))
        for name, heads in _heads_with_one(inputs["x"])
    )
    return _first_odd(function, cases, MERGE.axes["returns"])


def _one_column_too_many(draw: Draw) -> Inputs:
    """As many tokens as let a view recut them all, one more than needed."""
    batch, h = draw.one_of(4, 8), draw.one_of(3, 5)
    return {"x": draw.normal(batch, 2 * h, 2 * h + 1), "h": h}


def _refusal(function, inputs):
    """Observe an error, or say what came instead.

    Six columns for four heads are tried as well: they make three equal pieces, or six.
    """
    for each in (inputs, {"x": inputs["x"][..., :6], "h": 4}):
        try:
            result = call(function, each)
        except KeyboardInterrupt:
            raise
        except BaseException:
            continue
        case = f"{each['x'].shape[-1]} columns, h={each['h']}"
        if not hasattr(result, "shape"):
            return f"{case}: no tensor, and no error"
        return f"{case}: a result of shape {tuple(result.shape)}"
    return "an error"


def _of_nobody_and_of_one(draw_nobody, of_one):
    """Return the two properties that split and merge share: no axis is ever lost."""
    return (
        Property(
            "nobody",
            "a batch of no sentences",
            "Which axes should be left, even of no sentence?",
            draw=draw_nobody,
            observe=shape,
            on_error="With no sentence there is no number. Which line needs one, to "
            "infer a -1 from it or to look at it?",
        ),
        Property(
            "one",
            "one sentence, one head, one token, heads of width 1: every axis stays",
            "Put 1 for one of the sizes, and write the shape after each line. Which "
            "line does something else than before?",
            observe=of_one,
            compared="what an axis of length 1 changes",
        ),
    )


SPLIT = Exercise(
    id="06-split",
    title="Split",
    kind="write",
    level=2,
    minutes=10,
    points=3,
    reference=split,
    draw=_projected,
    axes={"x": "batch n columns", "returns": "batch head n width"},
    properties=(
        Property(
            "shape",
            "(batch, h, n, width)",
            "Which axis of x becomes two, and which two axes change places then?",
            observe=shape,
        ),
        Property(
            "tokens",
            "every number names its token: row 2 of each head is token 2",
            "Which tokens does your head 0 hold? A reshape keeps the order in memory; "
            "which step changes the order?",
            draw=_named_tokens,
        ),
        Property(
            "sentences",
            "every number names its sentence: they stay apart",
            "Which of your steps lets a sentence and a head change places?",
            draw=_named_sentences,
        ),
        Property(
            "columns",
            "every number names its column: head 0 has the first ones",
            "Which columns does your head 0 hold, and which stand side by side in x?",
            draw=_named_columns,
        ),
        *_of_nobody_and_of_one(_no_sentence, _split_of_one),
        Property(
            "refuses",
            "columns that h does not divide: an error",
            "Some columns are left over. What did your function do with them?",
            draw=_one_column_too_many,
            observe=_refusal,
            compared="what came of it",
        ),
    ),
    hints=(
        "Take one sentence of 4 tokens, 10 numbers each, with the numbers from 0 to 39 "
        "in order, and h = 2. Write down head 0. What does your function make of it?",
        "Two steps. The first cuts the last axis in two, (h, width). The second lets "
        "two axes change places.",
        "x.unflatten(-1, (h, -1)) cuts the last axis and leaves the others alone; its "
        "-1 is inferred from that axis.",
    ),
    explanation=(
        "unflatten cuts one axis, and asks that h divides it; view and reshape see the "
        "numbers of all axes at once, and a -1 in them may take columns for tokens. "
        "The transpose does the rest, without moving a number."
    ),
    wrong=(
        Wrong(
            "To split is to cut.",
            "shape",
            slip(split, ".transpose(1, 2)", ""),
            "The head stands behind the token. Attention works on the last two axes: "
            "which two must they be?",
        ),
        Wrong(
            "The head goes in front of everything.",
            "shape",
            slip(split, "transpose(1, 2)", "permute(2, 0, 1, 3)"),
            "The sentence is no longer the first axis. Which two axes change places?",
        ),
        Wrong(
            "Heads and sentences share an axis.",
            "shape",
            slip(
                split,
                "x.unflatten(-1, (h, -1)).transpose(1, 2)",
                "x.reshape(len(x) * h, x.shape[1], -1)",
            ),
            "You have three axes: heads and sentences share the first one. Which axis "
            "alone has to be cut?",
        ),
        Wrong(
            "The width comes before the head.",
            "shape",
            slip(split, "(h, -1)", "(-1, h)"),
            "Your second axis is width long, your last one h. Which comes first, the "
            "head or its numbers?",
        ),
        Wrong(
            "A reshape to the right shape is a split.",
            "tokens",
            slip(
                split,
                "x.unflatten(-1, (h, -1)).transpose(1, 2)",
                "x.reshape(len(x), h, x.shape[1], x.shape[2] // h)",
            ),
            "Your head 0 holds the first tokens only, each torn into rows. Which two "
            "axes have to change places, rather than be cut anew?",
        ),
        Wrong(
            "Heads first or sentences first is all the same.",
            "sentences",
            slip(
                split,
                "x.unflatten(-1, (h, -1)).transpose(1, 2)",
                "torch.cat(x.chunk(h, dim=-1)).unflatten(0, (len(x), h))",
            ),
            "You stacked heads first and read them sentences first. Whose rows does "
            "sentence 0 get?",
        ),
        Wrong(
            "Head i takes every h-th column.",
            "columns",
            slip(
                split,
                "unflatten(-1, (h, -1)).transpose(1, 2)",
                "unflatten(-1, (-1, h)).permute(0, 3, 1, 2)",
            ),
            "Your head 0 holds columns 0, h, 2h and so on. Which columns of W^Q belong "
            "to head 0?",
        ),
        Wrong(
            "-1 stands for the tokens.",
            "nobody",
            slip(
                split, "unflatten(-1, (h, -1))", "view(len(x), -1, h, x.shape[-1] // h)"
            ),
            "Your -1 stands for the tokens. It has to be guessed from no number at "
            "all, and on other sizes it is guessed wrong. Where could you read it?",
        ),
        Wrong(
            "Of nobody there is nothing to split.",
            "nobody",
            slip(split, "return x.", "return x if len(x) == 0 else x."),
            "That has the axes of x. Which axes should be left, even of no sentence?",
        ),
        Wrong(
            "-1 stands for the width.",
            "nobody",
            slip(split, "unflatten(-1, (h, -1))", "view(*x.shape[:2], h, -1)"),
            "Your -1 stands for the width, and has to be guessed from no number at "
            "all. From which axis could it be read?",
        ),
        Wrong(
            "An axis of length 1 is superfluous.",
            "one",
            slip(split, ".transpose(1, 2)", ".transpose(1, 2).squeeze()"),
            "With one sentence the axis of sentences is gone. Which step drops an axis "
            "that is one long?",
        ),
        Wrong(
            "One head need not be split.",
            "one",
            slip(split, "return x.", "return x if h == 1 else x."),
            "With one head its axis is missing. How many axes does attention expect?",
        ),
        Wrong(
            "What is left over does no harm.",
            "refuses",
            slip(
                split,
                "x.unflatten(-1, (h, -1)).transpose(1, 2)",
                "torch.stack([x[..., i * (w := x.shape[-1] // h) :][..., :w]"
                " for i in range(h)], dim=1)",
            ),
            "Nothing raises, and the last columns are in no head. Who would notice?",
        ),
        Wrong(
            "What is returned or printed is an error as well.",
            "refuses",
            slip(
                split,
                "return x.",
                "return None if x.shape[-1] % h else x.",
            ),
            "Whoever calls you is not stopped. Which statement raises an error?",
        ),
        Wrong(
            "chunk makes as many pieces as it is told.",
            "refuses",
            slip(
                split,
                "x.unflatten(-1, (h, -1)).transpose(1, 2)",
                "torch.stack(x.chunk(h, dim=-1), dim=1)",
            ),
            "Six columns for four heads, and you return three. How many pieces does "
            "chunk promise?",
        ),
        Wrong(
            "The width is what the division leaves, whatever remains.",
            "refuses",
            slip(
                split,
                "x.unflatten(-1, (h, -1)).transpose(1, 2)",
                "torch.stack(x.split(x.shape[-1] // h, dim=-1), dim=1)",
            ),
            "Six columns for four heads, and you return six. Which number does split "
            "take, and which did you want?",
        ),
    ),
    right=(
        right.split_by_view,
        right.split_by_pieces,
        right.split_by_index,
        right.split_by_package,
        right.split_in_numpy,
    ),
)


def merge(x):
    """Put the heads of x (batch, h, n, width) side by side: (batch, n, h * width)."""
    return x.transpose(1, 2).flatten(2)


def _head_outputs(draw: Draw) -> Inputs:
    return {"x": draw.normal(*draw.primes(4))}


def _tokens_named_by_head(draw: Draw) -> Inputs:
    inputs = _head_outputs(draw)
    inputs["x"][:] = torch.arange(inputs["x"].shape[2])[:, None]
    return inputs


def _sentences_named_by_head(draw: Draw) -> Inputs:
    inputs = _head_outputs(draw)
    inputs["x"][:] = torch.arange(len(inputs["x"]))[:, None, None, None]
    return inputs


def _columns_named_by_head(draw: Draw) -> Inputs:
    inputs = _head_outputs(draw)
    _, h, _, width = inputs["x"].shape
    inputs["x"][:] = torch.arange(h * width).view(h, 1, width)
    return inputs


def _no_head_outputs(draw: Draw) -> Inputs:
    return {"x": draw.normal(0, *draw.primes(3))}


MERGE = Exercise(
    id="06-merge",
    title="Merge",
    kind="write",
    level=2,
    minutes=5,
    points=2,
    reference=merge,
    draw=_head_outputs,
    axes={"x": "batch head n width", "returns": "batch n h·width"},
    properties=(
        Property(
            "shape",
            "(batch, n, h·width)",
            "Which two axes become one, and do they stand beside each other yet?",
            observe=shape,
        ),
        Property(
            "tokens",
            "every number names its token: row 2 is token 2",
            "In memory the heads lie one after the other. Which step must come before "
            "two axes are joined?",
            draw=_tokens_named_by_head,
        ),
        Property(
            "sentences",
            "every number names its sentence: they stay apart",
            "Which of your steps lets a sentence and a head change places?",
            draw=_sentences_named_by_head,
        ),
        Property(
            "columns",
            "every number names its column: head 0 comes first, then head 1",
            "Read your first row from the left. Whose numbers come first, and whose "
            "next? Which rows of W^O will they meet?",
            draw=_columns_named_by_head,
        ),
        *_of_nobody_and_of_one(_no_head_outputs, _merge_of_one),
    ),
    hints=(
        "Take one sentence of 2 tokens and 2 heads, and write down the two rows that "
        "W^O should read. What does your function make of it?",
        "Go through split backwards: first the two axes change places again, then two "
        "are joined.",
        "flatten(2) joins axis 2 and all after it. It copies where it must; view would "
        "raise.",
    ),
    explanation=(
        "Once the transpose has put head and width side by side, flatten joins them. "
        "Only then are numbers copied: in memory the heads lay one after the other. "
        "Nothing here depends on d_k, so values may be as wide as they like."
    ),
    wrong=(
        Wrong(
            "The heads are averaged.",
            "shape",
            slip(merge, "x.transpose(1, 2).flatten(2)", "x.mean(dim=1)"),
            "Your rows are as wide as one head. Where do the numbers of h heads find "
            "room in them?",
        ),
        Wrong(
            "To merge is to flatten.",
            "shape",
            slip(merge, "transpose(1, 2).", ""),
            "You have a row for each head. For whom should there be one, and which "
            "axis must stand beside the width before you join?",
        ),
        Wrong(
            "Each head of a token has a row of its own.",
            "shape",
            slip(merge, "flatten(2)", "flatten(1, 2)"),
            "You joined tokens and heads. Which two axes make up one row for W^O?",
        ),
        Wrong(
            "Heads are put one after the other.",
            "shape",
            slip(
                merge, "x.transpose(1, 2).flatten(2)", "torch.cat(x.unbind(1), dim=1)"
            ),
            "You laid the heads one below the other, all tokens of head 0 first. Along "
            "which axis are they side by side?",
        ),
        Wrong(
            "view can join any two neighbours.",
            "shape",
            slip(merge, "flatten(2)", "view(len(x), x.shape[2], -1)"),
            "After the transpose, how far apart in memory are the end of one head and "
            "the beginning of the next? Which function may copy?",
        ),
        Wrong(
            "A reshape to the right shape is a merge.",
            "tokens",
            slip(
                merge,
                "x.transpose(1, 2).flatten(2)",
                "x.reshape(len(x), x.shape[2], x.shape[1] * x.shape[3])",
            ),
            "Row 0 holds one head's answers to several tokens. What should stand side "
            "by side in it?",
        ),
        Wrong(
            "Heads first or sentences first is all the same.",
            "sentences",
            slip(
                merge,
                "x.transpose(1, 2)",
                "x.transpose(0, 1).reshape(x.shape).transpose(1, 2)",
            ),
            "You read heads as sentences. Whose rows does sentence 0 get?",
        ),
        Wrong(
            "The heads take turns.",
            "columns",
            slip(merge, "transpose(1, 2)", "permute(0, 2, 3, 1)"),
            "Your row begins with number 0 of every head. Which rows of W^O belong to "
            "head 0?",
        ),
        Wrong(
            "-1 stands for what is left.",
            "nobody",
            slip(merge, "flatten(2)", "reshape(len(x), x.shape[2], -1)"),
            "Your -1 has to be guessed from no number at all. Which two sizes make up "
            "the last axis?",
        ),
        Wrong(
            "Of nobody there is nothing to merge.",
            "nobody",
            slip(merge, "return x.", "return x if len(x) == 0 else x."),
            "That has the axes of x. Which axes should be left, even of no sentence?",
        ),
        Wrong(
            "An axis of length 1 is superfluous.",
            "one",
            slip(merge, "flatten(2)", "flatten(2).squeeze()"),
            "With one sentence the axis of sentences is gone. Which step drops an axis "
            "that is one long?",
        ),
        Wrong(
            "One head need not be merged.",
            "one",
            slip(merge, "return x.", "return x if x.shape[1] == 1 else x."),
            "With one head its axis is still there. How many axes has what W^O reads?",
        ),
    ),
    right=(
        right.merge_by_reshape,
        right.merge_by_cat,
        right.merge_by_index,
        right.merge_by_package,
        right.merge_in_numpy,
    ),
)


def noticed(d_model, h):
    """Count who notices number 0 of the tokens, cut after and before projecting."""
    n, d_k = 7, d_model // h
    x = torch.randn(n, d_model, dtype=torch.float64)
    w_qkv = torch.randn(3, d_model, d_model, dtype=x.dtype) / d_model**0.5
    w_o = torch.randn(d_model, d_model, dtype=x.dtype) / d_model**0.5
    blocks = torch.block_diag(*torch.ones(h, d_k, d_k))  # 1 where a head may read

    def run(x, w):
        q, k, v = (x @ w).unflatten(-1, (h, d_k)).transpose(1, 2)
        weights = (q @ k.mT / d_k**0.5).softmax(dim=-1)
        return weights, (weights @ v).transpose(0, 1).flatten(1) @ w_o

    def moved(w):
        x_new = x.clone()
        x_new[:, 0] += 1
        pairs = zip(run(x, w), run(x_new, w), strict=True)
        weights, output = ((after - before).abs() > 1e-9 for before, after in pairs)
        return weights.any(-1).any(-1).sum().item(), output.any(0).sum().item()

    return {
        "projected": moved(w_qkv)[0],
        "sliced": moved(w_qkv * blocks)[0],
        "output": moved(w_qkv * blocks)[1],
        "parameters": w_qkv.numel() + w_o.numel(),
        "fewer": 3 * h * d_k**2 + d_model**2,
        "why": "A head with a slice decides whom to look at by that slice alone. W^O "
        "mixes what the heads bring, but after the weights are made, so no head of "
        "this layer can ask with one slice and be answered by another.",
    }


def _widths(draw: Draw) -> Inputs:
    h, d_k = draw.one_of(4, 5), draw.one_of(6, 7, 8)
    return {"d_model": h * d_k, "h": h}


SLICE = Exercise(
    id="06-slice",
    title="What a slice costs",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=noticed,
    draw=_widths,
    axes={},
    properties=(
        Property(
            "projected",
            "heads that notice, the projection cut",
            "Whose query contains number 0 of a token? Write one entry of x @ w_q as "
            "a sum.",
            observe=entry("projected"),
        ),
        Property(
            "sliced",
            "heads that notice, the input cut",
            "Look at the maps, before W^O. In whose slice does number 0 lie?",
            observe=entry("sliced"),
        ),
        Property(
            "output",
            "numbers of the output that notice, the input cut",
            "W^O comes after the heads. How many of its columns read what head 0 "
            "brings?",
            observe=entry("output"),
        ),
        Property(
            "parameters",
            "parameters, the projection cut",
            "Four matrices. How many numbers has each?",
            observe=entry("parameters"),
        ),
        Property(
            "fewer",
            "parameters, the input cut",
            "How many numbers go into a head, how many come out, and how many such "
            "matrices are there? Is W^O cut as well?",
            observe=entry("fewer"),
        ),
        reason(
            "What would you tell someone who cuts the input to save parameters? The "
            "worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "Write one number of a query of head 1 as a sum over the numbers of its token, "
        "once for each of the two layers. Is number 0 among them?",
        "Compare the weights before and after, head by head, in float64: a head "
        "notices if any entry moves by more than 1e-9. For the reason: what is decided "
        "before W^O, and what after?",
        "The small matrices of all heads are one large matrix that is zero outside its "
        "blocks. torch.block_diag(*torch.ones(h, d_k, d_k)) is 1 inside such blocks.",
    ),
    explanation=(
        "The reason in the last entry is one way to say it. Every number of the output "
        "notices, so a look at the output alone would not find the slip: W^O mixes "
        "the heads. But the maps were made before. Of every h numbers in W^Q, W^K and "
        "W^V one is left. Public code has gone further and let all heads share one "
        "d_k by d_k matrix for queries, one for keys and one for values. The matrices "
        "are divided by √d_model, since large scores make a softmax stand still: a "
        "head could notice, and its map not move."
    ),
    wrong=(
        Wrong(
            "Number 0 belongs to head 0.",
            "projected",
            slip(noticed, '"projected": moved(w_qkv)[0]', '"projected": 1'),
            "One head would notice if the input were cut. Of which numbers is a query "
            "made here?",
        ),
        Wrong(
            "A new number changes the values, not the maps.",
            "projected",
            slip(noticed, '"projected": moved(w_qkv)[0]', '"projected": 0'),
            "Queries and keys are made of the tokens, too. Did you compare the weights "
            "of both runs?",
        ),
        Wrong(
            "The projection mixes all numbers in any case.",
            "sliced",
            slip(noticed, '"sliced": moved(w_qkv * blocks)[0]', '"sliced": h'),
            "A head's own matrix has d_k rows now. Which numbers of the token meet "
            "them?",
        ),
        Wrong(
            "The other heads notice through the keys.",
            "sliced",
            slip(noticed, '"sliced": moved(w_qkv * blocks)[0]', '"sliced": 2'),
            "Queries and keys of a head are cut from the same slice. Did you cut the "
            "rows and the columns of W at the same places?",
        ),
        Wrong(
            "What one head brings stays in its own columns.",
            "output",
            slip(
                noticed, '"output": moved(w_qkv * blocks)[1]', '"output": d_model // h'
            ),
            "That is how wide one head is before W^O. What does W^O do with it?",
        ),
        Wrong(
            "What one head notices is lost among the others.",
            "output",
            slip(noticed, '"output": moved(w_qkv * blocks)[1]', '"output": 0'),
            "A head has changed what it brings. Can the output stay as it was?",
        ),
        Wrong(
            "Queries, keys and values are all that is learnt.",
            "parameters",
            slip(noticed, "w_qkv.numel() + w_o.numel()", "w_qkv.numel()"),
            "That counts W^Q, W^K and W^V. What leads back to d_model?",
        ),
        Wrong(
            "Each head has four matrices of the full size.",
            "parameters",
            slip(noticed, "w_qkv.numel() + w_o.numel()", "4 * h * d_model**2"),
            "You counted W^Q once for each head. How many columns of it does one head "
            "own?",
        ),
        Wrong(
            "A projection always has a bias.",
            "parameters",
            slip(
                noticed,
                "w_qkv.numel() + w_o.numel()",
                "w_qkv.numel() + w_o.numel() + 4 * d_model",
            ),
            "That is with four biases of d_model numbers. Has this layer any?",
        ),
        Wrong(
            "What is cut is as large as before.",
            "fewer",
            slip(noticed, "3 * h * d_k**2 + d_model**2", "4 * d_model**2"),
            "Most entries of W are zero now. How many rows has the matrix of one head?",
        ),
        Wrong(
            "W^O is cut like the others.",
            "fewer",
            slip(noticed, "3 * h * d_k**2 + d_model**2", "4 * h * d_k**2"),
            "Then no head would ever meet another. Which matrix reads all heads?",
        ),
        Wrong(
            "Each small projection has a bias.",
            "fewer",
            slip(
                noticed,
                "3 * h * d_k**2 + d_model**2",
                "3 * h * d_k**2 + d_model**2 + 4 * d_model",
            ),
            "That is with biases of 4·d_model numbers in all. Has this layer any?",
        ),
        Wrong(
            "The heads share one small matrix.",
            "fewer",
            slip(noticed, "3 * h * d_k**2", "3 * d_k**2"),
            "That is one matrix for all heads. Has each of the h heads its own here?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(noticed, '"why": "A', '"why": "Less." or "A'),
            "The numbers are right. What do they mean for someone who has to choose?",
        ),
    ),
    right=(
        right.noticed_by_module,
        right.noticed_by_thinking,
        right.noticed_as_tensors,
    ),
)

EXERCISES = (PREDICT, BUG, SPLIT, MERGE, SLICE)
