"""Exercises of chapter 09: the block around attention."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from mha_teach import MultiHeadAttention, scaled_dot_product_attention
from mha_teach.exercises import _chapter_09_right as right
from mha_teach.exercises._compare import as_tensor
from mha_teach.exercises.bank import (
    LOST_AXIS,
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


def sizes(batch, n, d_model, h, d_mlp, j):
    """Say what a block holds, and how many outputs move if token j is replaced."""
    return {
        "output": (batch, n, d_model),
        "inside": (batch, n, d_mlp),
        "mlp": d_model * d_mlp + d_mlp + d_mlp * d_model + d_model,
        "norms": 2 * 2 * d_model,
        "free": n,
        "causal": n - j,
        "apart": 1,
    }


def _block_sizes(draw: Draw) -> Inputs:
    batch, h = draw.primes(2, above=2)
    return {
        "batch": batch,
        "n": draw.one_of(16, 18),
        "d_model": h * draw.one_of(8, 9),
        "h": h,
        "d_mlp": draw.one_of(100, 120),
        "j": draw.one_of(4, 6),
    }


PREDICT = Exercise(
    id="09-predict",
    title="What is in a block?",
    kind="predict",
    level=1,
    minutes=5,
    points=2,
    reference=sizes,
    draw=_block_sizes,
    axes={},
    properties=(
        Property(
            "output",
            "the shape of the output",
            "The output goes into the next block. Which shape does that one take?",
            observe=entry("output"),
            axes="batch n d_model",
        ),
        Property(
            "inside",
            "the shape between the two maps of the network",
            "What does the first nn.Linear of the network do to the last axis?",
            observe=entry("inside"),
            axes="batch n d_mlp",
        ),
        Property(
            "mlp",
            "the parameters of the network",
            "Write down two matrices and two biases. How long is each?",
            observe=entry("mlp"),
        ),
        Property(
            "norms",
            "the parameters of the two norms",
            "A norm learns a factor and a shift. For what: a number, a token, a block?",
            observe=entry("norms"),
        ),
        Property(
            "free",
            "how many outputs move without a mask",
            "Who looks at the new token?",
            observe=entry("free"),
        ),
        Property(
            "causal",
            "how many outputs move under a causal mask",
            "List the tokens that may look at token j. Is j one of them?",
            observe=entry("causal"),
        ),
        Property(
            "apart",
            "how many outputs move where each token sees only itself",
            "Which parts of a block let tokens meet?",
            observe=entry("apart"),
        ),
    ),
    hints=(
        "Attention, norms and network all return vectors of width d_model: else they "
        "could not be added to x.",
        "Only attention carries anything from one token to another, and the mask says "
        "to whom.",
        "nn.Linear(a, b) has a · b + b parameters; nn.LayerNorm(d_model) has 2 · "
        "d_model.",
    ),
    explanation=(
        "A block keeps the shape of its input, so that blocks can be stacked. Only "
        "inside the network a token is d_mlp wide. Tokens meet in attention and "
        "nowhere else: without a mask a new token reaches everybody, under a causal "
        "mask itself and all after it. Norm and network never leave the token."
    ),
    wrong=(
        Wrong(
            "The output is as wide as the network.",
            "output",
            slip(sizes, '"output": (batch, n, d_model)', '"output": (batch, n, d_mlp)'),
            "You left out the second map of the network. What does it lead back to?",
        ),
        Wrong(
            "A block makes one vector of the sentence.",
            "output",
            slip(sizes, '"output": (batch, n, d_model)', '"output": (batch, d_model)'),
            "You have one vector for each sentence. What is each token given?",
        ),
        Wrong(
            "The heads are still apart in the network.",
            "inside",
            slip(sizes, "(batch, n, d_mlp)", "(batch, h, n, d_mlp)"),
            "You kept a head axis. Where in attention do the heads become one?",
        ),
        Wrong(
            "The network keeps the width.",
            "inside",
            slip(sizes, "(batch, n, d_mlp)", "(batch, n, d_model)"),
            "That is what goes into the network. How wide is it after the first map?",
        ),
        Wrong(
            "Each token has a network of its own.",
            "mlp",
            slip(
                sizes,
                "d_model * d_mlp + d_mlp + d_mlp * d_model + d_model",
                "n * (2 * d_model * d_mlp + d_mlp + d_model)",
            ),
            "You counted it once for each token. How would the model then read a "
            "longer text?",
        ),
        Wrong(
            "Linear maps have no biases.",
            "mlp",
            slip(
                sizes,
                "d_model * d_mlp + d_mlp + d_mlp * d_model + d_model",
                "2 * d_model * d_mlp",
            ),
            "Those are the two matrices. What else does an nn.Linear hold?",
        ),
        Wrong(
            "The last map of a network has no bias.",
            "mlp",
            slip(sizes, "d_mlp * d_model + d_model,", "d_mlp * d_model,"),
            "You left out the bias of the second map. How many numbers does it return?",
        ),
        Wrong(
            "The first map of a network has no bias.",
            "mlp",
            slip(sizes, "d_model * d_mlp + d_mlp +", "d_model * d_mlp +"),
            "You left out the bias of the first map. How many numbers does it return?",
        ),
        Wrong(
            "A norm learns one factor and one shift.",
            "norms",
            slip(sizes, "2 * 2 * d_model", "2 * 2"),
            "You have one factor and one shift for each norm. For how many numbers of "
            "a token are they learnt?",
        ),
        Wrong(
            "There is one norm in a block.",
            "norms",
            slip(sizes, "2 * 2 * d_model", "2 * d_model"),
            "That is one norm, or two without a shift. How many additions has a block, "
            "and what does a norm learn?",
        ),
        Wrong(
            "A norm learns nothing.",
            "norms",
            slip(sizes, "2 * 2 * d_model", "0"),
            "You count none. What does nn.LayerNorm do after it has divided?",
        ),
        Wrong(
            "A token changes its own output only.",
            "free",
            slip(sizes, '"free": n', '"free": 1'),
            "You moved one output. Whose keys and values have changed?",
        ),
        Wrong(
            "A token moves all outputs but its own.",
            "free",
            slip(sizes, '"free": n', '"free": n - 1'),
            "You left out the token itself. What is its own vector added to?",
        ),
        Wrong(
            "Causal means that later tokens are seen.",
            "causal",
            slip(sizes, '"causal": n - j', '"causal": j + 1'),
            "You moved the outputs up to token j. May token 0 see what comes later?",
        ),
        Wrong(
            "A token does not see itself under a causal mask.",
            "causal",
            slip(sizes, '"causal": n - j', '"causal": n - j - 1'),
            "You moved those after token j. And token j itself?",
        ),
        Wrong(
            "Counting begins at 1.",
            "causal",
            slip(sizes, '"causal": n - j', '"causal": n - j + 1'),
            "One too many: tokens are counted from 0. Which is the first to see j?",
        ),
        Wrong(
            "Norms mix the tokens.",
            "apart",
            slip(sizes, '"apart": 1', '"apart": n'),
            "You let tokens meet in the norm or the network. Over which axis do these "
            "work?",
        ),
        Wrong(
            "Without attention nothing moves.",
            "apart",
            slip(sizes, '"apart": 1', '"apart": 0'),
            "You moved nothing. Which way past attention does a token's vector have?",
        ),
    ),
    right=(right.sizes_by_running, right.sizes_as_lists, right.sizes_as_tensors),
)


def finish(x, attended, w_in, b_in, w_out, b_out):
    """Take what attention brings through the rest of a block."""
    y = F.layer_norm(x + attended, x.shape[-1:])
    added = F.gelu(y @ w_in + b_in) @ w_out + b_out
    return F.layer_norm(y + added, x.shape[-1:])


def _half_a_block(draw: Draw) -> Inputs:
    batch, n = draw.primes(2, above=2)
    d_model, d_mlp = draw.one_of(12, 16), draw.one_of(20, 24)
    return {
        "x": 2 * draw.normal(batch, n, d_model),
        "attended": draw.normal(batch, n, d_model),
        "w_in": draw.normal(d_model, d_mlp) / d_model**0.5,
        "b_in": draw.normal(d_mlp),
        "w_out": 2 * draw.normal(d_mlp, d_model) / d_mlp**0.5,
        "b_out": draw.normal(d_model),
    }


def _silent_network(draw: Draw) -> Inputs:
    inputs = _half_a_block(draw)
    inputs["w_out"].zero_()
    inputs["b_out"].zero_()
    return inputs


def _silent_attention(draw: Draw) -> Inputs:
    inputs = _half_a_block(draw)
    inputs["attended"].zero_()
    return inputs


def _one_token(draw: Draw) -> Inputs:
    inputs = _half_a_block(draw)
    return inputs | {name: inputs[name][:1, :1] for name in ("x", "attended")}


def mean_and_spread(function, inputs):
    """Observe the mean and the spread of each output vector."""
    result = call(function, inputs)
    if not isinstance(result, Tensor):
        result = torch.as_tensor(result)
    return torch.stack([result.mean(-1), result.std(-1, correction=0)], dim=-1)


_FIRST = "F.layer_norm(x + attended, x.shape[-1:])"
_LAST = "F.layer_norm(y + added, x.shape[-1:])"

BUG = Exercise(
    id="09-bug",
    title="The wrong stream",
    kind="find the bug",
    level=2,
    minutes=10,
    points=2,
    reference=finish,
    draw=_half_a_block,
    axes={
        "x": "batch n d_model",
        "attended": "batch n d_model",
        "w_in": "d_model d_mlp",
        "b_in": "d_mlp",
        "w_out": "d_mlp d_model",
        "b_out": "d_model",
        "returns": "batch n d_model",
    },
    properties=(
        Property(
            "shape",
            "one vector of width d_model for each token",
            "Which line changes the number of axes or the width?",
            observe=shape,
        ),
        Property(
            "silent network",
            "the network adds nothing: the norm of x + attended is left",
            "The network adds nothing here. Is your y the norm of x + attended, and is "
            "anything added to it after all?",
            draw=_silent_network,
        ),
        Property(
            "size",
            "every vector that leaves has mean 0 and spread 1",
            "What is the last thing that a block does, and over which axis?",
            observe=mean_and_spread,
            axes="batch n number",
            compared="the mean (number 0) and the spread (number 1) of each vector",
        ),
        Property(
            "silent attention",
            "attention brings nothing: the norm of x goes through the network",
            "Attention is out of the way: y should be the norm of x, token by token. "
            "What does the network read, what bends it, and to what is it added?",
            draw=_silent_attention,
        ),
        Property(
            "output",
            "the whole second half of a block",
            "Each step is right by itself. What of x reaches the network, and by "
            "which way?",
        ),
        Property(
            "single",
            "one sentence of one token: all three axes stay",
            LOST_AXIS,
            on_error=LOST_AXIS,
            draw=_one_token,
        ),
    ),
    hints=(
        "Set w_out and b_out to zero: then the network adds nothing. What should be "
        "left of x and attended, and what is?",
        "Follow attended from line to line. By how many ways does it reach the output?",
        "There is one stream. Each step adds to what the step before has left there.",
    ),
    explanation=(
        "The second addition took up x, the input of the block, and not y, the stream "
        "after attention. What attention had brought reached the output through the "
        "network alone; the direct way was cut. Shapes cannot tell and training goes "
        "on. A network that adds nothing shows it at once. The same slip stood in "
        "public code: strutive07/transformer-tensorflow2.0, issue 14."
    ),
    wrong=(
        Wrong(
            "The network replaces the stream.",
            "silent network",
            slip(finish, _LAST, "F.layer_norm(added, x.shape[-1:])"),
            "A network that adds nothing leaves you nothing. What should be left?",
        ),
        Wrong(
            "Attention replaces the stream.",
            "silent network",
            slip(finish, _FIRST, "F.layer_norm(attended, x.shape[-1:])"),
            "Only what attention brings is left. What did the token come with?",
        ),
        Wrong(
            "What came first should be added again at the end.",
            "silent network",
            slip(finish, "y + added", "x + y + added"),
            "Now x comes twice, as it was and within y. Is there a second stream?",
        ),
        Wrong(
            "The network adds to what attention brought.",
            "silent network",
            slip(finish, "y + added", "attended + added"),
            "You add to attended alone. Where is the token itself?",
        ),
        Wrong(
            "A norm makes all tokens alike in size.",
            "silent network",
            slip(finish, _FIRST, "F.layer_norm((x + attended).mT, x.shape[1:2]).mT"),
            "Your first norm compares tokens. Over which axis lie the numbers of one "
            "token?",
        ),
        Wrong(
            "One norm is enough, before the network.",
            "size",
            slip(finish, _LAST, "y + added"),
            "What leaves your block grows with each step. What follows an addition?",
        ),
        Wrong(
            "One norm is enough, at the end.",
            "silent attention",
            slip(finish, _FIRST, "x + attended"),
            "Your network reads a stream that was not normalised. What follows the "
            "first addition?",
        ),
        Wrong(
            "The first map needs no bias.",
            "silent attention",
            slip(finish, "y @ w_in + b_in", "y @ w_in"),
            "The network has lost a bias on the way in. What is added before the bend?",
        ),
        Wrong(
            "The second map needs no bias.",
            "silent attention",
            slip(finish, "@ w_out + b_out", "@ w_out"),
            "The network has lost a bias on the way out. What is added after w_out?",
        ),
        Wrong(
            "One bend is as good as another.",
            "silent attention",
            slip(finish, "F.gelu", "F.relu"),
            "Your network bends by ReLU. Which function did the code as given use?",
        ),
        Wrong(
            "The norm only prepares the input of the network.",
            "silent attention",
            slip(finish, "y + added", "x + attended + added"),
            "You keep the stream as it was before the norm. In equation (1) of the "
            "chapter, what is the network's part added to?",
        ),
        Wrong(
            "The network reads what came in.",
            "output",
            slip(finish, "F.gelu(y @", "F.gelu(F.layer_norm(x, x.shape[-1:]) @"),
            "Your network never sees what attention brought. Which of the two is "
            "later in the stream?",
        ),
        Wrong(
            "Axes of size 1 are of no use.",
            "single",
            slip(finish, _LAST, f"{_LAST}.squeeze()"),
            "Your result has lost its axes of size 1. How is the next block to know "
            "which axis is which?",
        ),
    ),
    right=(right.finish_by_layer, right.finish_by_hand, right.finish_in_numpy),
    given=slip(finish, "y + added", "x + added"),
)


def block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    """Compute a block with one head: two additions, each followed by a norm."""
    attended, _ = scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)
    y = F.layer_norm(x + attended @ w_o, x.shape[-1:])
    return F.layer_norm(y + (y @ w_in).relu() @ w_out, x.shape[-1:])


def _whole_block(draw: Draw) -> Inputs:
    return _block_of(draw, *draw.primes(4, above=2))


def _one_token_alone(draw: Draw) -> Inputs:
    return _block_of(draw, batch=1, n=1, d_k=1, d_v=1)


def _block_of(draw: Draw, batch: int, n: int, d_k: int, d_v: int) -> Inputs:
    d_model, d_mlp = draw.one_of(16, 18), draw.one_of(20, 24)
    return {
        "x": 2 * draw.normal(batch, n, d_model),
        "mask": torch.ones(n, n, dtype=torch.bool).tril(),
        "w_q": draw.normal(d_model, d_k) / d_model**0.5,
        "w_k": draw.normal(d_model, d_k) / d_model**0.5,
        "w_v": draw.normal(d_model, d_v) / d_model**0.5,
        "w_o": 2 * draw.normal(d_v, d_model) / d_v**0.5,
        "w_in": draw.normal(d_model, d_mlp) / d_model**0.5,
        "w_out": 2 * draw.normal(d_mlp, d_model) / d_mlp**0.5,
    }


def _adds_nothing(draw: Draw) -> Inputs:
    inputs = _whole_block(draw)
    inputs["w_o"].zero_()
    inputs["w_out"].zero_()
    return inputs


def _network_alone(draw: Draw) -> Inputs:
    inputs = _whole_block(draw)
    inputs["w_o"].zero_()
    return inputs


def _everyone_sees_everyone(draw: Draw) -> Inputs:
    inputs = _whole_block(draw)
    inputs["mask"].fill_(True)
    return inputs


def _attention_alone(draw: Draw) -> Inputs:
    inputs = _everyone_sees_everyone(draw)
    inputs["w_out"].zero_()
    return inputs


def _some_see_some(draw: Draw) -> Inputs:
    """Let each token see itself, and others by chance; the first sees the last."""
    inputs = _whole_block(draw)
    mask = draw.normal(*inputs["mask"].shape) > 0
    mask[0, -1], mask[-1, 0] = True, False
    inputs["mask"] = mask.fill_diagonal_(True)
    return inputs


def _normed_before(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
    y = F.layer_norm(x, x.shape[-1:])
    attended, _ = scaled_dot_product_attention(y @ w_q, y @ w_k, y @ w_v, mask)
    x = x + attended @ w_o
    return x + (F.layer_norm(x, x.shape[-1:]) @ w_in).relu() @ w_out


def _weighed_by(weigh: Callable[[Tensor, Tensor], Tensor]) -> Callable:
    """Return a block that makes its weights of scores and mask by itself."""

    def block(x, mask, w_q, w_k, w_v, w_o, w_in, w_out):
        scores = (x @ w_q) @ (x @ w_k).mT / w_q.shape[-1] ** 0.5
        y = F.layer_norm(x + weigh(scores, mask) @ (x @ w_v) @ w_o, x.shape[-1:])
        return F.layer_norm(y + (y @ w_in).relu() @ w_out, x.shape[-1:])

    return block


_ADD_1, _ADD_2 = "x + attended @ w_o", "y + (y @ w_in).relu() @ w_out"
_NORM_1 = f"F.layer_norm({_ADD_1}, x.shape[-1:])"
_NORM_2 = f"F.layer_norm({_ADD_2}, x.shape[-1:])"
_MASK = "x @ w_v, mask)"
_NORM_X = "F.layer_norm(x, x.shape[-1:])"

BLOCK = Exercise(
    id="09-block",
    title="A block from six matrices",
    kind="write",
    level=2,
    minutes=15,
    points=4,
    reference=block,
    draw=_whole_block,
    axes={
        "x": "batch n d_model",
        "mask": "n n",
        "w_q": "d_model d_k",
        "w_k": "d_model d_k",
        "w_v": "d_model d_v",
        "w_o": "d_v d_model",
        "w_in": "d_model d_mlp",
        "w_out": "d_mlp d_model",
        "returns": "batch n d_model",
    },
    properties=(
        Property(
            "shape",
            "one vector of width d_model for each token",
            "What can be added to x? Write the shape after each line.",
            observe=shape,
        ),
        Property(
            "nothing added",
            "W^O and w_out are zero: the norm of x is left",
            "Both steps should add nothing here. Do yours? And what is the norm of "
            "what is left?",
            draw=_adds_nothing,
        ),
        Property(
            "network",
            "W^O is zero: the norm of x goes through the network",
            "Attention is out of the way. Products, relu, sum, norm: which of your "
            "steps is not that of the second formula?",
            draw=_network_alone,
        ),
        Property(
            "attention",
            "w_out is zero, and everyone may look at everyone",
            "The network is out of the way, and the mask is True throughout. Scores, "
            "scale, mask, weights, W^O, the first sum, the second: which of them is "
            "not that of the formulas?",
            draw=_attention_alone,
        ),
        Property(
            "together",
            "attention and network at work, and everyone may look at everyone",
            "Each half is right by itself. What of attention's part reaches the "
            "network, and what is the network's part added to?",
            draw=_everyone_sees_everyone,
        ),
        Property(
            "causal",
            "the whole block under a causal mask",
            "Where all may look at all, your block is right. Which of your steps does "
            "the mask reach, and how much weight is left on a forbidden key?",
        ),
        Property(
            "any mask",
            "a mask of no particular form; each token may look at itself",
            "A causal mask is right, others are not. Does each entry of the mask "
            "decide about one query and one key?",
            draw=_some_see_some,
        ),
        Property(
            "single",
            "one sentence of one token, d_k = d_v = 1: all three axes stay",
            LOST_AXIS,
            on_error=LOST_AXIS,
            draw=_one_token_alone,
        ),
    ),
    hints=(
        "Let W^O and w_out be zero: what should be left of x, and what is? Then let "
        "one of the two work.",
        "Name the stream after attention y. The network reads y, and adds to y.",
        "scaled_dot_product_attention(q, k, v, mask) returns output and weights; the "
        "last axes of q, k and v are tokens and their numbers. F.layer_norm(t, "
        "t.shape[-1:]) normalises the numbers of each token.",
    ),
    explanation=(
        "Two additions to one stream, a norm after each. What attention brings has to "
        "be d_model wide again before it can be added: that is what W^O is for. The "
        "mask concerns attention alone."
    ),
    wrong=(
        Wrong(
            "Attention replaces the stream.",
            "nothing added",
            slip(block, _ADD_1, "attended @ w_o"),
            "Attention adds nothing here, and the tokens are gone. Where do they pass?",
        ),
        Wrong(
            "The network replaces the stream.",
            "nothing added",
            slip(block, _ADD_2, "(y @ w_in).relu() @ w_out"),
            "The network adds nothing here, and the tokens are gone. What is its "
            "result added to?",
        ),
        Wrong(
            "The norm stands before attention and before the network.",
            "nothing added",
            _normed_before,
            "The stream leaves as it came, never normalised. Where do the formulas "
            "have their norms?",
        ),
        Wrong(
            "masked_fill takes the mask as it is.",
            "nothing added",
            _weighed_by(lambda s, mask: s.masked_fill(mask, float("-inf")).softmax(-1)),
            "You forbid where the mask is True. The last token may look at nobody "
            "then, and that is nan. What does True mean in a mask of this book?",
        ),
        Wrong(
            "A norm compares tokens.",
            "nothing added",
            slip(
                block,
                _NORM_1,
                "F.layer_norm((x + attended @ w_o).mT, x.shape[1:2]).mT",
            ),
            "You normalise over the tokens. Along which axis lie the numbers of one "
            "token?",
        ),
        Wrong(
            "A norm takes the whole sentence at once.",
            "nothing added",
            slip(
                block,
                _NORM_1,
                f"F.layer_norm({_ADD_1}, x.shape[1:])",
                _NORM_2,
                f"F.layer_norm({_ADD_2}, x.shape[1:])",
            ),
            "You normalise a whole sentence. Whose mean does a layer norm subtract?",
        ),
        Wrong(
            "The first norm may take the whole sentence: a second one follows.",
            "network",
            slip(block, _NORM_1, f"F.layer_norm({_ADD_1}, x.shape[1:])"),
            "Your first norm takes a whole sentence. Whose mean does a layer norm "
            "subtract?",
        ),
        Wrong(
            "The network reads what came into the block.",
            "network",
            slip(block, "(y @ w_in)", "(x @ w_in)"),
            "Your network reads the tokens as they came in. What does it read in the "
            "second formula?",
        ),
        Wrong(
            "Any bend will do.",
            "network",
            slip(block, "(y @ w_in).relu()", "F.gelu(y @ w_in)"),
            "Your bend is GELU. Which one does the second formula name?",
        ),
        Wrong(
            "One norm is enough, at the end.",
            "network",
            slip(block, _NORM_1, _ADD_1),
            "Your network reads a stream that was not normalised. What follows the "
            "first addition?",
        ),
        Wrong(
            "One norm is enough, after attention.",
            "network",
            slip(block, _NORM_2, _ADD_2),
            "What leaves your block is not normalised. What follows the second "
            "addition?",
        ),
        Wrong(
            "The network adds to the input of the block.",
            "network",
            slip(block, _ADD_2, "x + (y @ w_in).relu() @ w_out"),
            "Attention brings nothing here, and you add the network's part to x "
            "itself. What has the stream become in between?",
        ),
        Wrong(
            "The norm only prepares the input of the network.",
            "network",
            slip(block, _ADD_2, "x + attended @ w_o + (y @ w_in).relu() @ w_out"),
            "You add to the stream as it was before the first norm. What is the "
            "network's part added to in the second formula?",
        ),
        Wrong(
            "Two linear maps in a row make a network.",
            "network",
            slip(block, "(y @ w_in).relu()", "(y @ w_in)"),
            "Two products in a row are one product. Where is the bend?",
        ),
        Wrong(
            "The bend comes last.",
            "network",
            slip(block, "(y @ w_in).relu() @ w_out", "(y @ w_in @ w_out).relu()"),
            "Your network can only add, never subtract. Between which two products "
            "does the bend stand?",
        ),
        Wrong(
            "Attention only says where to look.",
            "attention",
            slip(block, _NORM_1, _NORM_X),
            "Nothing of what attention brought is left. Was it added, and is it kept?",
        ),
        Wrong(
            "The second sum starts from the tokens as well.",
            "attention",
            slip(block, _ADD_2, f"{_NORM_X} + (y @ w_in).relu() @ w_out"),
            "Where the network adds nothing, nothing of attention is left either. "
            "Which of the two sums loses it?",
        ),
        Wrong(
            "Each addition takes up all that came before.",
            "attention",
            slip(block, _ADD_2, f"y + attended @ w_o + {_ADD_2.removeprefix('y + ')}"),
            "What attention brought is added twice. In which of the two formulas does "
            "it stand?",
        ),
        Wrong(
            "Keys may ask.",
            "attention",
            slip(block, "x @ w_q, x @ w_k", "x @ w_k, x @ w_q"),
            "Your rows belong to the keys. Which of the two vectors asks?",
        ),
        Wrong(
            "Scaling is a detail of training.",
            "attention",
            slip(block, _MASK, "x @ w_v, mask, scale=1.0)"),
            "Your scores are √d_k times too large. What are dot products divided by?",
        ),
        Wrong(
            "Scores are divided by the root of the width of a token.",
            "attention",
            slip(block, _MASK, "x @ w_v, mask, scale=x.shape[-1] ** -0.5)"),
            "You divide the scores by the root of d_model. How many products does one "
            "of your dot products add up?",
        ),
        Wrong(
            "Attention reads what was already normalised.",
            "attention",
            slip(
                block,
                "x @ w_q, x @ w_k, x @ w_v",
                "*(F.layer_norm(x, x.shape[-1:]) @ w for w in (w_q, w_k, w_v))",
            ),
            "You normalise once more, on the way in. Who did that already?",
        ),
        Wrong(
            "A block needs no mask.",
            "causal",
            slip(block, _MASK, "x @ w_v)"),
            "Your tokens see the future. Where does the mask come in, and what becomes "
            "of it?",
        ),
        Wrong(
            "True means forbidden.",
            "attention",
            slip(block, _MASK, "x @ w_v, ~mask)"),
            "All may look at all here, and nothing of attention is left. What does "
            "True mean in a mask of this book?",
        ),
        Wrong(
            "masked_fill takes the mask as it is, and -1e9 will do.",
            "attention",
            _weighed_by(lambda s, mask: s.masked_fill(mask, -1e9).softmax(-1)),
            "Your weights are even, and every entry of the mask is True here. What "
            "becomes of a score where it is True, and what does True mean in a mask of "
            "this book?",
        ),
        Wrong(
            "A score of zero is no look.",
            "causal",
            _weighed_by(lambda s, mask: (s * mask).softmax(-1)),
            "Your forbidden scores are 0, and that is a score like any other. What is "
            "e to the power of 0?",
        ),
        Wrong(
            "A mask is added to the scores as it is.",
            "causal",
            _weighed_by(lambda s, mask: (s + mask).softmax(-1)),
            "You add 1 where a look is allowed and 0 where it is not. What would have "
            "to be added where it is not?",
        ),
        Wrong(
            "Forbidden weights can be set to zero after the softmax.",
            "causal",
            _weighed_by(lambda s, mask: s.softmax(-1) * mask),
            "The forbidden weights are gone, and nobody got them. Where must the mask "
            "act, so that the others share the whole?",
        ),
        Wrong(
            "-10 is far below any score.",
            "causal",
            _weighed_by(lambda s, mask: s.masked_fill(~mask, -10.0).softmax(-1)),
            "Your forbidden scores are -10, and some that are allowed are not much "
            "higher. Which number is below every score?",
        ),
        Wrong(
            "The mask hides the tokens themselves.",
            "causal",
            slip(block, _MASK, "x @ w_v, mask.mT)"),
            "Your mask is transposed: token 0 sees all. Are its rows queries or keys?",
        ),
        Wrong(
            "The network reads the tokens.",
            "together",
            slip(block, "(y @ w_in)", f"({_NORM_X} @ w_in)"),
            "Your network never sees what attention brought. Which of the two is later "
            "in the stream?",
        ),
        Wrong(
            "A block is causal.",
            "attention",
            slip(block, _MASK, "x @ w_v, torch.ones_like(mask).tril())"),
            "All may look at all here, and your tokens look at none after them. Which "
            "argument says who may look at whom?",
        ),
        Wrong(
            "A mask is causal or it is none.",
            "any mask",
            slip(
                block,
                _MASK,
                "x @ w_v, mask if mask.all() else torch.ones_like(mask).tril())",
            ),
            "Your tokens look at all before them and at none after, as under a causal "
            "mask. Where does your code read this one, entry by entry?",
        ),
        Wrong(
            "A row of the mask says how many keys are seen.",
            "any mask",
            slip(
                block,
                _MASK,
                "x @ w_v, torch.arange(len(mask)) < mask.sum(1, keepdim=True))",
            ),
            "Your tokens look at the first few, as many as the mask allows. Which ones "
            "does it name?",
        ),
        Wrong(
            "Axes of size 1 are of no use.",
            "single",
            slip(block, _NORM_2, f"{_NORM_2}.squeeze()"),
            "Your result has lost its axes of size 1. How is the next block to know "
            "which axis is which?",
        ),
    ),
    right=(
        right.block_by_hand,
        right.block_with_the_norm_of_the_chapter,
        right.block_fused,
        right.block_in_numpy,
    ),
)


def stacks(n, d_model, h, depth):
    """Count tokens that differ, in stacks of random attentions."""
    x, places = torch.randn(2, n, d_model)
    attentions = [MultiHeadAttention(d_model, h) for _ in range(depth)]

    def through(x, attentions, kept):
        for attention in attentions:
            x = F.layer_norm(kept * x + attention(x), (d_model,))
        return x

    def differing(a, b):
        return ((a - b).abs().amax(dim=-1) > 1e-3).sum().item()

    once, alone = through(x, attentions[:1], 0), through(x, attentions, 0)
    added, turned = through(x, attentions, 1), through(x.flip(0), attentions, 1)
    placed, moved = (through(t + places, attentions, 1) for t in (x, x.flip(0)))
    return {
        "once": differing(once, once[0]),
        "alone": differing(alone, alone[0]),
        "added": differing(added, added[0]),
        "words": differing(turned.flip(0), added),
        "places": differing(moved.flip(0), placed),
        "why": "Attention averages, so without the addition a token keeps nothing of "
        "its own, and averages of averages are all alike. A sum has no order, however "
        "deep the stack: order must be in the vectors.",
    }


def rows_or_numbers(function, inputs):
    """Observe how many rows differ after one attention.

    How many numbers differ is never twice the same: any count that is too large for
    rows is observed as all the numbers of all the rows that may differ.
    """
    value = entry("once")(function, inputs)
    n, d_model = inputs["n"], inputs["d_model"]
    try:
        count = as_tensor(value).item()
    except (TypeError, ValueError, RuntimeError):  # not one number
        return value
    return (n - 1) * d_model if n < count <= (n - 1) * d_model else value


def _stack(draw: Draw) -> Inputs:
    h = draw.one_of(3, 5)
    return {
        "n": draw.one_of(7, 11),
        "d_model": h * draw.one_of(6, 8),
        "h": h,
        "depth": draw.one_of(8, 10),
    }


DEPTH = Exercise(
    id="09-depth",
    title="What is left of the tokens?",
    kind="measure",
    level=3,
    minutes=20,
    points=4,
    reference=stacks,
    draw=_stack,
    axes={},
    decisive=("n",),
    properties=(
        Property(
            "once",
            "tokens that differ from the first after one attention",
            "Are two tokens the same after one attention? Print two rows.",
            observe=rows_or_numbers,
        ),
        Property(
            "alone",
            "tokens that differ from the first after all of them",
            "Each output is a mean of values. How far apart can means of means be?",
            observe=entry("alone"),
        ),
        Property(
            "added",
            "tokens that differ from the first when each attention is added",
            "What does a token keep of itself if x is added?",
            observe=entry("added"),
        ),
        Property(
            "words",
            "outputs that change when the tokens stand in reverse",
            "Did you put the outputs back in order before you compared?",
            observe=entry("words"),
        ),
        Property(
            "places",
            "outputs that change in reverse, with positions",
            "Positions stay where they are while tokens turn. Which token meets the "
            "same vectors as before?",
            observe=entry("places"),
        ),
        reason(
            "What does an average do to what it averages, and what does it not see? "
            "The worked solution has one answer; compare.",
        ),
    ),
    hints=(
        "Print two rows of the output after one attention, and again after the last. "
        "How far are they apart?",
        "Turn the tokens round, and the outputs back before you compare: a row belongs "
        "to a token, not to a place.",
        "x = F.layer_norm(attention(x), (d_model,)) in a loop over the attentions; "
        "then the same with x + attention(x). ((a - b).abs().amax(dim=-1) > "
        "0.001).sum() counts rows that differ; a single row b is compared with all.",
    ),
    explanation=(
        "Fresh attentions look almost evenly, so each makes the tokens much more "
        "alike. The norm cannot help: it makes each token as long as the others. "
        "The trained ones of the chapter need four blocks for it. Pure attention loses "
        "rank with depth: Dong et al. (2021), Attention is Not All You Need."
    ),
    wrong=(
        Wrong(
            "One average makes all tokens alike.",
            "once",
            slip(stacks, '"once": differing(once, once[0])', '"once": 0'),
            "You say that none differ. Do all tokens give the same weights?",
        ),
        Wrong(
            "The first token differs from itself.",
            "once",
            slip(stacks, '"once": differing(once, once[0])', '"once": n'),
            "You count all of them. With which one did you compare?",
        ),
        Wrong(
            "Different tokens stay different.",
            "alone",
            slip(stacks, '"alone": differing(alone, alone[0])', '"alone": n - 1'),
            "That is the count after one attention. What has become of it after the "
            "last?",
        ),
        Wrong(
            "Numbers that differ are counted.",
            "once",
            slip(stacks, ".amax(dim=-1) > 1e-3", " > 1e-3"),
            "You count numbers. How many tokens are there?",
        ),
        Wrong(
            "Adding does not help.",
            "added",
            slip(stacks, '"added": differing(added, added[0])', '"added": 0'),
            "You say that all are alike. What is a token's own vector added to?",
        ),
        Wrong(
            "The first token counts with the others.",
            "added",
            slip(stacks, '"added": differing(added, added[0])', '"added": n'),
            "You count one too many. Does the first token differ from itself?",
        ),
        Wrong(
            "Depth brings order.",
            "words",
            slip(stacks, '"words": differing(turned.flip(0), added)', '"words": n'),
            "You say that every output changed. Does any step of a block know a place?",
        ),
        Wrong(
            "Outputs are compared where they stand.",
            "words",
            slip(
                stacks, '"words": differing(turned.flip(0)', '"words": differing(turned'
            ),
            "You compared different tokens. Which row belongs to which token after "
            "the flip?",
        ),
        Wrong(
            "Positions do not matter to attention.",
            "places",
            slip(stacks, '"places": differing(moved.flip(0), placed)', '"places": 0'),
            "You say that none changed. What is added to a token at another place?",
        ),
        Wrong(
            "The token in the middle stays as it was.",
            "places",
            slip(
                stacks, '"places": differing(moved.flip(0), placed)', '"places": n - 1'
            ),
            "You spared the token in the middle. Whom does it look at now?",
        ),
        Wrong(
            "Numbers speak for themselves.",
            "why",
            slip(stacks, '"why": "A', '"why": "Means." or "A'),
            "The numbers are right. What would you tell someone who stacks attention "
            "alone?",
        ),
    ),
    right=(right.stacks_by_counting, right.stacks_fused, right.stacks_as_tensors),
)

EXERCISES = (PREDICT, BUG, BLOCK, DEPTH)
