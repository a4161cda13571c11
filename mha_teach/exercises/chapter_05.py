"""Exercises of chapter 05: one softmax is one average, and two are two."""

import torch

from mha_teach.exercises import _chapter_05_right as right
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
from mha_teach.tasks import encode_lookups


def kept(value_a, value_b, share, letters, d_model):
    """Say what one average returns, how many there are, and what two heads cost."""
    return {
        "even": (value_b + value_a) / 2,
        "uneven": share * value_b + (1 - share) * value_a,
        "averages": letters * (letters + 1) // 2,
        "two": 4 * d_model**2,
        "wide": 8 * d_model**2,
    }


def _values(draw: Draw) -> Inputs:
    """Choose values of which one is not three times the other: a - b would pass."""
    return {
        "value_a": draw.one_of(16, 14),
        "value_b": draw.one_of(2, 4),
        "share": 0.75,
        "letters": draw.one_of(5, 6, 7),
        "d_model": draw.one_of(20, 30, 40),
    }


AVERAGE = Exercise(
    id="05-average",
    title="What one average keeps",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=kept,
    draw=_values,
    axes={},
    properties=(
        Property(
            "even",
            "weights of one half, values exchanged",
            "Write the average down before and after the exchange. What has changed?",
            observe=entry("even"),
        ),
        Property(
            "uneven",
            "weights of ¾ and ¼, values exchanged",
            "Which weight stays with which token, and whose value is it now?",
            observe=entry("uneven"),
        ),
        Property(
            "averages",
            "the number of different averages",
            "Start with two letters: which ordered pairs are there, and which of them "
            "have the same average?",
            observe=entry("averages"),
        ),
        Property(
            "two",
            "the parameters of two heads that share the width",
            "How wide is one of the two heads? Write the shapes of its W^Q and of its "
            "part of W^O.",
            observe=entry("two"),
        ),
        Property(
            "wide",
            "the parameters of two heads of full width",
            "What are the shapes of the four matrices when h·d_k is twice d_model?",
            observe=entry("wide"),
        ),
    ),
    hints=(
        "A weight belongs to the token that is looked at; the exchange moves values, "
        "not weights.",
        "With one half each, A then B and B then A give the same average. A then A is "
        "a pair, too.",
        "W^Q, W^K and W^V are (d_model, h·d_k) each, W^O is (h·d_k, d_model).",
    ),
    explanation=(
        "Even weights forget who came first, uneven ones do not. Of all ordered pairs, "
        "those with two different letters fall together two by two, and those with the "
        "same letter twice stay alone. Two heads that share the width have the same "
        "h·d_k as one, so the same parameters; it is the width of a head that costs."
    ),
    wrong=(
        Wrong(
            "An exchange must show in the output.",
            "even",
            slip(kept, '"even": (value_b + value_a) / 2', '"even": value_b'),
            "That is one of the two values. How much weight does the other get?",
        ),
        Wrong(
            "What is exchanged changes its sign.",
            "even",
            slip(
                kept,
                '"even": (value_b + value_a) / 2',
                '"even": (value_b - value_a) / 2',
            ),
            "You subtract. Which signs do weights have?",
        ),
        Wrong(
            "What an exchange leaves is the difference.",
            "even",
            slip(kept, "(value_b + value_a) / 2", "value_a - value_b"),
            "That is how far apart the values are. What do you get if each of them "
            "has one half of the weight?",
        ),
        Wrong(
            "A head adds up what it looks at.",
            "even",
            slip(kept, "(value_b + value_a) / 2", "value_b + value_a"),
            "That is a sum. What do the two weights add up to?",
        ),
        Wrong(
            "An average does not depend on the order.",
            "uneven",
            slip(
                kept,
                "share * value_b + (1 - share) * value_a",
                "share * value_a + (1 - share) * value_b",
            ),
            "That is the output before the exchange. Did the weights move with the "
            "values?",
        ),
        Wrong(
            "After the exchange the two count alike.",
            "uneven",
            slip(
                kept,
                "share * value_b + (1 - share) * value_a",
                "(value_a + value_b) / 2",
            ),
            "That is the even average. What are the weights here?",
        ),
        Wrong(
            "Each ordered pair has an average of its own.",
            "averages",
            slip(kept, "letters * (letters + 1) // 2", "letters**2"),
            "You count ordered pairs. Do A then B and B then A differ at one half "
            "each?",
        ),
        Wrong(
            "A pair has two different letters.",
            "averages",
            slip(kept, "(letters + 1) // 2", "(letters - 1) // 2"),
            "You left some pairs out. May both tokens hold the same letter?",
        ),
        Wrong(
            "There is one average for each letter.",
            "averages",
            slip(kept, "letters * (letters + 1) // 2", "letters"),
            "Those are the pairs of one letter twice. What of half A and half B?",
        ),
        Wrong(
            "More heads mean more parameters.",
            "two",
            slip(kept, '"two": 4 *', '"two": 8 *'),
            "You doubled the count of one head. Are two heads of half the width twice "
            "as much?",
        ),
        Wrong(
            "Queries, keys and values are all that is learnt.",
            "two",
            slip(kept, '"two": 4 *', '"two": 3 *'),
            "You count three matrices. What leads the heads back to d_model?",
        ),
        Wrong(
            "Narrow heads save parameters.",
            "two",
            slip(kept, '"two": 4 *', '"two": 2 *'),
            "Each head has half of them. How many heads are there?",
        ),
        Wrong(
            "Four matrices bring four biases.",
            "two",
            slip(kept, '"two": 4 * d_model**2', '"two": 4 * d_model**2 + 4 * d_model'),
            "That is with a bias for each of the four. What does bias=False say?",
        ),
        Wrong(
            "The width of a head is divided out.",
            "wide",
            slip(kept, "8 *", "4 *"),
            "That holds if d_k is d_model / h. What is d_k here?",
        ),
        Wrong(
            "Twice the width makes four times the matrix.",
            "wide",
            slip(kept, "8 *", "16 *"),
            "Only one side of each matrix is h·d_k long. What is the other?",
        ),
        Wrong(
            "Wider matrices bring wider biases.",
            "wide",
            slip(kept, "8 * d_model**2", "8 * d_model**2 + 7 * d_model"),
            "That is with four biases, three of them 2·d_model long. What does "
            "bias=False say?",
        ),
    ),
    right=(right.kept_by_trying, right.kept_by_costs, right.kept_as_tensors),
)


def two_heads(x, context, w_q, w_k, w_v, w_o):
    """Let the tokens of x ask with two heads, and lead the answers to d_model."""
    q, k, v = x @ w_q, context @ w_k, context @ w_v  # (head, n, d_k)
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    head_outputs = weights @ v  # (head, n_q, d_v)
    return head_outputs.transpose(0, 1).flatten(1) @ w_o


def _heads(draw: Draw, n_q, n_k, d_model, d_context, d_k, d_v) -> Inputs:
    return {
        "x": draw.normal(n_q, d_model),
        "context": draw.normal(n_k, d_context),
        "w_q": 2 * draw.normal(2, d_model, d_k) / d_model**0.5,
        "w_k": draw.normal(2, d_context, d_k) / d_context**0.5,
        "w_v": draw.normal(2, d_context, d_v) / d_context**0.5,
        "w_o": draw.normal(2 * d_v, d_model) / d_v**0.5,
    }


def _some_heads(draw: Draw) -> Inputs:
    return _heads(draw, *draw.primes(6, above=2))


def _alone(draw: Draw) -> Inputs:
    return _heads(draw, 1, 1, *draw.primes(4, above=2))


def _equal_keys(draw: Draw) -> Inputs:
    inputs = _some_heads(draw)
    inputs["w_k"].zero_()
    return inputs


def _equal_values(draw: Draw) -> Inputs:
    inputs = _some_heads(draw)
    inputs["context"][:, 0] = 1
    inputs["w_v"][:, 1:] = 0
    inputs["w_v"][1] = inputs["w_v"][0]
    return inputs


def _opposite_heads(draw: Draw) -> Inputs:
    """Let one head like best what the other likes least, too much for any scale."""
    inputs = _some_heads(draw)
    inputs["w_q"][:] = 1e6 * inputs["w_q"][0]
    inputs["w_k"][1] = -inputs["w_k"][0]
    return inputs


_ONE_MAP = ".softmax(dim=-1).mean(dim=0)"

BUG = Exercise(
    id="05-bug",
    title="Two heads, one answer",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=two_heads,
    draw=_some_heads,
    axes={
        "x": "n_q d_model",
        "context": "n_k d_context",
        "w_q": "head d_model d_k",
        "w_k": "head d_context d_k",
        "w_v": "head d_context d_v",
        "w_o": "head·d_v d_model",
        "returns": "query d_model",
    },
    properties=(
        Property(
            "shape",
            "one row of width d_model per token of x",
            "Write the shape after each line. Which axis holds the queries, and is it "
            "there to the end? How wide is a row?",
            observe=shape,
        ),
        Property(
            "alone",
            "one token asks one: its two values, side by side, times W^O",
            "With one key every weight is 1. Are yours? What does each head bring "
            "then, and in which order do they stand?",
            draw=_alone,
        ),
        Property(
            "rows",
            "equal values of equal heads come out as they are",
            "Every value is the same here, so any average is that value. What do the "
            "weights of one query add up to?",
            draw=_equal_values,
        ),
        Property(
            "merge",
            "equal keys: the mean of each head, side by side, times W^O",
            "Each row of the output belongs to one query. Which axis has to come "
            "first before the heads are joined?",
            draw=_equal_keys,
        ),
        Property(
            "maps",
            "each head looks where its own queries and keys say",
            "One head looks at one token, the other at another. How many maps of "
            "weights reach the values?",
            draw=_opposite_heads,
        ),
        Property(
            "formula",
            "equal to a loop over the two heads",
            "Write head 0 on its own, with w_q[0] and the others. At which step do "
            "your numbers become other ones?",
        ),
    ),
    hints=(
        "Write the shape of each tensor beside its line. Which of them has lost an "
        "axis?",
        "(n_q, n_k) @ (head, n_k, d_v) runs: the one map serves both heads.",
        "An average of two maps is one map. What does chapter 5 say about one average?",
    ),
    explanation=(
        "The maps of the two heads were averaged before they met the values. An "
        "average of two maps is one map: half on one token, half on the other, for "
        "both heads alike, and the order is gone. The shape of the output is right, "
        "for one map multiplies the values of both heads without complaint. A map "
        "averaged over the heads is good for looking at; nn.MultiheadAttention returns "
        "one unless told not to, but computes with all of them."
    ),
    given=slip(two_heads, ".softmax(dim=-1)", _ONE_MAP),
    wrong=(
        Wrong(
            "The heads side by side are the output.",
            "shape",
            slip(two_heads, ".flatten(1) @ w_o", ".flatten(1)"),
            "Your rows are 2·d_v wide. Which matrix is still to come?",
        ),
        Wrong(
            "The axis to take the mean over was the wrong one.",
            "shape",
            slip(
                two_heads,
                "softmax(dim=-1)",
                "softmax(dim=-1).mean(dim=1, keepdim=True)",
            ),
            "Your output has one row for all queries. Which line makes one of them, "
            "and what is that good for?",
        ),
        Wrong(
            "The heads are added.",
            "alone",
            slip(
                two_heads,
                "head_outputs.transpose(0, 1).flatten(1)",
                "head_outputs.sum(dim=0).repeat(1, 2)",
            ),
            "You add what the heads bring before W^O sees it. Can W^O take the two "
            "apart again?",
        ),
        Wrong(
            "The heads are averaged.",
            "alone",
            slip(
                two_heads,
                "head_outputs.transpose(0, 1).flatten(1)",
                "head_outputs.mean(dim=0).repeat(1, 2)",
            ),
            "You average what the heads bring. Is an average of two averages more than "
            "one average?",
        ),
        Wrong(
            "The order of the heads does not matter.",
            "alone",
            slip(two_heads, "head_outputs.transpose", "head_outputs.flip(0).transpose"),
            "Your heads stand in the other order. Which rows of W^O belong to head 0?",
        ),
        Wrong(
            "Values belong to no head.",
            "alone",
            slip(two_heads, "context @ w_v ", "context @ w_v.flip(0) "),
            "Each head brings the values of the other one. Whose W^V makes the values "
            "of head 0?",
        ),
        Wrong(
            "The heads share the weight of a key.",
            "alone",
            slip(two_heads, "softmax(dim=-1)", "softmax(dim=0)"),
            "Your weights sum to one over the heads; over what should they?",
        ),
        Wrong(
            "Two maps are added.",
            "alone",
            slip(two_heads, ".softmax(dim=-1)", ".softmax(dim=-1).sum(dim=0)"),
            "Your rows sum to two. Why join the maps at all?",
        ),
        Wrong(
            "Joining is only a matter of shape.",
            "merge",
            slip(two_heads, "transpose(0, 1).flatten(1)", "reshape(len(x), -1)"),
            "In memory your heads lie one after the other, queries inside. What must "
            "change places before they are joined?",
        ),
        Wrong(
            "Weights sum to one over the queries.",
            "rows",
            slip(two_heads, "softmax(dim=-1)", "softmax(dim=-2)"),
            "Your weights sum to one for each key. Along which axis do the keys of one "
            "query lie?",
        ),
        Wrong(
            "One of the two maps will do.",
            "maps",
            slip(two_heads, ".softmax(dim=-1)", ".softmax(dim=-1)[0]"),
            "Both heads use the map of head 0. What are the queries and keys of head 1 "
            "for?",
        ),
        Wrong(
            "The stronger of the two looks wins.",
            "rows",
            slip(two_heads, ".softmax(dim=-1)", ".softmax(dim=-1).amax(dim=0)"),
            "You keep the larger of two weights. What do the rows sum to, and how many "
            "maps are left?",
        ),
        Wrong(
            "The heads have only to differ.",
            "maps",
            slip(two_heads, ".softmax(dim=-1)", ".softmax(dim=-1).flip(0)"),
            "Each head uses the other's map. Whose queries decide what head 0 brings?",
        ),
        Wrong(
            "Scores are averaged, not weights.",
            "maps",
            slip(
                two_heads,
                "(q @ k.mT / q.shape[-1] ** 0.5)",
                "(q @ k.mT / q.shape[-1] ** 0.5).mean(dim=0)",
            ),
            "You make one table of scores out of two. How many maps does one table "
            "make?",
        ),
        Wrong(
            "Scores add up.",
            "maps",
            slip(
                two_heads,
                "(q @ k.mT / q.shape[-1] ** 0.5)",
                "(q @ k.mT / q.shape[-1] ** 0.5).sum(dim=0)",
            ),
            "You add the two tables of scores. How many maps does one table make?",
        ),
        Wrong(
            "Both heads ask the same question.",
            "formula",
            slip(two_heads, "x @ w_q, context", "x @ w_q[:1], context"),
            "Both heads ask with W^Q of head 0. What is the other one for?",
        ),
        Wrong(
            "The scale is a detail of training.",
            "formula",
            slip(two_heads, " / q.shape[-1] ** 0.5", ""),
            "Your scores are √d_k times too large. Which division is missing?",
        ),
    ),
    right=(
        right.two_heads_by_loop,
        right.two_heads_by_blocks,
        right.two_heads_fused,
        right.two_heads_by_module,
        right.two_heads_in_numpy,
    ),
)


def by_hand(places, letters):
    """Set two heads: head 0 brings the letter at b, head 1 the one right after a."""
    groups = torch.eye(letters + 3 * places).split([letters, *[places] * 3], dim=1)
    letter, place, a, b = groups  # (d_model, letters), then (d_model, places) each
    after_a = a.roll(1, dims=1)  # a pointer to place i asks for place i + 1
    w_q = 40 * torch.stack([b, after_a])
    w_k, w_v = torch.stack([place, place]), torch.stack([letter, letter])
    return w_q, w_k, w_v


def _task(draw: Draw) -> Inputs:
    places, letters = draw.primes(2, above=3)
    return {"places": places, "letters": letters}


def _most_places(draw: Draw) -> Inputs:
    """Draw as many places as the statement allows: the hardest for softmax."""
    return _task(draw) | {"places": 16}


def _questions(places, letters):
    """Draw sequences and pointers; after a there is always another place."""
    generator = torch.Generator().manual_seed(places)
    tokens = torch.randint(letters, (60, places), generator=generator)
    a = torch.randint(places - 1, (60,), generator=generator)
    steps = torch.randint(1, places, (60,), generator=generator)
    pointers = torch.stack([a, (a + steps) % places], dim=1)
    return tokens, pointers


def _matrices(function, inputs):
    found = call(function, inputs)
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise TypeError("three tensors are asked for: w_q, w_k and w_v")
    for name, matrix in zip(("w_q", "w_k", "w_v"), found, strict=True):
        if not hasattr(matrix, "shape"):
            raise TypeError(f"{name} is no tensor but a {type(matrix).__name__}")
    return [torch.as_tensor(matrix).detach().double() for matrix in found]


def _sizes(function, inputs):
    w_q, w_k, w_v = (tuple(matrix.shape) for matrix in _matrices(function, inputs))
    if w_q[:2] == w_k[:2] and w_q != w_k:
        raise ValueError("w_q and w_k differ in their last axis, d_k")
    q_and_k = [(*size[:-1], "d_k") for size in (w_q, w_k)]
    named = zip(("w_q", "w_k", "w_v"), (*q_and_k, w_v), strict=True)
    return "  ".join(f"{name} ({', '.join(map(str, size))})" for name, size in named)


def _looks(function, inputs):
    """Return each head's weights (head, question, key), and where they should be."""
    tokens, pointers = _questions(**inputs)
    x = encode_lookups(tokens, pointers, symbols=inputs["letters"])
    w_q, w_k, w_v = (matrix[:, None].to(x) for matrix in _matrices(function, inputs))
    scores = (x[:, -1:] @ w_q) @ (x @ w_k).mT / w_q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1)
    wanted = torch.stack([pointers[:, 1], pointers[:, 0] + 1])
    return weights.squeeze(2), (weights @ (x @ w_v)).squeeze(2), wanted, tokens


def _where(head):
    """Observe, in words, where a head looks."""

    def observe(function, inputs):
        weights = _looks(function, inputs)[0][head]
        _, pointers = _questions(**inputs)
        a, b = pointers.T
        places = {
            "at b": b,
            "right after a": a + 1,
            "at a": a,
            "right before a": (a - 1) % inputs["places"],
            "right after b": (b + 1) % inputs["places"],
            "right before b": (b - 1) % inputs["places"],
            "at the token that asks": torch.full_like(a, inputs["places"]),
        }
        if weights.isnan().any():
            return "nowhere: there are weights of nan"
        low, high = weights.aminmax(dim=-1)
        if (high - low < 1e-6).all():
            return "everywhere alike"
        best, second = weights.topk(2).values.T
        is_tied = (best - second < 1e-6).double().mean() > 0.5
        for name, place in places.items():
            if not is_tied and (weights.argmax(dim=-1) == place).all():
                return name
        for name, place in places.items():
            if (weights.argmin(dim=-1) == place).all():
                return f"everywhere but {name}"
        return "at several places alike" if is_tied else "at this place and that"

    return observe


def _least_weight(function, inputs):
    """Observe the least weight on a place that was asked for, up to 0.9."""
    weights, _, wanted, _ = _looks(function, inputs)
    return weights.gather(-1, wanted[..., None]).min().clamp(max=0.9)


def _share_of_letters_right(function, inputs):
    _, brought, wanted, tokens = _looks(function, inputs)
    letters = tokens.expand(2, -1, -1).gather(-1, wanted[..., None]).squeeze(-1)
    return (brought.argmax(dim=-1) == letters).double().mean()


HAND = Exercise(
    id="05-hand",
    title="Two heads by hand",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=by_hand,
    draw=_task,
    axes={},
    properties=(
        Property(
            "shape",
            "three stacks of two matrices, with values one number per letter",
            "Of each tensor: which axis counts the heads, which is multiplied by a "
            "token, and which sizes depend on places and letters?",
            observe=_sizes,
            compared="the shapes, whatever your d_k",
        ),
        Property(
            "b",
            "head 0 looks at place b, in every question",
            "Which group of numbers holds b, and which group must it meet in a dot "
            "product?",
            observe=_where(0),
            compared="where head 0 looks",
        ),
        Property(
            "after a",
            "head 1 looks at the place right after a, in every question",
            "A pointer to place 3 should make the query of place 4. Which column of "
            "W^Q is that?",
            observe=_where(1),
            compared="where head 1 looks",
        ),
        Property(
            "sharp",
            "that place gets at least 0.9 of the weight, of 16 places too",
            "Your heads look at the right places, but not only. How large is the "
            "largest score, after the division by √d_k?",
            draw=_most_places,
            observe=_least_weight,
            axes="",
            compared="the least weight on a place that was asked for; 0.9 will do",
        ),
        Property(
            "letters",
            "the largest number that a head brings is the letter there",
            "The weights are right. What does W^V make of a token?",
            observe=_share_of_letters_right,
            axes="",
            compared="the share of questions in which it is that letter",
        ),
    ),
    hints=(
        "Write down a token of the third place, and the token that asks, with a = 1 "
        "and b = 3. For each head: which group of the one must meet which group of the "
        "other in a dot product?",
        "Head 0 is almost a head of the chapter. For head 1, a pointer to place i "
        "should make the query of place i + 1: to which number of the query must "
        "number i of the group a lead?",
        "Softmax needs a large gap. A one is written as 2, so a score is 4 times your "
        "factor, divided by √d_k.",
        "torch.eye(d_model).split([letters, places, places, places], dim=1) gives four "
        "matrices; each picks one group of a token's numbers. torch.roll moves rows or "
        "columns along an axis.",
    ),
    explanation=(
        "Each head needs a query that equals the key of one place. The matrix that "
        "picks b does it for head 0. For head 1 the columns are moved by one, so that "
        "a pointer to place i makes the query of place i + 1: W^Q can turn a question "
        "into another. Moving the columns of W^K the other way does the same. The "
        "factor makes the softmax sharp; training would have to find it."
    ),
    wrong=(
        Wrong(
            "There are 16 places and 16 letters, as in the chapter.",
            "shape",
            slip(
                by_hand,
                "letters + 3 * places).split([letters, *[places] * 3], dim=1)",
                "64).split(16, dim=1)",
            ),
            "Your tokens have 64 numbers and your letters 16, as in the chapter. How "
            "many are there for other places and letters?",
        ),
        Wrong(
            "A head brings the place it has found.",
            "shape",
            slip(by_hand, "[letter, letter]", "[place, place]"),
            "Your values are places. What is asked for?",
        ),
        Wrong(
            "d_k may be chosen for queries and for keys.",
            "shape",
            slip(by_hand, "[place, place]", "[place[:, 1:], place[:, 1:]]"),
            "Your queries and keys differ in width. What does a dot product ask of "
            "them?",
        ),
        Wrong(
            "A matrix is written as nn.Linear stores it.",
            "shape",
            slip(
                by_hand,
                "return w_q, w_k, w_v",
                "return w_q.mT, w_k.mT, w_v.mT",
            ),
            "nn.Linear stores its matrix so. In x @ w_q, which size comes first?",
        ),
        Wrong(
            "The heads stand side by side in one matrix.",
            "shape",
            slip(
                by_hand,
                "return w_q, w_k, w_v",
                "return [torch.cat([*w], dim=1) for w in (w_q, w_k, w_v)]",
            ),
            "Your heads lie beside each other. Which axis should count them?",
        ),
        Wrong(
            "The two look-ups are those of the chapter.",
            "b",
            slip(by_hand, "[b, after_a]", "[a, b]"),
            "Head 0 looks at a, as in the chapter. What is asked for here, and of "
            "which head?",
        ),
        Wrong(
            "The order of the heads does not matter.",
            "b",
            slip(by_hand, "[b, after_a]", "[after_a, b]"),
            "Head 0 looks right after a. Which head was to do that?",
        ),
        Wrong(
            "One average can hold both.",
            "b",
            slip(by_hand, "[b, after_a]", "[b + after_a, b + after_a]"),
            "Head 0 gives several places the same weight. Does it ask for one place, "
            "or for more at once?",
        ),
        Wrong(
            "Columns are moved for both heads.",
            "b",
            slip(by_hand, "[b, after_a]", "[b.roll(1, dims=1), after_a]"),
            "Head 0 looks right after b. Which of the two heads was to look at a "
            "neighbour?",
        ),
        Wrong(
            "A place and its number are one apart.",
            "b",
            slip(by_hand, "[b, after_a]", "[b.roll(-1, dims=1), after_a]"),
            "Head 0 looks right before b. From which number are places counted?",
        ),
        Wrong(
            "An infinite score is the sharpest.",
            "b",
            slip(by_hand, "w_q = 40 *", "w_q = float('inf') *"),
            "Some weights of head 0 are nan. Which entry of your matrices is inf or "
            "nan, or makes a score that is?",
        ),
        Wrong(
            "A key says what is asked for.",
            "b",
            slip(by_hand, "[place, place]", "[b, a]"),
            "Head 0 looks at the token that asks, wherever b is. Which numbers of the "
            "other tokens are your keys made of?",
        ),
        Wrong(
            "The sign of a score does not matter.",
            "b",
            slip(by_hand, "w_q = 40", "w_q = -40"),
            "Head 0 looks everywhere but at b. Which sign must the score of the right "
            "place have?",
        ),
        Wrong(
            "Right after a is a.",
            "after a",
            slip(by_hand, "a.roll(1, dims=1)", "a"),
            "Head 1 looks at a itself. How does a query come to ask for the next "
            "place?",
        ),
        Wrong(
            "Moving the columns to the left asks for the place to the right.",
            "after a",
            slip(by_hand, "a.roll(1, dims=1)", "a.roll(-1, dims=1)"),
            "Head 1 looks right before a. Which way do the columns have to move?",
        ),
        Wrong(
            "A score of 2 is large enough.",
            "sharp",
            slip(by_hand, "w_q = 40 *", "w_q = 1 *"),
            "The right place scores 4/√d_k, and all others 0. What does softmax make "
            "of so small a difference?",
        ),
        Wrong(
            "What is sharp for few places is sharp for many.",
            "sharp",
            slip(by_hand, "w_q = 40 *", "w_q = 4 *"),
            "Of many places the right one gets too little. What do more places add to "
            "the sum in softmax, and what does a larger d_k do to a score?",
        ),
        Wrong(
            "A value may have any sign.",
            "letters",
            slip(by_hand, "[letter, letter]", "[-letter, -letter]"),
            "The letter is never the largest number that a head brings. Which column "
            "of W^V does it pick, and with which sign?",
        ),
        Wrong(
            "One head's values serve both.",
            "letters",
            slip(by_hand, "[letter, letter]", "[letter, 0 * letter]"),
            "What head 1 brings names the right letter hardly ever. What is its W^V?",
        ),
    ),
    right=(
        right.by_hand_one_by_one,
        right.by_hand_with_moved_keys,
        right.by_hand_turned,
        right.by_hand_in_numpy,
    ),
)


def readable(letters, alpha):
    """Count the pairs of letters that can be read from their weighted average."""
    pairs = torch.cartesian_prod(torch.arange(letters), torch.arange(letters))
    letter = torch.eye(letters)

    def average(alpha):
        return torch.tensor([alpha, 1 - alpha]) @ letter[pairs]

    def count(seen, which):  # pairs whose first (0) or second (1) letter is read
        answer = pairs[:, which]
        readout = torch.linalg.lstsq(seen, letter[answer]).solution
        return ((seen @ readout).argmax(dim=-1) == answer).sum().item()

    seen = average(alpha)
    bent = torch.cat([seen, seen**2, seen**3], dim=1)
    return {
        "even": len(average(0.5).unique(dim=0)),
        "first": count(seen, 0),
        "second": count(seen, 1),
        "turned": count(average(1 - alpha), 1),
        "bent": count(bent, 1),
        "why": "Between two letters the averages lie on a line, and a linear readout "
        "changes its mind there once: enough for the letter with more weight, not for "
        "the other, whose answers alternate. A bend can follow them.",
    }


def _readout_setting(draw: Draw) -> Inputs:
    """Choose weights of which (1 - alpha) times the pairs is not what is right."""
    return {"letters": draw.one_of(10, 12, 14), "alpha": draw.one_of(0.7, 0.8, 0.75)}


def _nearly_all(key: str):
    """Observe an entry; from 95 % of the pairs on it counts as all of them."""

    def observe(function, inputs):
        value, pairs = entry(key)(function, inputs), inputs["letters"] ** 2
        try:
            is_nearly_all = 0.95 * pairs <= float(value) <= pairs
        except (TypeError, ValueError, RuntimeError):
            return value
        return pairs if is_nearly_all else value

    return observe


LINE = Exercise(
    id="05-line",
    title="What a linear readout can read",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=readable,
    draw=_readout_setting,
    axes={},
    decisive=("letters",),
    properties=(
        Property(
            "even",
            "weights of one half: the most pairs that any readout can get right",
            "How many different averages are there? Each is good for one answer.",
            observe=entry("even"),
        ),
        Property(
            "first",
            "the first letter, by a matrix",
            "Is the answer to be fitted the first letter of the pair, written as a "
            "one and zeros?",
            observe=entry("first"),
        ),
        Property(
            "second",
            "the second letter, by a matrix",
            "Did you fit a new matrix, to the second letters? Which answer does it "
            "give for x, then y?",
            observe=entry("second"),
        ),
        Property(
            "turned",
            "the second letter, with the weights exchanged",
            "Which of the two letters has more weight now?",
            observe=entry("turned"),
        ),
        Property(
            "bent",
            "the second letter, by a matrix that also sees squares and cubes",
            "Did you put the average, its squares and its cubes side by side, and fit "
            "to the second letters?",
            observe=_nearly_all("bent"),
        ),
        reason(
            "What would you tell someone who proposes one head with uneven weights? "
            "The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "Take two letters only, and put their four averages on a line. Which of the "
        "four have one answer, and which the other?",
        "Fit one readout to the first letters, and a new one to the second. What does "
        "each name for x, then y, and for y, then x?",
        "pairs = torch.cartesian_prod(torch.arange(10), torch.arange(10)) holds all "
        "pairs, pairs[:, 0] their first letters, and torch.tensor([alpha, 1 - alpha]) "
        "@ torch.eye(10)[pairs] all averages.",
    ),
    explanation=(
        "The matrix gives the letter with more weight, every time. Asked for the other "
        "one it names the same letter again, which is right where both are the same. "
        "Another matrix can do better, but none gets all pairs right. Squares are not "
        "enough, either: try them. Cubes are, for a curve of degree three can change "
        "its sign three times. This is why a small network after one head reads what "
        "a matrix cannot."
    ),
    wrong=(
        Wrong(
            "What is lost can be learnt.",
            "even",
            slip(readable, "len(average(0.5).unique(dim=0))", "len(pairs)"),
            "That is every pair. What do x, then y and y, then x have in common at one "
            "half each?",
        ),
        Wrong(
            "How many is how often.",
            "even",
            slip(
                readable,
                "len(average(0.5).unique(dim=0))",
                "len(average(0.5).unique(dim=0)) / len(pairs)",
                "== answer).sum()",
                "== answer).double().mean()",
            ),
            "That is less than one pair, a share of all of them. How many pairs does "
            "it stand for?",
        ),
        Wrong(
            "Half of the pairs are lost.",
            "even",
            slip(
                readable,
                "len(average(0.5).unique(dim=0))",
                "letters * (letters - 1) // 2",
            ),
            "That is every second of the pairs with two different letters. Which pairs "
            "did you leave out?",
        ),
        Wrong(
            "What is right is counted by its mean.",
            "first",
            slip(readable, "== answer).sum()", "== answer).double().mean()"),
            "That says that one pair is right. Did you count the pairs, or take a mean "
            "over them?",
        ),
        Wrong(
            "One average is no letter.",
            "first",
            slip(readable, '"first": count(seen, 0)', '"first": letters'),
            "You have the first letter right only where both are the same. Whose part "
            "of the average is the largest?",
        ),
        Wrong(
            "The order is in the average, so a matrix can read it.",
            "second",
            slip(readable, '"second": count(seen, 1)', '"second": letters**2'),
            "The order is in the average. Did the matrix find it, or did you expect "
            "it to?",
        ),
        Wrong(
            "A matrix for the first letter names the second, too.",
            "second",
            slip(readable, '"second": count(seen, 1)', '"second": 0'),
            "That is never right. What of the pairs with the same letter twice?",
        ),
        Wrong(
            "A letter with less weight is read less often, in proportion.",
            "second",
            slip(
                readable,
                '"second": count(seen, 1)',
                '"second": round((1 - alpha) * letters**2)',
            ),
            "That is the share 1 - α of all pairs. In how many of them is the letter "
            "with less weight the one that the matrix names?",
        ),
        Wrong(
            "The second letter is always the hard one.",
            "turned",
            slip(readable, "count(average(1 - alpha), 1)", "count(seen, 1)"),
            "You have the count from before the exchange. Which letter weighs more "
            "now?",
        ),
        Wrong(
            "A readout is a readout.",
            "bent",
            slip(readable, "count(bent, 1)", "count(seen, 1)"),
            "That is what the matrix alone can do. How often can a curve of degree "
            "three change its sign?",
        ),
        Wrong(
            "One bend is enough.",
            "bent",
            slip(readable, "[seen, seen**2, seen**3]", "[seen, seen**2]"),
            "You miss as many pairs as there are letters; so does a matrix that sees "
            "squares and no cubes. How many changes of sign do the four averages on "
            "the line ask for?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(readable, '"why": "B', '"why": "No." or "B'),
            "The numbers are right. What do they mean for someone who has one head?",
        ),
    ),
    right=(right.read_by_thinking, right.read_by_training, right.read_as_tensors),
)

EXERCISES = (AVERAGE, BUG, HAND, LINE)
