"""Exercises of chapter 03: who asks, who is asked, and what is handed over."""

import torch

from mha_teach.exercises import _chapter_03_right as right
from mha_teach.exercises.bank import (
    Draw,
    Exercise,
    Inputs,
    Property,
    Wrong,
    call,
    entry,
    of_pair,
    reason,
    shape,
    side_by_side,
    sizes_of_pair,
    slip,
)


def _rounded(key: str, digits: int):
    """Observe an entry, rounded if it is a number."""

    def observe(function, inputs):
        value = entry(key)(function, inputs)
        try:
            number = torch.as_tensor(value).detach()
        except (TypeError, ValueError, RuntimeError):
            return value
        return number.double().round(decimals=digits)

    return observe


def shapes(batch, n_q, n_k, d_model, d_context, d_k, d_v):
    """Say what one head makes of x (batch, n_q, d_model) and its context."""
    return {
        "w_k": (d_context, d_k),
        "v": (batch, n_k, d_v),
        "weights": (batch, n_q, n_k),
        "output": (batch, n_q, d_v),
        "total": batch * n_q,
    }


def _setting(draw: Draw) -> Inputs:
    batch, n_q, n_k, d_k, d_v = draw.primes(5)
    return {
        "batch": batch,
        "n_q": n_q,
        "n_k": n_k,
        "d_model": draw.one_of(16, 20),
        "d_context": draw.one_of(12, 24),
        "d_k": d_k,
        "d_v": d_v,
    }


SHAPES = Exercise(
    id="03-shapes",
    title="Two sentences, seven sizes",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=shapes,
    draw=_setting,
    axes={},
    properties=(
        Property(
            "w_k",
            "the shape of W^K",
            "Which tokens are made into keys? What comes in, and what goes out?",
            observe=entry("w_k"),
            axes="in out",
        ),
        Property(
            "v",
            "the shape of v",
            "Whose values are they, and how many of those tokens are there?",
            observe=entry("v"),
            axes="batch key d_v",
        ),
        Property(
            "weights",
            "the shape of the weights",
            "One weight belongs to one pair. A pair of what, in which order?",
            observe=entry("weights"),
            axes="batch query key",
        ),
        Property(
            "output",
            "the shape of the output",
            "Who gets an answer, and what is an answer made of?",
            observe=entry("output"),
            axes="batch query d_v",
        ),
        Property(
            "total",
            "the sum of all weights",
            "What does one row of weights add up to? How many rows are there?",
            observe=_rounded("total", 2),
        ),
    ),
    hints=(
        "Write the three lines q = x @ w_q, k = context @ w_k, v = context @ w_v, and "
        "under each factor its shape. The inner sizes must agree.",
        "Scores are q @ k.mT: (n_q, d_k) times (d_k, n_k), for each item of the batch. "
        "Softmax changes no shape.",
        "Each query has one unit of weight to give.",
    ),
    explanation=(
        "Queries come from `x`; keys and values come from the context. So W^K and W^V "
        "begin with d_context, there are n_k keys and values, and n_q rows of weights "
        "and of output. Queries and keys must share d_k, keys and values n_k; n_q and "
        "d_v are free. Each of the batch · n_q rows of weights sums to one."
    ),
    wrong=(
        Wrong(
            "Every projection starts from d_model.",
            "w_k",
            slip(shapes, "(d_context, d_k)", "(d_model, d_k)"),
            "That is W^Q. Which tokens does W^K act on, and how wide are they?",
        ),
        Wrong(
            "A matrix is written as nn.Linear stores it.",
            "w_k",
            slip(shapes, "(d_context, d_k)", "(d_k, d_context)"),
            "nn.Linear stores it so. In context @ w_k, which size comes first?",
        ),
        Wrong(
            "Values come from the tokens that ask.",
            "v",
            slip(shapes, "(batch, n_k, d_v)", "(batch, n_q, d_v)"),
            "You have a value for each query. Who hands over, those who ask or those "
            "who are asked?",
        ),
        Wrong(
            "A value is as wide as its key.",
            "v",
            slip(shapes, "(batch, n_k, d_v)", "(batch, n_k, d_k)"),
            "That is k. Which size is free, because values meet no query?",
        ),
        Wrong(
            "A row of weights belongs to a key.",
            "weights",
            slip(shapes, "(batch, n_q, n_k)", "(batch, n_k, n_q)"),
            "Your rows belong to the keys. Who distributes weight, and over whom?",
        ),
        Wrong(
            "Weights are always square.",
            "weights",
            slip(shapes, "(batch, n_q, n_k)", "(batch, n_q, n_q)"),
            "They are square when a sentence asks itself. How many keys are there "
            "here?",
        ),
        Wrong(
            "There is an answer for each token that is asked.",
            "output",
            slip(shapes, "(batch, n_q, d_v)", "(batch, n_k, d_v)"),
            "That is the shape of v. Who waits for an answer?",
        ),
        Wrong(
            "An answer looks like the question.",
            "output",
            slip(shapes, "(batch, n_q, d_v)", "(batch, n_q, d_k)"),
            "That is the shape of q. What is averaged, queries or values?",
        ),
        Wrong(
            "The output is as wide as the tokens that came in.",
            "output",
            slip(shapes, "(batch, n_q, d_v)", "(batch, n_q, d_model)"),
            "Only W^O would lead back to d_model. Is there one in this head?",
        ),
        Wrong(
            "All weights of a table sum to one.",
            "total",
            slip(shapes, '"total": batch * n_q', '"total": batch'),
            "That is one unit for each item of the batch. Does softmax normalise a "
            "table or a row?",
        ),
        Wrong(
            "Each key collects one unit of weight.",
            "total",
            slip(shapes, '"total": batch * n_q', '"total": batch * n_k'),
            "You gave each key one unit. Which axis does softmax run along, and which "
            "sums does that fix?",
        ),
        Wrong(
            "The batch is only a matter of form.",
            "total",
            slip(shapes, '"total": batch * n_q', '"total": n_q'),
            "That is one item of the batch. How many are there?",
        ),
    ),
    right=(
        right.shapes_by_running,
        right.shapes_as_lists,
        right.shapes_as_tensors,
    ),
)


def cross(x, context, w_q, w_k, w_v):
    """Let the tokens of x ask the tokens of context, with one head."""
    q, k, v = x @ w_q, context @ w_k, context @ w_v
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return weights @ v


def _two_sentences(draw: Draw, batch, n_q, n_k, d_model, d_k, d_v) -> Inputs:
    return {
        "x": draw.normal(batch, n_q, d_model),
        "context": draw.normal(batch, n_k, d_model),
        "w_q": 2 * draw.normal(d_model, d_k) / d_model**0.5,
        "w_k": draw.normal(d_model, d_k) / d_model**0.5,
        "w_v": draw.normal(d_model, d_v) / d_model**0.5,
    }


def _of_unequal_length(draw: Draw) -> Inputs:
    batch, d_model, d_k, d_v, *lengths = draw.primes(6)
    n_q, n_k = sorted(lengths)
    return _two_sentences(draw, batch, n_q, n_k, d_model, d_k, d_v)


def _of_equal_length(draw: Draw) -> Inputs:
    batch, n, d_model, d_k, d_v = draw.primes(5, above=2)
    return _two_sentences(draw, batch, n, n, d_model, d_k, d_v)


def _one_token_each(draw: Draw) -> Inputs:
    batch, d_model, d_k, d_v = draw.primes(4)
    return _two_sentences(draw, batch, 1, 1, d_model, d_k, d_v)


def _the_same_twice(draw: Draw) -> Inputs:
    inputs = _of_equal_length(draw)
    inputs["context"] = inputs["x"].clone()
    return inputs


def _a_question_twice(draw: Draw) -> Inputs:
    inputs = _of_equal_length(draw)
    inputs["x"][:, 1] = inputs["x"][:, 0]
    return inputs


def _each_asks_the_other(function, inputs):
    """Observe both: what the shorter sentence asks, and what the longer one asks."""
    turned = inputs | {"x": inputs["context"], "context": inputs["x"]}
    answers = [call(function, each) for each in (inputs, turned)]
    return torch.cat([torch.as_tensor(answer) for answer in answers], dim=1)


def _second_minus_first(function, inputs):
    output = torch.as_tensor(call(function, inputs))
    return output[:, 1] - output[:, 0]


def _change_by_turning(function, inputs):
    """Observe what changes when the context is turned by one token."""
    turned = inputs | {"context": inputs["context"].roll(1, dims=1)}
    before, after = call(function, inputs), call(function, turned)
    return torch.as_tensor(after) - torch.as_tensor(before)


_THREE = "x @ w_q, context @ w_k, context @ w_v"
_GIVEN = "context @ w_q, x @ w_k, context @ w_v"

BUG = Exercise(
    id="03-bug",
    title="The wrong sentence asks",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=cross,
    draw=_of_unequal_length,
    axes={
        "x": "batch n_q d_model",
        "context": "batch n_k d_model",
        "w_q": "d_model d_k",
        "w_k": "d_model d_k",
        "w_v": "d_model d_v",
        "returns": "batch query d_v",
    },
    properties=(
        Property(
            "shape",
            "one answer of width d_v per token of x",
            "Which line changes the number of axes or the width?",
            draw=_of_equal_length,
            observe=shape,
        ),
        Property(
            "alone",
            "one token asks one token: its value comes back",
            "With one key its weight is 1. Is yours? And what is multiplied by it: "
            "which token, and which matrix?",
            draw=_one_token_each,
        ),
        Property(
            "self",
            "x asks itself: self-attention",
            "The values are right, the weights are not. Which matrix makes queries, "
            "which keys, what divides the scores, and what do weights add up to?",
            draw=_the_same_twice,
        ),
        Property(
            "asks",
            "the same question twice gets the same answer twice",
            "Tokens 0 and 1 of x are the same, but their answers differ. Whose row is "
            "a row of your scores?",
            draw=_a_question_twice,
            observe=_second_minus_first,
            axes="batch d_v",
            compared="your answer to token 1, minus the one to token 0",
        ),
        Property(
            "answers",
            "the context turned by one token changes no answer",
            "A key and a value have come apart. Which tokens are your keys made of?",
            draw=_of_equal_length,
            observe=_change_by_turning,
            compared="your answers with the context turned, minus those without",
        ),
        Property(
            "lengths",
            "n_q and n_k differ, either way: equal to the formula",
            "Which of your tensors have n_q rows, and which n_k?",
            observe=_each_asks_the_other,
            compared="your answers to x; then, below them, those to context, when it "
            "asks x",
        ),
    ),
    hints=(
        "Self-attention cannot show it: there x and context are the same. Try two "
        "different sentences, of different lengths.",
        "The error comes two lines after the bug. Write the shape of q, k, v and of "
        "the weights beside each line; which of them has the wrong number of rows?",
        "Who asks? x does. What must q be made of?",
    ),
    explanation=(
        "The bug was in the first line: queries were made of the context and keys of "
        "`x`, so the sentence that should answer asked. Where `x` is the context "
        "nothing is wrong, and where both have as many tokens no shape is wrong. "
        "Transposing the scores mends the shape alone: then `x` asks with W^K. Two "
        "sentences of different lengths would have shown it at once."
    ),
    given=slip(cross, _THREE, _GIVEN),
    wrong=(
        Wrong(
            "What is handed over is the key.",
            "shape",
            slip(cross, "context @ w_v", "context @ w_k"),
            "Your output is d_k wide. Which matrix makes what is handed over?",
        ),
        Wrong(
            "The three belong to x; only the keys come from elsewhere.",
            "alone",
            slip(cross, "context @ w_v", "x @ w_v"),
            "You hand back to x what x brought. Whose values does x ask for?",
        ),
        Wrong(
            "The two sentences have only changed names.",
            "alone",
            slip(cross, _THREE, "context @ w_q, x @ w_k, x @ w_v"),
            "Now the context asks and x answers. The statement wants it the other way "
            "round: which two tensors come from the context?",
        ),
        Wrong(
            "The scores have to be transposed.",
            "self",
            slip(cross, _THREE, _GIVEN, "q @ k.mT", "k @ q.mT"),
            "The rows belong to x now, but x asks with W^K. Which matrix makes "
            "questions?",
        ),
        Wrong(
            "The matrices were mixed up, not the sentences.",
            "self",
            slip(cross, _THREE, "context @ w_k, x @ w_q, context @ w_v"),
            "You changed the matrices and left the sentences. Whose row is a row of "
            "your scores?",
        ),
        Wrong(
            "One matrix is enough for queries and keys.",
            "self",
            slip(cross, _THREE, "x @ w_q, context @ w_q, context @ w_v"),
            "Your keys are made by W^Q. Which matrix makes keys?",
        ),
        Wrong(
            "Queries and keys are made by the matrix of the keys.",
            "self",
            slip(cross, _THREE, "x @ w_k, context @ w_k, context @ w_v"),
            "Your queries are made by W^K. Which matrix makes queries?",
        ),
        Wrong(
            "The scale is a detail of training.",
            "self",
            slip(cross, " / q.shape[-1] ** 0.5", ""),
            "Your scores are √d_k times too large. Which division is missing?",
        ),
        Wrong(
            "Softmax runs over those who ask.",
            "self",
            slip(cross, "dim=-1)", "dim=-2)"),
            "Your weights sum to one for each key. Along which axis do the keys of one "
            "query lie?",
        ),
        Wrong(
            "The weights have to be transposed.",
            "self",
            slip(
                cross,
                _THREE,
                _GIVEN,
                "softmax(dim=-1)",
                "softmax(dim=-1).transpose(1, 2)",
            ),
            "After your transpose the columns sum to one. Which sums does softmax fix, "
            "and which are needed?",
        ),
        Wrong(
            "Queries, keys and values come from the same tokens.",
            "asks",
            slip(cross, _THREE, "context @ w_q, context @ w_k, context @ w_v"),
            "Your output does not depend on x at all. Where does x come in?",
        ),
        Wrong(
            "Queries and keys come from the same tokens.",
            "answers",
            slip(cross, _THREE, "x @ w_q, x @ w_k, context @ w_v"),
            "x looks at itself, and the values come from others. What must a key and "
            "a value have in common?",
        ),
        Wrong(
            "Both sentences must be equally long.",
            "lengths",
            slip(
                cross, "q, k, v =", "context = context[:, : x.shape[1]]\n    q, k, v ="
            ),
            "Part of the context gets no weight. What forbids that there are more keys "
            "than queries?",
        ),
        Wrong(
            "There are no more questions than keys.",
            "lengths",
            slip(cross, "q, k, v =", "x = x[:, : context.shape[1]]\n    q, k, v ="),
            "If the longer sentence asks, some of its tokens get no answer. What "
            "forbids that there are more queries than keys?",
        ),
    ),
    right=(
        right.cross_fused,
        right.cross_by_queries,
        right.cross_over_columns,
        right.cross_by_module,
        right.cross_in_numpy,
    ),
)


def attention(q, k, v):
    """Average the values v, weighted by how well the keys k fit the queries q."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def _tensors(draw: Draw, *lead, n_q, n_k, d_k, d_v) -> Inputs:
    return {
        "q": draw.normal(*lead, n_q, d_k),
        "k": draw.normal(*lead, n_k, d_k),
        "v": draw.normal(*lead, n_k, d_v),
    }


def _batched(draw: Draw) -> Inputs:
    batch, n_q, n_k, d_k, d_v = draw.primes(5)
    return _tensors(draw, batch, n_q=n_q, n_k=n_k, d_k=d_k, d_v=d_v)


def _unbatched(draw: Draw) -> Inputs:
    n_q, n_k, d_k, d_v = draw.primes(4)
    return _tensors(draw, n_q=n_q, n_k=n_k, d_k=d_k, d_v=d_v)


def _twice_batched(draw: Draw) -> Inputs:
    more, batch, n_q, n_k, d_k, d_v = draw.primes(6)
    return _tensors(draw, more, batch, n_q=n_q, n_k=n_k, d_k=d_k, d_v=d_v)


def _one_key(draw: Draw) -> Inputs:
    batch, n_q, d_k, d_v = draw.primes(4)
    return _tensors(draw, batch, n_q=n_q, n_k=1, d_k=d_k, d_v=d_v)


def _one_value_for_all(draw: Draw) -> Inputs:
    inputs = _batched(draw)
    inputs["v"][:] = inputs["v"][:, :1].clone()
    return inputs


def _values_that_show_the_weights(draw: Draw) -> Inputs:
    batch, n_q, n_k, d_k = draw.primes(4, above=2)
    inputs = _tensors(draw, batch, n_q=n_q, n_k=n_k, d_k=d_k, d_v=n_k)
    inputs["v"][:] = torch.eye(n_k)
    return inputs


_BOTH = "your output and your weights, side by side"

ATTENTION = Exercise(
    id="03-attention",
    title="Attention in your own words",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=attention,
    draw=_batched,
    axes={
        "q": "more batch n_q d_k",
        "k": "more batch n_k d_k",
        "v": "more batch n_k d_v",
    },
    properties=(
        Property(
            "shape",
            "an output (…, n_q, d_v) and weights (…, n_q, n_k), in this order",
            "Return a pair: output, weights. Which shape has each of yours?",
            observe=sizes_of_pair,
            axes="batch query d_v batch query key",
        ),
        Property(
            "alone",
            "one key: every query gets its value",
            "With one key there is one weight in each row. What must it be, and what "
            "is left of the output then?",
            draw=_one_key,
            observe=of_pair(0),
            axes="batch query d_v",
        ),
        Property(
            "rows",
            "equal values come out as they are",
            "Every value is the same here, so any average is that value. What do the "
            "weights of one query add up to?",
            draw=_one_value_for_all,
            observe=of_pair(0),
            axes="batch query d_v",
        ),
        Property(
            "scores",
            "values 1 0 0 …, 0 1 0 … and so on: the output shows the weights",
            "Write down one weight by hand: the products that its score adds up, what "
            "they are divided by, and what softmax does. Where do you part?",
            draw=_values_that_show_the_weights,
            observe=of_pair(0),
            axes="batch query key",
        ),
        Property(
            "weights",
            "the weights come second: those that made the output",
            "Two tensors are asked for, output and weights. Is the second one the "
            "factor that v was multiplied by?",
            observe=of_pair(1),
            axes="batch query key",
        ),
        Property(
            "unbatched",
            "no batch axis",
            "Which line counts axes from the front? Count from the back.",
            draw=_unbatched,
            observe=side_by_side,
            axes="query column",
            compared=_BOTH,
            on_error="There is no batch axis here. Which axis does this line count on, "
            "and what is its name from the back?",
        ),
        Property(
            "batched twice",
            "two batch axes",
            "Which line counts axes from the front? Count from the back.",
            draw=_twice_batched,
            observe=side_by_side,
            axes="more batch query column",
            compared=_BOTH,
            on_error="There are two batch axes here. Which axes does this line count "
            "on, and what are their names from the back?",
        ),
    ),
    hints=(
        "Three lines: the scores (…, n_q, n_k), the weights of the same shape, the "
        "output (…, n_q, d_v). The dots are whatever axes come before.",
        "k.mT swaps the last two axes, whatever stands before them, and dim=-1 is the "
        "last axis. @ treats all axes but the last two as a stack.",
        "d_k is q.shape[-1].",
    ),
    explanation=(
        "A row of scores belongs to a query, so softmax runs along the last axis, over "
        "the keys. Nothing needs to know how many axes come before the last two, as "
        "long as no line counts from the front; that is why the same three lines will "
        "do for a batch, and for several heads."
    ),
    wrong=(
        Wrong(
            "The weights come first.",
            "shape",
            slip(attention, "weights @ v, weights", "weights, weights @ v"),
            "Your first tensor has a column for each key. In which order does the "
            "statement want the two?",
        ),
        Wrong(
            "What is averaged are the keys.",
            "shape",
            slip(attention, "weights @ v", "weights @ k"),
            "Your output is as wide as a key. What does a token hand over?",
        ),
        Wrong(
            "A row of scores belongs to a key.",
            "shape",
            slip(attention, "q @ k.mT", "k @ q.mT"),
            "What meets v has a row for each key. Who distributes weight, and over "
            "whom?",
        ),
        Wrong(
            "Softmax runs over the queries.",
            "alone",
            slip(attention, "dim=-1", "dim=-2"),
            "Your weights sum to one for each key. Along which axis do the keys of one "
            "query lie?",
        ),
        Wrong(
            "Softmax runs over the batch.",
            "alone",
            slip(attention, "dim=-1", "dim=0"),
            "Your weights sum to one over the first axis. Over what should they?",
        ),
        Wrong(
            "Each key is judged on its own.",
            "alone",
            slip(attention, "scores.softmax(dim=-1)", "scores.sigmoid()"),
            "Your weights lie between 0 and 1, but do they share one unit?",
        ),
        Wrong(
            "An average is divided by how many there are.",
            "rows",
            slip(
                attention, "weights @ v, weights", "weights @ v / k.shape[-2], weights"
            ),
            "Your output is n_k times too small. Who has divided already?",
        ),
        Wrong(
            "The scale is a detail of training.",
            "scores",
            slip(attention, " / q.shape[-1] ** 0.5", ""),
            "Your scores are √d_k times too large. Which division is missing?",
        ),
        Wrong(
            "Scores are divided by d_k.",
            "scores",
            slip(attention, "q.shape[-1] ** 0.5", "q.shape[-1]"),
            "You divide by d_k. How far do sums of d_k products spread?",
        ),
        Wrong(
            "The best key takes all.",
            "scores",
            slip(
                attention,
                "scores.softmax(dim=-1)",
                "(scores == scores.amax(-1, keepdim=True)).to(v)",
            ),
            "One key of each row gets everything. What makes a soft look-up soft?",
        ),
        Wrong(
            "A score compares directions only.",
            "scores",
            slip(
                attention,
                "q @ k.mT / q.shape[-1] ** 0.5",
                "torch.cosine_similarity(q[..., None, :], k[..., None, :, :], dim=-1)",
            ),
            "Your scores do not grow with the length of a key. Does a dot product?",
        ),
        Wrong(
            "The nearest key wins.",
            "scores",
            slip(attention, "q @ k.mT / q.shape[-1] ** 0.5", "-torch.cdist(q, k)"),
            "You measure distances. Is a dot product one?",
        ),
        Wrong(
            "The answer is the output; nobody needs the weights.",
            "shape",
            slip(attention, "weights @ v, weights", "weights @ v"),
            "You return one tensor, the output. Which second one is asked for?",
        ),
        Wrong(
            "The scores are what a map shows.",
            "weights",
            slip(attention, "weights @ v, weights", "weights @ v, scores"),
            "Your second tensor is the scores. Which step lies between them and the "
            "weights?",
        ),
        Wrong(
            "The batch is always the first axis.",
            "unbatched",
            slip(attention, "k.mT", "k.transpose(1, 2)"),
            "Without a batch axis there is no axis 2. How do you name the last two?",
        ),
        Wrong(
            "The keys are always axis 2.",
            "unbatched",
            slip(attention, "dim=-1", "dim=2"),
            "Without a batch axis the keys lie along axis 1. Which name fits both?",
        ),
        Wrong(
            "Only the output needs its axes back.",
            "unbatched",
            slip(
                attention,
                "    scores = ",
                "    n_q, lead = q.shape[-2], q.shape[:-2]\n"
                "    q, k, v = (t.reshape(-1, *t.shape[-2:]) for t in (q, k, v))\n"
                "    scores = ",
                "weights @ v, weights",
                "(weights @ v).reshape(*lead, n_q, -1), weights",
            ),
            "Your output has the axes that came in, and your weights have others. "
            "Which axes do they need?",
        ),
        Wrong(
            "Weights are for batches.",
            "unbatched",
            slip(attention, "@ v, weights", "@ v, weights if q.dim() == 3 else None"),
            "Without a batch axis your second result is nothing. Which weights made "
            "the first?",
        ),
        Wrong(
            "There is one batch axis or none.",
            "batched twice",
            slip(attention, "k.mT", "(k.T if k.dim() == 2 else k.transpose(1, 2))"),
            "With two batch axes the last two are 2 and 3. What calls them so in every "
            "case?",
        ),
    ),
    right=(
        right.attention_by_einsum,
        right.attention_by_loop,
        right.attention_fused,
        right.attention_by_package,
        right.attention_in_numpy,
    ),
)


def symmetries(n, d_model, d_k):
    """Measure how symmetric the scores of four kinds of heads are."""
    x = torch.randn(n, d_model)
    w_q, w_k = torch.randn(2, 200, d_model, d_k)  # 200 heads

    def symmetry(w_k):
        scores = (x @ w_q) @ (x @ w_k).mT / d_k**0.5
        mirrored = (scores + scores.mT) / 2
        share = mirrored.square().sum((-2, -1)) / scores.square().sum((-2, -1))
        return round(share.mean().item(), 1)

    left, right_half = w_q.chunk(2, dim=-1)
    return {
        "tied": symmetry(w_q),
        "opposite": symmetry(-w_q),
        "turned": symmetry(torch.cat([right_half, -left], dim=-1)),
        "random": symmetry(w_k),
        "why": "With one matrix every score is returned: s_ij = s_ji. With two, a "
        "score may be returned, reversed or ignored; chance alone gives half and "
        "half, and training may choose.",
    }


def _sentence(draw: Draw) -> Inputs:
    n, d_model = draw.one_of(48, 56), draw.one_of(64, 72)
    return {"n": n, "d_model": d_model, "d_k": draw.one_of(4, 6, 8)}


SYMMETRY = Exercise(
    id="03-symmetry",
    title="How symmetric is a head?",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=symmetries,
    draw=_sentence,
    axes={},
    properties=(
        Property(
            "tied",
            "W^K = W^Q",
            "Did you measure the scores, before softmax? Is each number of the table "
            "squared?",
            observe=entry("tied"),
        ),
        Property(
            "opposite",
            "W^K = −W^Q",
            "Compare s_ij with s_ji, not with the tied table. What has changed?",
            observe=entry("opposite"),
        ),
        Property(
            "turned",
            "keys that are queries turned by a quarter",
            "With two numbers to a query, write q_1 · k_2 and q_2 · k_1 by hand. How "
            "do they differ?",
            observe=entry("turned"),
        ),
        Property(
            "random",
            "W^Q and W^K drawn apart, the mean over many heads, to one decimal",
            "Is it the mean over a few hundred heads, each with matrices of its own?",
            observe=_rounded("random", 1),
        ),
        reason(
            "What would you tell someone who proposes to save a matrix by using W^Q "
            "for the keys as well? The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "scores.mT swaps i and j. The mirrored part of the table is (scores + "
        "scores.mT) / 2.",
        "All heads at once need no loop: x @ w_q makes the queries of 200 heads, (200, "
        "n, d_k).",
        "The quarter turn: left, right = w_q.chunk(2, dim=-1), and the keys are made "
        "by torch.cat([right, -left], dim=-1).",
    ),
    explanation=(
        "Tied scores are symmetric, and so are those of the opposite keys, where no "
        "token scores itself above 0: a negative score can be returned as well. A "
        "quarter turn makes q_i · k_j = −q_j · k_i: every score comes back with the "
        "other sign, and each token scores itself 0. Two matrices drawn apart give "
        "both parts by chance, half and half. And the 72 heads of the pretrained "
        "encoder? On the seven sentences that we tried, single heads lie anywhere "
        "between 0.2 and 0.95, but their mean is that of random heads on the same "
        "tokens, to within 0.03. Training has made heads neither symmetric nor "
        "one-sided; it uses the freedom both ways. One caution: adding a number to a "
        "whole row of scores changes this measure and no weight."
    ),
    wrong=(
        Wrong(
            "The part that is not mirrored is the measure.",
            "tied",
            slip(symmetries, "(scores + scores.mT)", "(scores - scores.mT)"),
            "You measured what is left when the mirrored part is taken away. Which "
            "sign keeps it?",
        ),
        Wrong(
            "A mirrored table is the sum of the table and its transpose.",
            "tied",
            slip(symmetries, "(scores + scores.mT) / 2", "(scores + scores.mT)"),
            "A share cannot be 4. If the table is symmetric, what is it plus its "
            "transpose?",
        ),
        Wrong(
            "Opposite keys turn symmetry around.",
            "opposite",
            slip(symmetries, "symmetry(-w_q)", "0"),
            "Every score has changed its sign, s_ij and s_ji alike. Do the two still "
            "agree?",
        ),
        Wrong(
            "Turning a vector changes no dot product.",
            "turned",
            slip(symmetries, "symmetry(torch.cat([right_half, -left], dim=-1))", "1"),
            "No dot product changes when queries and keys are turned together. Which "
            "of them are turned here?",
        ),
        Wrong(
            "The measure runs from −1 to 1.",
            "turned",
            slip(symmetries, "symmetry(torch.cat([right_half, -left], dim=-1))", "-1"),
            "A correlation would be −1. Can a share of squares be negative?",
        ),
        Wrong(
            "Chance has no symmetry.",
            "random",
            slip(symmetries, '"random": symmetry(w_k)', '"random": 0'),
            "Then s_ij = −s_ji for every pair. Would chance see to that?",
        ),
        Wrong(
            "All scores are symmetric.",
            "random",
            slip(symmetries, '"random": symmetry(w_k)', '"random": 1'),
            "q_i · k_j and q_j · k_i are made of four different vectors. Why should "
            "they agree?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(symmetries, '"why": "With', '"why": "It is." or "With'),
            "The numbers are right. What do they mean for someone who has to choose "
            "between one matrix and two?",
        ),
    ),
    right=(
        right.symmetries_by_heads,
        right.symmetries_by_module,
        right.symmetries_by_thinking,
    ),
)

EXERCISES = (SHAPES, BUG, ATTENTION, SYMMETRY)
