"""Exercises of chapter 04: masks, and how to find one that is wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mha_teach.exercises import _chapter_04_right as right
from mha_teach.exercises.bank import (
    Draw,
    Exercise,
    Inputs,
    Property,
    Wrong,
    call,
    entry,
    of_pair,
    shape,
    side_by_side,
    sizes_of_pair,
    slip,
)


def looks(batch, n_q, n_k):
    """Say how a look is allowed in four dialects, and what two masks are like."""
    return {
        "function": True,
        "module": False,
        "added": 0.0,
        "filled": 1,
        "padding": (batch, 1, 1, n_k),
        "causal": n_q * n_k - n_q * (n_q - 1) // 2,
    }


def _setting(draw: Draw) -> Inputs:
    n_q, n_k, batch = sorted(draw.primes(3, above=2))
    return {"batch": batch, "n_q": n_q, "n_k": n_k}


POLARITY = Exercise(
    id="04-polarity",
    title="Yes in four dialects",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=looks,
    draw=_setting,
    axes={},
    properties=(
        Property(
            "function",
            "an allowed look in F.scaled_dot_product_attention",
            "Read its attn_mask as an answer. To which question, may or may not?",
            observe=entry("function"),
        ),
        Property(
            "module",
            "an allowed look in nn.MultiheadAttention",
            "Read its attn_mask as an answer. To which question, may or may not?",
            observe=entry("module"),
        ),
        Property(
            "added",
            "an allowed look in an additive mask",
            "The mask is added to the score. Which number changes no score?",
            observe=entry("added"),
        ),
        Property(
            "filled",
            "an allowed look where the fill goes to mask == 0",
            "Which entries does the line overwrite? And which are left as they were?",
            observe=entry("filled"),
        ),
        Property(
            "padding",
            "the shape of a padding mask",
            "On which of batch, head, query and key does padding depend?",
            observe=entry("padding"),
            axes="batch head query key",
        ),
        Property(
            "causal",
            "how many looks a causal mask allows",
            "Draw the table: how many keys may the last query see, and the one before?",
            observe=entry("causal"),
        ),
    ),
    hints=(
        "Take one score that should stay as it is, and ask of each dialect what leaves "
        "it alone.",
        "A mask has the axes of the scores, (batch, head, query, key), with 1 where an "
        "axis makes no difference.",
        "The last query stands beside the last key and sees all n_k. Each query before "
        "it sees one key less.",
    ),
    explanation=(
        "The function asks whether a query may look, the module whether it may not. "
        "Added to a score, 0 changes nothing; a line that overwrites where the mask is "
        "0 leaves a 1 alone. Padding depends on the sentence and the key. The last "
        "query sees all n_k keys, each one before it sees one less: n_q·n_k minus "
        "0 + 1 + … + (n_q - 1)."
    ),
    wrong=(
        Wrong(
            "True means masked, everywhere.",
            "function",
            slip(looks, '"function": True', '"function": False'),
            "That is the module's dialect. What does the function's True stand for?",
        ),
        Wrong(
            "True means may attend, everywhere.",
            "module",
            slip(looks, '"module": False', '"module": True'),
            "That is the function's dialect. What does the module do with a look whose "
            "entry is True?",
        ),
        Wrong(
            "A mask holds 1 for yes.",
            "added",
            slip(looks, '"added": 0.0', '"added": 1.0'),
            "Add 1 to the score of one key. Does its weight stay as it was?",
        ),
        Wrong(
            "A yes is a large number.",
            "added",
            slip(looks, "0.0", "float('inf')"),
            "Add ∞ to a score. What is left for the other keys?",
        ),
        Wrong(
            "A yes is minus infinity.",
            "added",
            slip(looks, "0.0", "float('-inf')"),
            "Add -∞ to a score. What is e to that power?",
        ),
        Wrong(
            "Where the mask is 0 the score is kept.",
            "filled",
            slip(looks, '"filled": 1', '"filled": 0'),
            "Where the mask is 0 the score is overwritten. Which value is left alone?",
        ),
        Wrong(
            "A mask has no axes that make no difference.",
            "padding",
            slip(looks, "(batch, 1, 1, n_k)", "(batch, n_k)"),
            "Aligned from the right, your batch falls on the queries. Which two axes "
            "are missing in between?",
        ),
        Wrong(
            "Padding hides the queries that are padding.",
            "padding",
            slip(looks, "(batch, 1, 1, n_k)", "(batch, 1, n_q, 1)"),
            "Your mask depends on the query. What is it that nobody may look at, a "
            "padded query or a padded key?",
        ),
        Wrong(
            "A mask has one axis for the sentences and two for the table.",
            "padding",
            slip(looks, "(batch, 1, 1, n_k)", "(batch, n_q, n_k)"),
            "Aligned from the right, your batch falls on the heads. How many axes have "
            "the scores?",
        ),
        Wrong(
            "The triangle sits at the top left.",
            "causal",
            slip(looks, "n_q * n_k - n_q * (n_q - 1) // 2", "n_q * (n_q + 1) // 2"),
            "You counted a triangle at the top left. Which key is the newest query's "
            "own?",
        ),
        Wrong(
            "A token may not see itself.",
            "causal",
            slip(looks, "(n_q - 1) // 2", "(n_q + 1) // 2"),
            "In your table a query does not see its own key. Is its own token in the "
            "future?",
        ),
        Wrong(
            "A cache holds the past only, so all of it may be seen.",
            "causal",
            slip(looks, "n_q * n_k - n_q * (n_q - 1) // 2", "n_q * n_k"),
            "You allow every look. May the first of the new tokens see the last?",
        ),
    ),
    right=(
        right.looks_by_running,
        right.looks_by_adding_up,
        right.looks_as_tensors,
    ),
)


def read(q, k, v, lengths):
    """Let each token look at the real tokens of its own sentence."""
    place = torch.arange(k.shape[1], device=lengths.device)
    is_padding = place >= lengths[:, None]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(is_padding[:, None, :], float("-inf"))
    return scores.softmax(dim=-1) @ v


def _sentences(draw: Draw, *, first: int = 3, full: bool = False) -> Inputs:
    """Draw sentences, the shortest first, of ``first`` tokens, or all of them full."""
    batch, d_k, d_v = draw.primes(3)
    n = draw.one_of(8, 9, 10)
    lengths = [n] * batch
    if not full:
        lengths = [first, *sorted(draw.one_of(4, 5, 6) for _ in range(batch - 1))]
    return {
        "q": draw.normal(batch, n, d_k),
        "k": draw.normal(batch, n, d_k),
        "v": draw.normal(batch, n, d_v),
        "lengths": torch.tensor(lengths),
    }


def _without_padding(draw: Draw) -> Inputs:
    return _sentences(draw, full=True)


def _equal_values(draw: Draw) -> Inputs:
    inputs = _far_scores(_sentences(draw))
    inputs["v"].fill_(1)
    return inputs


def _one_sentence(draw: Draw) -> Inputs:
    inputs = _sentences(draw)
    return {name: tensor[:1] for name, tensor in inputs.items()}


def _low_scores(inputs: Inputs) -> Inputs:
    """Let every score lie near -200, where no number above that hides a key."""
    inputs["k"][..., 0] = 1
    inputs["q"][..., 0] = -200 * inputs["q"].shape[-1] ** 0.5
    return inputs


def _far_scores(inputs: Inputs) -> Inputs:
    """Let scores lie near -200 and, for every other query, near 200."""
    _low_scores(inputs)["q"][:, 1::2, 0] *= -1
    return inputs


def _sentences_of_low_scores(draw: Draw) -> Inputs:
    return _low_scores(_sentences(draw))


def _long_sentences_first(draw: Draw) -> Inputs:
    inputs = _sentences(draw)
    return inputs | {"lengths": inputs["lengths"].flip(0)}


def _is_real(inputs: Inputs) -> Tensor:
    return torch.arange(inputs["k"].shape[1]) < inputs["lengths"][:, None]


def _real_rows(function: Callable, inputs: Inputs) -> Tensor:
    """Observe the output of the real tokens, one after the other."""
    return torch.as_tensor(call(function, inputs))[_is_real(inputs)]


def _move_of_real_rows(function: Callable, inputs: Inputs) -> Tensor:
    """Observe how the output of the real tokens moves with other padding."""
    other = dict(inputs)
    for name in ("q", "k", "v"):
        is_real = _is_real(inputs)[..., None]
        other[name] = inputs[name].where(is_real, 2 - inputs[name])
    return _real_rows(function, other) - _real_rows(function, inputs)


_FILL = 'scores.masked_fill(is_padding[:, None, :], float("-inf"))'
_REAL_ONES = "your answers to real tokens, one sentence after the other"
_HIDES_KEYS, _HIDES_QUERIES = "is_padding[:, None, :]", "is_padding[:, :, None]"

BUG = Exercise(
    id="04-bug",
    title="A mask that is one axis off",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=read,
    draw=_sentences,
    axes={
        "q": "batch n d_k",
        "k": "batch n d_k",
        "v": "batch n d_v",
        "lengths": "batch",
        "returns": "batch query d_v",
    },
    properties=(
        Property(
            "shape",
            "one answer of width d_v per token",
            "Which line changes the number of axes or the width?",
            observe=shape,
        ),
        Property(
            "full",
            "no padding at all: plain attention",
            "Here every token is real, so nothing is forbidden. Which of your lines "
            "changes a score or a weight all the same?",
            draw=_without_padding,
        ),
        Property(
            "share",
            "all values are 1, so all answers are, at scores near -200 and near 200",
            "A mean of ones is one. Do your weights still sum to one?",
            draw=_equal_values,
            observe=_real_rows,
            axes="token d_v",
            compared=_REAL_ONES,
        ),
        Property(
            "padding",
            "other padding moves no answer of a real token, with all scores near -200",
            "A real token still looks at padding. Which scores does your fill reach, "
            "and how much weight does it leave there?",
            draw=_sentences_of_low_scores,
            observe=_move_of_real_rows,
            axes="token d_v",
            compared=f"{_REAL_ONES}: with other padding, minus before",
        ),
        Property(
            "lengths",
            "each sentence has its own length",
            "No real token sees padding. Does each see all of its own sentence?",
            draw=_long_sentences_first,
            observe=_real_rows,
            axes="token d_v",
            compared=_REAL_ONES,
        ),
        Property(
            "queries",
            "padding asks like any other token",
            "Real tokens are served. What becomes of the rows of padding, which may "
            "look at real tokens as well?",
            draw=_one_sentence,
        ),
    ),
    hints=(
        "Change what must stay hidden, and nothing may move. The cell under the "
        "function does that. Now ask of each line whether it knows of padding.",
        "Scores are (batch, query, key). Write the shape of the mask beside it, and "
        "see on which axis its numbers fall.",
        "is_padding is (batch, n). Where must the axis of size 1 stand, so that the "
        "n falls on the keys?",
    ),
    explanation=(
        "The axis of size 1 stood in the place of the keys, so the mask fell on the "
        "queries. With as many queries as keys both fit. The rows of padded queries, "
        "filled with one number throughout, became uniform; all others went on looking "
        "at padding. With -inf in place of -1e9 these rows would have been nan, and "
        "the bug would have shown itself at once. Queries need no mask: nobody reads "
        "the answers of padding."
    ),
    given=slip(read, _HIDES_KEYS, _HIDES_QUERIES, 'float("-inf")', "-1e9"),
    wrong=(
        Wrong(
            "The weights have to be transposed, too.",
            "full",
            slip(
                read,
                _HIDES_KEYS,
                _HIDES_QUERIES,
                'float("-inf")',
                "-1e9",
                "dim=-1",
                "dim=-2",
            ),
            "Now your mask and your softmax agree, and a key distributes weight among "
            "queries. Who should?",
        ),
        Wrong(
            "The mask was the wrong way round.",
            "full",
            slip(read, ">= lengths", "< lengths", 'float("-inf")', "-1e9"),
            "You hide the real tokens. What does is_padding say where it is True?",
        ),
        Wrong(
            "masked_fill fills where the mask is False.",
            "full",
            slip(read, _HIDES_KEYS, f"~{_HIDES_KEYS}"),
            "You fill the scores of the real tokens, and a softmax over only −∞ is "
            "nan. Where is your mask True, at padding or at real tokens?",
        ),
        Wrong(
            "A mask of ones and zeros times infinity is an additive mask.",
            "full",
            slip(read, _FILL, f'scores + {_HIDES_KEYS} * float("-inf")'),
            "Where nothing is forbidden you add 0 · ∞. What is that?",
        ),
        Wrong(
            "Places are counted from 1.",
            "full",
            slip(read, ">= lengths[:, None]", ">= lengths[:, None] - 1"),
            "The last real token is hidden as well. Counted from 0, at which place "
            "does it stand?",
        ),
        Wrong(
            "Forbidden weights can be set to zero after the softmax.",
            "share",
            slip(
                read,
                "    scores = scores.masked_fill(is_padding[:, None, :], "
                'float("-inf"))\n',
                "",
                "scores.softmax(dim=-1)",
                "scores.softmax(dim=-1).masked_fill(is_padding[:, None, :], 0)",
            ),
            "The forbidden weights are gone, and nobody got them. What do the rows sum "
            "to?",
        ),
        Wrong(
            "The number was the bug.",
            "padding",
            slip(read, _HIDES_KEYS, _HIDES_QUERIES),
            "Now the rows of padding are nan, and real tokens look at padding as "
            "before. On which axis of the scores does your mask fall?",
        ),
        Wrong(
            "masked_fill changes the scores themselves.",
            "padding",
            slip(read, "    scores = scores.masked", "    scores.masked"),
            "Your answers are those without a mask. What becomes of the filled scores?",
        ),
        Wrong(
            "A score of zero is no look.",
            "padding",
            slip(read, 'float("-inf")', "0"),
            "A score of 0 is a score like any other. What is e to the power of 0?",
        ),
        Wrong(
            "-100 is far below any score.",
            "padding",
            slip(read, 'float("-inf")', "-100"),
            "All scores lie near -200 here, and padding gets a higher one from you. "
            "Which number is below every score?",
        ),
        Wrong(
            "Padding begins after the place that is the length.",
            "padding",
            slip(read, ">= lengths", "> lengths"),
            "One token of padding is still seen. Places count from 0: at which place "
            "does a sentence of length 3 end?",
        ),
        Wrong(
            "Powers without the padding, divided by their sum, are the weights.",
            "share",
            slip(
                read,
                f"    scores = {_FILL}\n    return scores.softmax(dim=-1) @ v",
                "    powers = scores.exp() * ~is_padding[:, None, :]\n    return "
                "powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-12) @ v",
            ),
            "In float32 e to the power of -200 is 0, and to the power of 200 infinite. "
            "What does a softmax subtract first?",
        ),
        Wrong(
            "-1e9 in every score of a padded token hides it.",
            "padding",
            slip(
                read,
                f"    scores = {_FILL}\n",
                "    k = k.masked_fill(is_padding[..., None], -1e9)\n"
                "    scores = q @ k.mT / q.shape[-1] ** 0.5\n",
            ),
            "You fill keys, and a score is a sum of products with them: it may come "
            "out high or low. Which tensor holds the scores?",
        ),
        Wrong(
            "Lengths come in order.",
            "lengths",
            slip(read, "    place = ", "    lengths = lengths.sort()[0]\n    place = "),
            "You put the lengths in order. Which sentence does the first one belong to "
            "then?",
        ),
        Wrong(
            "One length will do for the batch.",
            "lengths",
            slip(read, "lengths[:, None]", "lengths[:1, None]"),
            "One length decides for all sentences. Which tensor says where each of "
            "them ends, and along which axis?",
        ),
        Wrong(
            "Both masks are needed: padding neither asks nor is asked.",
            "queries",
            slip(
                read,
                _HIDES_KEYS,
                "is_padding[:, None, :] | is_padding[:, :, None]",
                'float("-inf")',
                "-1e9",
            ),
            "The rows of padding share evenly among all keys, padding included. Whom "
            "may a padded query look at, by the statement?",
        ),
        Wrong(
            "Both masks are needed, and infinity is safe.",
            "queries",
            slip(read, _HIDES_KEYS, "is_padding[:, None, :] | is_padding[:, :, None]"),
            "The rows of padding are nan: all their scores are −∞. Whom may a padded "
            "query look at, by the statement?",
        ),
        Wrong(
            "What padding asks for is set to zero.",
            "queries",
            slip(
                read,
                "scores.softmax(dim=-1) @ v",
                "(scores.softmax(dim=-1) @ v).masked_fill(is_padding[:, :, None], 0)",
            ),
            "The rows of padding are zero. Does the statement take their answers away?",
        ),
    ),
    right=(
        right.read_fused,
        right.read_one_by_one,
        right.read_with_a_large_number,
        right.read_in_numpy,
    ),
)


def causal(n_q, n_k):
    """Return (n_q, n_k): True where a query may look at a key."""
    query = torch.arange(n_q)[:, None] + n_k - n_q  # the place of its own key
    return torch.arange(n_k) <= query


def _more_keys(draw: Draw) -> Inputs:
    (n_q,), (n_k,) = draw.primes(1, above=2), draw.primes(1, above=7)
    return {"n_q": n_q, "n_k": n_k}


def _as_many_keys(draw: Draw) -> Inputs:
    (n,) = draw.primes(1, above=7)
    return {"n_q": n, "n_k": n}


def _one_query(draw: Draw) -> Inputs:
    (n_k,) = draw.primes(1, above=7)
    return {"n_q": 1, "n_k": n_k}


_RETURN = "return torch.arange(n_k) <= query"

CAUSAL = Exercise(
    id="04-causal",
    title="The past and nothing else",
    kind="write",
    level=2,
    minutes=10,
    points=3,
    reference=causal,
    draw=_more_keys,
    axes={"returns": "query key"},
    properties=(
        Property(
            "shape",
            "a row for each query, a column for each key",
            "How many rows has your mask, and how many columns? Who stands in a row, "
            "and who in a column?",
            observe=shape,
        ),
        Property(
            "square",
            "as many keys as queries: the past and the token itself",
            "Write the mask for three tokens by hand. Where does yours differ?",
            draw=_as_many_keys,
        ),
        Property(
            "one",
            "one query, the newest: it sees every key",
            "The one query is the newest token. Which keys lie in its past?",
            draw=_one_query,
        ),
        Property(
            "several",
            "several new queries: the last stands beside the last key",
            "The last query sees every key. How many does the query before it see?",
        ),
    ),
    hints=(
        "Row i, column j: may query i look at key j? Compare two numbers, and let "
        "torch.arange make all pairs at once.",
        "The n_q queries are the newest of n_k tokens. Which key is query 0's own?",
        "tril takes a diagonal: 0 is the one that begins at the top left.",
    ),
    explanation=(
        "Query i is token i + n_k - n_q, and may look at the tokens up to itself. "
        "`torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)` says the same. With "
        "n_q = n_k the difference is 0, so a test with equal sizes cannot see whether "
        "you thought of it."
    ),
    wrong=(
        Wrong(
            "Keys are rows.",
            "shape",
            slip(causal, _RETURN, "return (torch.arange(n_k) <= query).T"),
            "You have a row for each key. Who looks, and who is looked at?",
        ),
        Wrong(
            "A mask is square.",
            "shape",
            slip(causal, "torch.arange(n_k) <=", "torch.arange(n_q) <="),
            "Your mask is square. How many keys are there?",
        ),
        Wrong(
            "True means may not.",
            "square",
            slip(causal, "<= query", "> query"),
            "Your True marks what is forbidden. What does it mean in this book?",
        ),
        Wrong(
            "Only what is strictly past may be seen.",
            "square",
            slip(causal, "<= query", "< query"),
            "The first token may look at nobody. Does it know itself?",
        ),
        Wrong(
            "A token needs to see the one it predicts.",
            "square",
            slip(causal, "<= query", "<= query + 1"),
            "Every token sees the next one. Is that not the answer it should find?",
        ),
        Wrong(
            "Tokens see what comes after them.",
            "square",
            slip(causal, "<= query", ">= query"),
            "Your triangle is the upper one. In row 0, which columns lie in the past?",
        ),
        Wrong(
            "Only what is near matters.",
            "square",
            slip(
                causal,
                _RETURN,
                "own = torch.arange(n_k)\n    return "
                "(own <= query) & (own >= query - 4)",
            ),
            "Your last token sees only those near it. How far back does the past go?",
        ),
        Wrong(
            "A mask is made of ones and zeros.",
            "square",
            slip(causal, _RETURN, "return (torch.arange(n_k) <= query).int()"),
            "The numbers are right, and the kind is not. Which kind of tensor answers "
            "yes or no?",
        ),
        Wrong(
            "A mask is what is added to the scores.",
            "square",
            slip(
                causal,
                _RETURN,
                "return torch.zeros(n_q, n_k).masked_fill("
                'torch.arange(n_k) > query, float("-inf"))',
            ),
            "That is an additive mask. Which kind of tensor says yes or no?",
        ),
        Wrong(
            "The triangle begins at the top left.",
            "one",
            slip(causal, " + n_k - n_q", ""),
            "The newest token sees the oldest and nothing else. Which key is its own?",
        ),
        Wrong(
            "New tokens see only new tokens.",
            "one",
            slip(
                causal,
                _RETURN,
                "own = torch.arange(n_k)\n    return (own <= query) & "
                "(own >= n_k - n_q)",
            ),
            "The newest token sees itself alone. What is a cache of keys good for?",
        ),
        Wrong(
            "One query is the only special case.",
            "several",
            slip(causal, "+ n_k - n_q", "+ (n_k - 1 if n_q == 1 else 0)"),
            "One query is right, several are not. Which key is the last query's own?",
        ),
        Wrong(
            "New tokens may see each other.",
            "several",
            slip(
                causal,
                _RETURN,
                "return (torch.arange(n_k) <= query) | (n_q < n_k)",
            ),
            "All new tokens see all others. May the first of them see the last?",
        ),
    ),
    right=(
        right.causal_by_tril,
        right.causal_by_loop,
        right.causal_by_counting_down,
        right.causal_by_package,
        right.causal_in_numpy,
    ),
)


def padding(lengths, n_k):
    """Return (batch, 1, 1, n_k): True at the real keys of each sentence."""
    place = torch.arange(n_k)
    return (place < torch.tensor(lengths)[:, None])[:, None, None, :]


def _lengths(draw: Draw) -> Inputs:
    others = draw.one_of(2, 4, 6)
    lengths = [*(draw.one_of(2, 4, 6) for _ in range(others)), 1]
    return {"lengths": lengths, "n_k": draw.one_of(8, 9)}


def _full_lengths(draw: Draw) -> Inputs:
    """Make the sentences too long for int8 to count their tokens."""
    lengths, n_k = _lengths(draw).values()
    return {"lengths": [16 * n_k] * len(lengths), "n_k": 16 * n_k}


def _an_empty_sentence(draw: Draw) -> Inputs:
    inputs = _lengths(draw)
    return inputs | {"lengths": [0, *inputs["lengths"][1:]]}


PADDING = Exercise(
    id="04-padding",
    title="Nobody looks at padding",
    kind="write",
    level=2,
    minutes=10,
    points=3,
    reference=padding,
    draw=_lengths,
    axes={"returns": "batch head query key"},
    properties=(
        Property(
            "shape",
            "it fits the scores, with 1 where an axis makes no difference",
            "The scores are (batch, head, query, key). Which of the four does padding "
            "depend on?",
            observe=shape,
        ),
        Property(
            "full",
            "sentences without padding: every look is allowed",
            "Nothing is padding here, so every entry should be True: may be looked at. "
            "Which of yours are not?",
            draw=_full_lengths,
        ),
        Property(
            "keys",
            "the first lengths[b] keys of sentence b, and no others",
            "Write the mask of a sentence of length 2 by hand. Where does yours "
            "differ?",
        ),
        Property(
            "empty",
            "a sentence of length 0: no key at all",
            "What is left to look at in an empty sentence?",
            draw=_an_empty_sentence,
        ),
    ),
    hints=(
        "Number the keys, 0 to n_k - 1. Which of them are real in a sentence of length "
        "2?",
        "lengths is a list; as a tensor it is (batch,), and with one more axis (batch, "
        "1). A comparison of (n_k,) with that is (batch, n_k): each number with each "
        "length.",
        "torch.tensor(lengths)[:, None] has that axis, and x[:, None, None, :] puts "
        "two axes of size 1 in the middle.",
    ),
    explanation=(
        "Key j of sentence b is real if `j < lengths[b]`. The two axes of size 1 stand "
        "for the heads and the queries: padding makes no difference to them. Without "
        "these axes the mask would be aligned from the right, its batch with the "
        "queries. An empty sentence leaves its queries nobody to look at, and it is "
        "the attention that has to cope with it."
    ),
    wrong=(
        Wrong(
            "A mask has no axes that make no difference.",
            "shape",
            slip(padding, "[:, None, None, :]", ""),
            "Aligned from the right, your batch falls on the queries. Which two axes "
            "are missing in between?",
        ),
        Wrong(
            "Padding hides the queries that are padding.",
            "shape",
            slip(padding, "[:, None, None, :]", "[:, None, :, None]"),
            "Your mask falls on the queries. What is it that nobody may look at?",
        ),
        Wrong(
            "A mask spells out the whole table.",
            "shape",
            slip(
                padding,
                "[:, None, None, :]",
                "[:, None, None, :].expand(-1, 1, n_k, n_k)",
            ),
            "You count on as many queries as keys. Which size fits any number of "
            "queries?",
        ),
        Wrong(
            "The longest sentence decides how many keys there are.",
            "shape",
            slip(padding, "torch.arange(n_k)", "torch.arange(max(lengths))"),
            "Your mask ends with the longest sentence. How many keys are there?",
        ),
        Wrong(
            "True means padding.",
            "full",
            slip(padding, "place < ", "place >= "),
            "Your True marks padding. What does it mean in this book?",
        ),
        Wrong(
            "Places are counted from 1.",
            "full",
            slip(padding, "place < torch", "place + 1 < torch"),
            "Your last real token is hidden. Counted from 0, at which place does a "
            "sentence of length 2 end?",
        ),
        Wrong(
            "A mask is what is added to the scores.",
            "full",
            slip(
                padding,
                "(place < torch.tensor(lengths)[:, None])",
                "torch.zeros(len(lengths), n_k).masked_fill("
                'place >= torch.tensor(lengths)[:, None], float("-inf"))',
            ),
            "That is an additive mask. Which kind of tensor says yes or no?",
        ),
        Wrong(
            "A mask is made of ones and zeros.",
            "full",
            slip(padding, "[:, None, None, :]", "[:, None, None, :].float()"),
            "The numbers are right, and the kind is not. Which kind of tensor answers "
            "yes or no?",
        ),
        Wrong(
            "A length fits into eight bits.",
            "full",
            slip(
                padding,
                "torch.tensor(lengths)[:, None]",
                "torch.tensor(lengths)[:, None].to(torch.int8)",
            ),
            "Long sentences have lost their end. What is the largest number that "
            "your type of integer holds?",
        ),
        Wrong(
            "A sentence ends at the place that is its length.",
            "keys",
            slip(padding, "place < ", "place <= "),
            "One token of padding can be seen. Places count from 0: which is the last "
            "one of a sentence of length 2?",
        ),
        Wrong(
            "Padding stands on the left.",
            "keys",
            slip(padding, "place < ", "n_k - 1 - place < "),
            "You keep the last keys of each sentence. On which side is the padding?",
        ),
        Wrong(
            "One length will do for the batch.",
            "keys",
            slip(
                padding,
                "torch.tensor(lengths)",
                "torch.tensor([max(lengths)] * len(lengths))",
            ),
            "All your sentences are as long as the longest. Which axis tells them "
            "apart?",
        ),
        Wrong(
            "Somebody must be looked at.",
            "empty",
            slip(padding, "torch.tensor(lengths)", "torch.tensor(lengths).clamp(1)"),
            "You let an empty sentence have one key. What is that key made of?",
        ),
    ),
    right=(
        right.padding_by_loop,
        right.padding_by_filling,
        right.padding_by_lists,
        right.padding_by_package,
        right.padding_in_numpy,
    ),
)


def attention(q, k, v, mask):
    """Average over the keys a query may look at; over none of them it is zero."""
    some = mask.any(dim=-1, keepdim=True)  # may look at somebody
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask & some, float("-inf"))
    weights = scores.softmax(dim=-1).masked_fill(~some, 0)
    return weights @ v, weights


def _tensors(draw: Draw) -> Inputs:
    batch, n_k, d_k, d_v = draw.primes(4, above=2)
    n_q = draw.one_of(4, 6)
    mask = draw.normal(batch, n_q, n_k) < 0
    mask[..., 0] = True
    return {
        "q": draw.normal(batch, n_q, d_k),
        "k": draw.normal(batch, n_k, d_k),
        "v": draw.normal(batch, n_k, d_v),
        "mask": mask,
    }


def _all_allowed(draw: Draw) -> Inputs:
    inputs = _tensors(draw)
    inputs["mask"].fill_(True)
    return inputs


def _one_mask_for_all(draw: Draw) -> Inputs:
    inputs = _tensors(draw)
    return inputs | {"mask": inputs["mask"][0]}


def _two_see_nobody(draw: Draw) -> Inputs:
    """Leave nobody to look at to one query of each of two sentences."""
    inputs = _tensors(draw)
    inputs["mask"][0, 1] = inputs["mask"][1, 2] = False
    return inputs


def _scored_low(draw: Draw) -> Inputs:
    return _low_scores(_tensors(draw))


def _scored_far(draw: Draw) -> Inputs:
    return _far_scores(_tensors(draw))


def _in_half_precision(draw: Draw) -> Inputs:
    inputs = _two_see_nobody(draw)
    return {name: t if name == "mask" else t.half() for name, t in inputs.items()}


def _row_sums(function, inputs):
    return torch.as_tensor(of_pair(1)(function, inputs)).sum(dim=-1)


def _weight_on_forbidden(function, inputs):
    weights = torch.as_tensor(of_pair(1)(function, inputs)).float()
    return (weights * ~inputs["mask"]).sum(dim=-1)


def _off_in_half_precision(function, inputs):
    """Observe where float16 gives another answer than float32 on the same numbers."""
    exact = {name: t.float() for name, t in inputs.items()} | {"mask": inputs["mask"]}
    half, full = (side_by_side(function, each) for each in (inputs, exact))
    return ~((torch.as_tensor(half) - torch.as_tensor(full)).abs() < 0.03)


def _gradients(function, inputs):
    """Observe the gradients of the output of those who see somebody: 1 is as it should.

    Where q, k or v has none it is 0, or -1 if a tensor made on the way has it instead;
    where it is not finite it is nan.
    """
    if not isinstance(of_pair(0)(function, inputs), Tensor):  # NumPy has no gradients
        return torch.ones(3)
    learnt = {name: inputs[name].requires_grad_() for name in ("q", "k", "v")}
    for name, tensor in learnt.items():
        tensor.is_input = name  # a copy keeps it, and what is cut off loses it
    output = of_pair(0)(function, inputs | learnt)
    if not output.requires_grad:
        return torch.zeros(3)
    output[inputs["mask"].any(dim=-1)].sum().backward()
    leaves = _leaves(output)
    found = {getattr(leaf, "is_input", "made"): leaf.grad for leaf in leaves}
    sizes = [found[name].abs().sum() if name in found else None for name in learnt]
    none = -1.0 if "made" in found else 0.0
    return torch.tensor([size / size if size else none for size in sizes])


def _leaves(result: Tensor) -> list[Tensor]:
    """Return the tensors that take part in a result: the answer works on copies."""
    nodes, seen = [result.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            nodes += [before for before, _ in node.next_functions]
    return [node.variable for node in seen if hasattr(node, "variable")]


_ON_FORBIDDEN = "your weights on the forbidden keys of a query, added up"
_FILLED = '    scores = scores.masked_fill(~mask & some, float("-inf"))\n'
_NOBODY = ".masked_fill(~some, 0)"
_INFINITY = 'float("-inf")'

ATTENTION = Exercise(
    id="04-attention",
    title="Attention under a mask",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=attention,
    draw=_tensors,
    axes={
        "q": "batch n_q d_k",
        "k": "batch n_k d_k",
        "v": "batch n_k d_v",
        "mask": "batch n_q n_k",
    },
    properties=(
        Property(
            "shape",
            "an output (batch, n_q, d_v) and weights (batch, n_q, n_k), in this order",
            "Return a pair: output, weights. Which shape has each of yours?",
            observe=sizes_of_pair,
            axes="batch query d_v batch query key",
        ),
        Property(
            "free",
            "every look is allowed: the weights are those without a mask",
            "Every entry of the mask is True here, so nothing is forbidden. What do "
            "your lines do where it is True? And are your weights right without them?",
            draw=_all_allowed,
            observe=of_pair(1),
            axes="batch query key",
        ),
        Property(
            "forbidden",
            "a forbidden key gets no weight at all, with all scores near -200",
            "Does your mask reach the softmax? And before it, which score makes a "
            "weight of exactly 0?",
            draw=_scored_low,
            observe=_weight_on_forbidden,
            axes="batch query",
            compared=_ON_FORBIDDEN,
        ),
        Property(
            "rows",
            "each row of weights still sums to one, at scores near -200 and near 200",
            "Who gets the weight that the forbidden keys would have had?",
            draw=_scored_far,
            observe=_row_sums,
            axes="batch query",
            compared="the sum of each row of your weights",
        ),
        Property(
            "output",
            "the output is made with these weights",
            "Is the second tensor that you return the factor that v was multiplied by?",
            observe=of_pair(0),
            axes="batch query d_v",
        ),
        Property(
            "shared",
            "one mask (n_q, n_k) for the whole batch",
            "Which line needs a mask with a batch axis? Which calls broadcast it?",
            draw=_one_mask_for_all,
            observe=of_pair(1),
            axes="batch query key",
        ),
        Property(
            "nobody",
            "two queries may look at nobody: their weights are zero",
            "Look at query 1 of sentence 0 and query 2 of sentence 1, before your "
            "softmax and after it. What should their weights be?",
            draw=_two_see_nobody,
            observe=of_pair(1),
            axes="batch query key",
        ),
        Property(
            "silence",
            "two queries may look at nobody: their outputs are zero",
            "Their weights are zero. Which weights made their outputs?",
            draw=_two_see_nobody,
            observe=of_pair(0),
            axes="batch query d_v",
        ),
        Property(
            "gradients",
            "who sees nobody spoils no gradient of the others",
            "What comes back to a query that sees nobody is 0, and 0 times nan is nan. "
            "Which step of yours still has a nan in it, or cuts a gradient off?",
            draw=_two_see_nobody,
            observe=_gradients,
            axes="tensor",
            compared="the gradients of the other queries' output for q, k and v: 1 if "
            "finite, 0 if there is none, -1 if a tensor of yours has it",
        ),
        Property(
            "half",
            "float16 gives what float32 gives, up to rounding",
            "float16 ends at 65 504, and what is below 3e-8 is 0 there. Which number "
            "of yours lies beyond?",
            draw=_in_half_precision,
            observe=_off_in_half_precision,
            axes="batch query column",
            compared="whether a number of your output or, beside it, of your weights "
            "is off by 0.03 or more",
        ),
    ),
    hints=(
        "Three lines of the chapter do all but the query that may look at nobody: "
        "scores, -inf where the mask is False, softmax.",
        "What does a row of the mask look like whose query may look at nobody? Which "
        "scores of that row should be filled?",
        "mask.any(dim=-1, keepdim=True) says of each query whether it may look at "
        "somebody. A row that is not filled has a softmax like any other, and no nan. "
        "Then masked_fill can write zeros over its weights.",
    ),
    explanation=(
        "A row in which every score is -inf would make a nan. So the scores of such a "
        "row stay as they are, and zeros are written over its weights: no nan is made, "
        "neither on the way there nor on the way back. You may also fill every "
        "forbidden score and write zeros over the nan. Then the softmax makes a nan "
        "again on the way back, and it is the fill of the scores that stops it; "
        "`torch.autograd.detect_anomaly()` would raise. Where -inf is added, nothing "
        "stops it. A large negative number makes a row even over forbidden keys; the "
        "zeros mend that, but float16 has no -1e9."
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
            "True means masked.",
            "free",
            slip(
                attention,
                "~mask & some",
                "mask & some",
                "mask.any",
                "(~mask).any",
            ),
            "Every look is allowed, and you forbid all of them. What does True mean "
            "in this book?",
        ),
        Wrong(
            "masked_fill takes the mask as it is.",
            "free",
            slip(attention, "~mask & some", "mask", _NOBODY, ""),
            "Every entry of the mask is True here, and you forbid where it is True: a "
            "softmax over only −∞ is nan. What does True mean in this book?",
        ),
        Wrong(
            "masked_fill takes the mask as it is, and -1e9 will do.",
            "free",
            slip(attention, "~mask & some", "mask", _NOBODY, "", _INFINITY, "-1e9"),
            "Every entry of the mask is True here, and you lower all scores alike: the "
            "weights are even. What does True mean in this book?",
        ),
        Wrong(
            "A mask of ones and zeros times infinity is an additive mask.",
            "free",
            slip(
                attention,
                _FILLED,
                f"    scores = scores + ~mask * {_INFINITY}\n",
                _NOBODY,
                "",
            ),
            "Everything is nan. What is 0 · ∞, and what is a softmax over only −∞?",
        ),
        Wrong(
            "The answer is the output; nobody needs the weights.",
            "shape",
            slip(attention, "weights @ v, weights", "weights @ v"),
            "You return one tensor, the output. Which second one is asked for?",
        ),
        Wrong(
            "The scores are what a map shows.",
            "free",
            slip(attention, "weights @ v, weights", "weights @ v, scores"),
            "Your second tensor is the scores. Which step lies between them and the "
            "weights?",
        ),
        Wrong(
            "Softmax runs over the queries.",
            "free",
            slip(attention, "softmax(dim=-1)", "softmax(dim=-2)"),
            "Your weights sum to one for each key. Along which axis do the keys of one "
            "query lie?",
        ),
        Wrong(
            "The scale is a detail of training.",
            "free",
            slip(attention, " / q.shape[-1] ** 0.5", ""),
            "Your scores are √d_k times too large. Which division is missing?",
        ),
        Wrong(
            "masked_fill changes the scores themselves.",
            "forbidden",
            slip(attention, "scores = scores.masked", "scores.masked", _NOBODY, ""),
            "Your weights are those without a mask. Which line uses it, and what "
            "becomes of its result?",
        ),
        Wrong(
            "A score of zero is no look.",
            "forbidden",
            slip(attention, _INFINITY, "0"),
            "A score of 0 is a score like any other. What is e to the power of 0?",
        ),
        Wrong(
            "-100 is far below any score.",
            "forbidden",
            slip(attention, _INFINITY, "-100"),
            "All scores lie near -200 here, and a forbidden key gets a higher one from "
            "you. Which number is below every score?",
        ),
        Wrong(
            "A mask is added to the scores as it is.",
            "forbidden",
            slip(attention, _FILLED, "    scores = scores + mask\n"),
            "You add 1 where a look is allowed and 0 where it is not. What would have "
            "to be added where it is not?",
        ),
        Wrong(
            "Forbidden weights can be set to zero after the softmax.",
            "rows",
            slip(attention, _FILLED, "", _NOBODY, ".masked_fill(~mask, 0)"),
            "The forbidden weights are gone, and nobody got them. Where must the mask "
            "act, so that the others share the whole?",
        ),
        Wrong(
            "Powers times the mask, divided by their sum, are the weights.",
            "rows",
            slip(
                attention,
                _FILLED,
                "",
                f"scores.softmax(dim=-1){_NOBODY}",
                "scores.exp() * mask\n    weights = weights / "
                "weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)",
            ),
            "In float32 e to the power of -200 is 0, and to the power of 200 infinite. "
            "What does a softmax subtract first?",
        ),
        Wrong(
            "All weights first, then the mask, then divided by what is left.",
            "rows",
            slip(
                attention,
                _FILLED,
                "    scores = scores * mask\n",
                _NOBODY,
                " * mask\n    weights = weights / "
                "weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)",
            ),
            "Times 0 a score is 0, and next to it one of -200 gets nothing. Which "
            "number is below every score?",
        ),
        Wrong(
            "The mask of sentence 0 will do.",
            "forbidden",
            slip(
                attention,
                "    some = ",
                "    mask = mask[:1] if mask.dim() == 3 else mask\n    some = ",
            ),
            "One mask decides for all sentences. Which axis of yours counts them?",
        ),
        Wrong(
            "The mask is for the map.",
            "output",
            slip(
                attention,
                "return weights @ v, weights",
                "unmasked = q @ k.mT / q.shape[-1] ** 0.5\n"
                "    return unmasked.softmax(dim=-1) @ v, weights",
            ),
            "Your map is masked, and your output comes from another one. Which weights "
            "should v be multiplied by?",
        ),
        Wrong(
            "A mask is always as large as the scores.",
            "shared",
            slip(attention, _FILLED, '    scores[~mask & some] = float("-inf")\n'),
            "An index in square brackets must match the axes from the front. What "
            "broadcasts a mask instead?",
        ),
        Wrong(
            "Nan times zero is zero.",
            "nobody",
            slip(attention, "~mask & some", "~mask", _NOBODY, " * some"),
            "With no key to look at, the division in a softmax is 0/0, nan, and nan "
            "times 0 is nan again. Which call writes a number in its place, in every "
            "such row?",
        ),
        Wrong(
            "Only the output needs mending.",
            "nobody",
            slip(
                attention,
                "~mask & some",
                "~mask",
                _NOBODY,
                "",
                "weights @ v, weights",
                "(weights @ v).nan_to_num(0), weights",
            ),
            "You mend the output, and the weights are nan as before. Which of the two "
            "is made from the other?",
        ),
        Wrong(
            "A row that is not filled needs nothing more.",
            "nobody",
            slip(attention, _NOBODY, ""),
            "Who may look at nobody has the weights of a query without a mask. What "
            "should they be?",
        ),
        Wrong(
            "A very low score is as good as none.",
            "nobody",
            slip(
                attention,
                "~mask & some",
                "~mask",
                _NOBODY,
                "",
                _INFINITY,
                "-1e9",
            ),
            "Where all scores are equally low, none is low. Among whom is the weight "
            "shared now by a query that may look at nobody?",
        ),
        Wrong(
            "Who may look at nobody may not in any sentence.",
            "nobody",
            slip(
                attention,
                _NOBODY,
                ".masked_fill(~(some.all(dim=0) if mask.dim() == 3 else some), 0)",
            ),
            "A query that may look at nobody in one sentence gets zeros in the others "
            "as well. To which sentence does a row of the mask belong?",
        ),
        Wrong(
            "Only the map needs mending.",
            "silence",
            slip(
                attention,
                "~mask & some",
                "~mask",
                _NOBODY,
                "",
                "weights @ v, weights",
                "weights @ v, weights.nan_to_num(0)",
            ),
            "You mend the weights after the output was made. In which order must the "
            "two lines stand?",
        ),
        Wrong(
            "A nan that is written over does no harm.",
            "gradients",
            slip(
                attention,
                _FILLED,
                "    scores = scores + torch.zeros(mask.shape).masked_fill(~mask, "
                'float("-inf"))\n',
            ),
            "The zeros hold off the nan going forward. Through which of your steps "
            "does it come back to the scores?",
        ),
        Wrong(
            "A weight is a finished number.",
            "gradients",
            slip(attention, _NOBODY, f"{_NOBODY}.detach()"),
            "A gradient reaches v, and none reaches q and k. Which line cuts it off?",
        ),
        Wrong(
            "A copy that can learn is as good.",
            "gradients",
            slip(
                attention,
                "    some = ",
                "    q, k, v = (t.detach().requires_grad_() for t in (q, k, v))\n"
                "    some = ",
            ),
            "Gradients reach tensors that you made, not those that came in. Which line "
            "cuts them off?",
        ),
        Wrong(
            "Gradients are somebody else's business.",
            "gradients",
            slip(attention, "weights @ v, weights", "(weights @ v).detach(), weights"),
            "Your output lets no gradient through, not even to v. Which line cuts it "
            "off?",
        ),
        Wrong(
            "-1e9 is a number in every format.",
            "half",
            slip(attention, _INFINITY, "-1e9"),
            "float16 ends at 65 504. Which number below all others does every format "
            "have?",
        ),
        Wrong(
            "What is tiny in float32 is tiny in float16.",
            "half",
            slip(
                attention,
                _NOBODY,
                f"{_NOBODY}\n    weights = weights / (weights.sum(dim=-1, keepdim=True)"
                " + 1e-12)",
            ),
            "In float16 your 1e-12 is 0, and 0/0 is nan. Who has seen to it already "
            "that a row sums to one?",
        ),
    ),
    right=(
        right.attention_fused,
        right.attention_by_package,
        right.attention_with_zeros_over_nan,
        right.attention_by_where,
        right.attention_with_the_lowest_number,
        right.attention_by_query,
        right.attention_in_numpy,
    ),
)


def is_causal(attend, n):
    """Return whether output i depends on token j just where j is not later."""
    x = torch.randn(n, 8)
    before = attend(x)
    moves = torch.zeros(n, n, dtype=torch.bool)
    for j in range(n):
        x_new = x.clone()
        x_new[j] = torch.randn(8)
        same = (attend(x_new) - before).abs() <= 1e-6
        moves[:, j] = ~same.all(dim=-1)
    may_move = torch.ones(n, n, dtype=torch.bool).tril()
    return torch.equal(moves, may_move) and before.isfinite().all()


Head = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Heads:
    """Heads of n tokens to be tested, by what is wrong with them."""

    name: str
    of: Callable[[int], dict[str, Head]]

    def __str__(self) -> str:
        return f"“{self.name}”"


def _head(mask: Tensor, values: Tensor | None = None) -> Head:
    """Return a head for tokens (n, 8) that shares evenly what its mask allows.

    It hands over the tokens, each number times its ``values``: as they are, if None.

    A bare function: its name tells nothing. Its weights are the same for all tokens,
    so an output depends on the tokens that are seen, and on no others.
    """
    values = torch.ones(8) if values is None else values

    def attend(x: Tensor) -> Tensor:
        return mask.softmax(dim=-1).to(x.dtype) @ x * values.to(x.dtype)

    return attend


def _added(allowed: Tensor, below: float = float("-inf")) -> Tensor:
    return torch.zeros(allowed.shape).masked_fill(~allowed, below)


def _all_but(n: int, *pairs: tuple[int, int]) -> Tensor:
    """Return the causal mask, turned over at some pairs."""
    allowed = causal(n, n)
    for query, key in pairs:
        allowed[query, key] = ~allowed[query, key]
    return _added(allowed)


def _one_number(n: int) -> dict[str, Head]:
    number = n - 4
    minus = -torch.eye(8)[number]
    return {f"the past, minus number {number} alone": _head(_all_but(n), minus)}


def _everyone(n: int) -> dict[str, Head]:
    return {"each sees everyone": _head(torch.zeros(n, n))}


def _itself(n: int) -> dict[str, Head]:
    return {"each sees itself alone": _head(_added(torch.eye(n, dtype=torch.bool)))}


def _one_too_few(n: int) -> dict[str, Head]:
    pairs = [(i, j) for i in range(1, n) for j in range(i + 1)]
    return {f"{i} does not see {j}": _head(_all_but(n, (i, j))) for i, j in pairs}


def _one_too_many(n: int) -> dict[str, Head]:
    pairs = [(i, j) for j in range(n) for i in range(j)]
    alone = {f"{i} sees {j}": _head(_all_but(n, (i, j))) for i, j in pairs}
    swapped = {
        f"{i} sees {j} and {j} not {i}": _head(_all_but(n, (i, j), (j, i)))
        for i, j in pairs
    }
    by_query = {
        f"{i} sees {i + 1}, not 0": _head(_all_but(n, (i, i + 1), (i, 0)))
        for i in range(n - 1)
    }
    by_key = {
        f"{j - 1} sees {j}, {n - 1} does not": _head(
            _all_but(n, (j - 1, j), (n - 1, j))
        )
        for j in range(1, n)
    }
    return alone | swapped | by_query | by_key


def _faintly(n: int) -> dict[str, Head]:
    return {"-10 for the future": _head(_added(causal(n, n), below=-10.0))}


def _one_sees_nobody(n: int) -> dict[str, Head]:
    nobody = [[(i, j) for j in range(i + 1)] for i in range(n)]
    return {f"{i} is nan": _head(_all_but(n, *pairs)) for i, pairs in enumerate(nobody)}


def _draw_heads(name: str, heads: Callable[[int], dict[str, Head]]) -> Callable:
    def drawn(draw: Draw) -> Inputs:
        return {"attend": Heads(name, heads), "n": draw.one_of(6, 7, 8)}

    return drawn


def _one_head(draw: Draw) -> Inputs:
    n = draw.one_of(6, 7, 8)
    return {"attend": _head(_all_but(n)), "n": n}


def _approved(function: Callable, inputs: Inputs) -> Any:
    """Observe which heads an answer says yes to; the first tried is as it should be."""
    heads, n = inputs.values()
    names = []
    for name, head in {"the past": _head(_all_but(n)), **heads.of(n)}.items():
        verdict = function(head, n)
        if isinstance(verdict, int | str) and not isinstance(verdict, bool):
            return f"{verdict!r:.20}, of type {type(verdict).__name__}"
        kind = str(getattr(verdict, "dtype", type(verdict).__name__))
        if not kind.endswith("bool") or getattr(verdict, "shape", ()):
            return verdict
        if verdict:
            names.append(name)
    more = [f"{len(names) - 3} more"] if len(names) > 3 else []
    return "; ".join(names[:3] + more) or "none"


def _says_yes_to_the_past_alone(
    name: str, claim: str, question: str, heads: Callable[[int], dict[str, Head]]
) -> Property:
    return Property(
        name,
        claim,
        question,
        draw=_draw_heads(claim.partition(":")[0], heads),
        observe=_approved,
        compared="the heads that your function says yes to",
    )


_COMPARE = "torch.equal(moves, may_move)"
_COUNT = "torch.equal(moves.sum({0}), may_move.sum({0}))"
_VERDICT = f"{_COMPARE} and before.isfinite().all()"
_NO_LEAK = "not (moves & ~may_move).any()"

LEAK = Exercise(
    id="04-leak",
    title="Too much or too little?",
    kind="write",
    level=3,
    minutes=20,
    points=4,
    reference=is_causal,
    draw=_one_head,
    axes={},
    properties=(
        _says_yes_to_the_past_alone(
            "past",
            "each token sees itself and the past, and hands over eight numbers or one: "
            "right",
            "Which outputs must move when token 3 is replaced, and which may not? And "
            "when has an output moved?",
            _one_number,
        ),
        _says_yes_to_the_past_alone(
            "everyone",
            "no mask: shows too much",
            "Without a mask every output moves with every token. Which of them may "
            "not?",
            _everyone,
        ),
        _says_yes_to_the_past_alone(
            "itself",
            "each token sees itself alone: shows too little",
            "Nothing leaks there. Which outputs should move when token 0 is replaced?",
            _itself,
        ),
        _says_yes_to_the_past_alone(
            "hole",
            "one look too few, each in turn: shows too little",
            "One cell of the table is missing. Which tokens do you replace, and which "
            "outputs do you compare?",
            _one_too_few,
        ),
        _says_yes_to_the_past_alone(
            "leak",
            "one look too many, each in turn, alone or in place of a right one: shows "
            "too much",
            "One cell of the whole table leaks. Which tokens do you replace, and "
            "which outputs do you compare?",
            _one_too_many,
        ),
        _says_yes_to_the_past_alone(
            "faint",
            "-10 in place of -∞: a faint leak",
            "How much may an output move that must not move?",
            _faintly,
        ),
        _says_yes_to_the_past_alone(
            "nan",
            "one output is nan, each in turn: wrong",
            "No comparison with nan is true. Does your test ask for the outputs "
            "themselves?",
            _one_sees_nobody,
        ),
    ),
    hints=(
        "Compute the outputs, replace one token, compute them again. Which moved?",
        "Write down in a table, True or False, whether output i moves with token j. "
        "Which table do you want?",
        "Numbers that should be equal may differ in the seventh digit, a leak by more. "
        "Where do you draw the line? And on which side of it is nan?",
    ),
    explanation=(
        "One call as things are and one for each token, 1 + n in all, fill a table: "
        "does output i move with token j? It should be the lower triangle. Above it "
        "nothing may move, below it and on it everything must; either half alone lets "
        "a wrong mask pass. The test knows nothing of masks, so it finds a fault "
        "wherever it comes from, a mean over all tokens for instance. What it misses: "
        "a leak that depends on inputs you did not draw, or on two tokens together, "
        "and one that is smaller than your tolerance. And with dropout at work outputs "
        "move by themselves: call `eval()` first."
    ),
    wrong=(
        Wrong(
            "A token does not depend on itself.",
            "past",
            slip(is_causal, ".tril()", ".tril(-1)"),
            "For a right head your test says no. Write down which outputs moved with "
            "which token, and which should: where do the two differ?",
        ),
        Wrong(
            "What moves grows.",
            "past",
            slip(is_causal, ".abs()", ""),
            "For a right head of which one number in eight moves, up or down, your "
            "test says no. When has an output moved?",
        ),
        Wrong(
            "1 and 0 say it as well.",
            "past",
            slip(is_causal, _VERDICT, f"int({_VERDICT})"),
            "You return a number. What does a comparison such as 1 == 1 return?",
        ),
        Wrong(
            "A word says it as well.",
            "past",
            slip(is_causal, _VERDICT, f'"yes" if {_VERDICT} else "no"'),
            "You return a text. Is it True or False?",
        ),
        Wrong(
            "If all moves that must, the mask is right.",
            "everyone",
            slip(is_causal, _COMPARE, "not (may_move & ~moves).any()"),
            "Everyone sees everyone, and your test says all is well. Which change must "
            "move no output?",
        ),
        Wrong(
            "If nothing moves that must not, the mask is right.",
            "itself",
            slip(is_causal, _COMPARE, _NO_LEAK),
            "A mask that allows hardly a look passes your test. Which change must "
            "move an output?",
        ),
        Wrong(
            "Who sees the one before sees all before.",
            "hole",
            slip(is_causal, _COMPARE, "not (moves ^ may_move).triu(-1).any()"),
            "A token does not see one far before it, and your test says all is well. "
            "Which pairs of tokens does it try?",
        ),
        Wrong(
            "Which token an output belongs to need not be tried.",
            "hole",
            slip(is_causal, _COMPARE, "not (moves ^ may_move).fill_diagonal_(0).any()"),
            "A token does not see itself, and your test says all is well. Which output "
            "must move with token 3, besides the later ones?",
        ),
        Wrong(
            "If the last token sees the first, nothing is missing.",
            "hole",
            slip(is_causal, _COMPARE, f"{_NO_LEAK} and bool(moves[-1, 0])"),
            "Of a table that lacks one look, the corner alone is noticed. Which other "
            "looks are needed?",
        ),
        Wrong(
            "If all see the first token, nothing is missing.",
            "hole",
            slip(is_causal, _COMPARE, f"{_NO_LEAK} and bool(moves[:, 0].all())"),
            "Each token sees the first, and your test asks for no more. Which other "
            "looks are needed?",
        ),
        Wrong(
            "If a token does not see the next one, it sees none after it.",
            "leak",
            slip(is_causal, _COMPARE, "not (moves ^ may_move).tril(1).any()"),
            "A token sees one far behind it, and your test says all is well. Which "
            "outputs do you compare when the last token is replaced?",
        ),
        Wrong(
            "The first and the last query are the ones to watch.",
            "hole",
            slip(is_causal, _COMPARE, "torch.equal(moves[[0, -1]], may_move[[0, -1]])"),
            "A token in the middle misses a look, and your test says all is well. "
            "Which outputs decide?",
        ),
        Wrong(
            "As many looks as there should be are the right ones.",
            "leak",
            slip(is_causal, _COMPARE, "bool(moves.sum() == may_move.sum())"),
            "One look too many and one too few make the right number. Which of them "
            "are the right ones?",
        ),
        Wrong(
            "Each query has as many looks as it should have.",
            "leak",
            slip(is_causal, _COMPARE, _COUNT.format(1)),
            "A query that has lost a look and won another passes your test. Does the "
            "number of its looks say which they are?",
        ),
        Wrong(
            "Each key is seen as often as it should be.",
            "leak",
            slip(is_causal, _COMPARE, _COUNT.format(0)),
            "A key that the wrong queries see passes your test. Does the number of "
            "those who see it say who they are?",
        ),
        Wrong(
            "A move in the fourth digit is noise.",
            "faint",
            slip(is_causal, "1e-6", "0.001"),
            "Put quite another token in, and a faint leak moves the fourth or the "
            "fifth digit; rounding moves the seventh. Where do you draw the line?",
        ),
        Wrong(
            "A nan moves, so it shows.",
            "nan",
            slip(is_causal, " and before.isfinite().all()", ""),
            "The last output is nan, and may move with every token. Does your table "
            "tell that from a number that moves?",
        ),
    ),
    right=(
        right.is_causal_with_ones,
        right.is_causal_with_zeros,
        right.is_causal_by_gradient,
        right.is_causal_by_jacobian,
    ),
)

EXERCISES = (POLARITY, BUG, CAUSAL, PADDING, ATTENTION, LEAK)
