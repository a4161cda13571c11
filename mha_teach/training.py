"""Train a small model while the reader waits.

After this file you can say what one training step is, and train a layer of
attention on a task in a few seconds: ``LookupModel`` is the model, ``train`` the loop.
"""

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.nn import functional as F

from mha_teach.attention import MultiHeadAttention
from mha_teach.costs import require_at_least
from mha_teach.masks import require_floating, require_values
from mha_teach.tasks import require_generator, require_integers

T = TypeVar("T")

SECONDS_BETWEEN_UPDATES = 0.2


class LookupModel(nn.Module):
    r"""One layer of attention in which the last token asks, and a linear readout.

    $$ \mathrm{logits} = W \operatorname{MultiHead}(x_n,\; x,\; x) + b $$

    No residual connection, no MLP: whatever reaches the answer came through a head.
    The projections have no biases, as in the paper.

    Parameters
    ----------
    num_heads, d_k, d_v, d_model
        Sizes of the attention, as in ``MultiHeadAttention``.
    num_answers
        Number of answers to one question.
    num_symbols
        Number of symbols that an answer chooses from.

    Examples
    --------
    >>> model = LookupModel(num_heads=2, d_k=8)
    >>> tuple(model(torch.randn(3, 17, 64)).shape)
    (3, 2, 16)
    """

    def __init__(
        self,
        num_heads: int,
        d_k: int,
        *,
        d_v: int = 16,
        d_model: int = 64,
        num_answers: int = 2,
        num_symbols: int = 16,
    ):
        super().__init__()
        require_at_least(1, num_answers=num_answers, num_symbols=num_symbols)
        self.num_answers = num_answers
        # A bias of the keys shifts all scores of a query alike. Softmax ignores it,
        # so Adam would fill it with magnified rounding errors.
        self.attention = MultiHeadAttention(
            d_model, num_heads, d_k=d_k, d_v=d_v, bias=False
        )
        self.readout = nn.Linear(d_model, num_answers * num_symbols)

    def forward(
        self, x: Float[Tensor, "*batch n d_model"]
    ) -> Float[Tensor, "*batch answer symbol"]:
        """Return the logits of each answer: (batch, num_answers, num_symbols)."""
        asked = self.attention(x[..., -1:, :], x).squeeze(-2)
        return self.readout(asked).unflatten(-1, (self.num_answers, -1))


class TrainingRun(NamedTuple):
    """What ``train`` reports: the loss of each finished step, and whether it was cut.

    ``interrupted`` is True if the reader stopped the run. The model then keeps what it
    had learned.
    """

    losses: list[float]
    interrupted: bool


def train(
    model: nn.Module,
    batch_loss: Callable[[nn.Module, torch.Generator], Tensor],
    *,
    steps: int,
    generator: torch.Generator,
    learning_rate: float = 6e-3,
) -> TrainingRun:
    """Train ``model`` in place with Adam; an interrupt keeps what was reached.

    The learning rate climbs for a tenth of the steps, at least for one, and then falls
    towards zero (``OneCycleLR``). The first momentum of Adam goes the other way, from
    0.95 to 0.85 and back. Torch keeps to one thread meanwhile. On one machine, the same
    weights and generator give the same run, unless the model draws from another
    generator, as dropout does.

    Parameters
    ----------
    model
        Trained in place.
    batch_loss
        Draws a batch from the generator and returns the loss on it, a scalar tensor.
    steps
        Number of batches.
    generator
        Handed to ``batch_loss``.
    learning_rate
        The highest that is reached.

    Returns
    -------
    TrainingRun
        ``losses``, one a finished step, and ``interrupted``.

    Raises
    ------
    TypeError
        If an argument, or what ``batch_loss`` returns, is of another type.
    ValueError
        If ``steps`` or ``learning_rate`` is not positive, the model has no parameter,
        or the loss no gradient.

    Examples
    --------
    >>> model = LookupModel(num_heads=1, d_k=2, d_model=5, num_symbols=3)
    >>> def batch_loss(model, generator):
    ...     x = torch.randn(7, 4, 5, generator=generator)
    ...     return answer_loss(model(x), torch.zeros(7, 2, dtype=torch.long))
    >>> generator = torch.Generator().manual_seed(0)
    >>> run = train(model, batch_loss, steps=30, generator=generator)
    >>> len(run.losses), run.losses[-1] < run.losses[0]
    (30, True)
    """
    require_at_least(1, steps=steps)
    require_generator(generator)
    _require_trainable(model, batch_loss, learning_rate)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    # Up and down takes three steps; a shorter run is the beginning of that.
    planned = max(steps, 3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, learning_rate, total_steps=planned, pct_start=max(0.1, 2 / planned)
    )
    losses: list[float] = []
    try:
        with _one_thread():
            for _ in progress(range(steps), "training, step"):
                loss = batch_loss(model, generator)
                _require_loss(loss)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
    except KeyboardInterrupt:
        return TrainingRun(losses, interrupted=True)
    return TrainingRun(losses, interrupted=False)


def _require_trainable(
    model: nn.Module, batch_loss: Callable, learning_rate: float
) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be an nn.Module, got {type(model).__name__}")
    if not list(model.parameters()):
        kind = type(model).__name__
        raise ValueError(f"model={kind} has no parameters; pass one that can learn")
    if not callable(batch_loss):
        raise TypeError(
            f"batch_loss must be a function of model and generator, got {batch_loss!r}"
        )
    if isinstance(learning_rate, bool) or not isinstance(learning_rate, int | float):
        raise TypeError(f"learning_rate must be a number, got {learning_rate!r}")
    if not 0 < learning_rate < math.inf:
        raise ValueError(
            f"learning_rate={learning_rate} is out of range; use a number above 0"
        )


def _require_loss(loss: Tensor) -> None:
    if not isinstance(loss, Tensor):
        raise TypeError(f"batch_loss must return a scalar tensor, got {loss!r}")
    if loss.numel() != 1:
        raise ValueError(
            f"batch_loss returned shape {tuple(loss.shape)}; return a scalar, such as "
            "its mean()"
        )
    if not loss.requires_grad:
        raise ValueError(
            f"batch_loss returned {loss.item():.3g} without a gradient; compute it "
            "from what the model returns, outside torch.no_grad()"
        )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch on one thread: small steps are over before a second one helps.

    On a busy machine, threads that wait for each other made them 30 times slower.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def answer_loss(
    logits: Float[Tensor, "batch answer symbol"],
    answer: Integer[Tensor, "batch answer"],
) -> Float[Tensor, ""]:
    """Return the cross-entropy in nats, the mean over all answers of all questions.

    Raises
    ------
    TypeError
        If the logits are not floating point, or the answers no integers.
    ValueError
        If the logits do not have three axes, or there is not one answer for each of
        their questions and answers.
    """
    _require_one_each(logits, answer)
    return F.cross_entropy(logits.flatten(0, 1), answer.flatten().long())


def share_right(
    logits: Float[Tensor, "batch answer symbol"],
    answer: Integer[Tensor, "batch answer"],
) -> float:
    """Return the share of questions of which every answer is right; nan is wrong.

    Raises
    ------
    TypeError
        If the logits are not floating point, or the answers no integers.
    ValueError
        If the logits do not have three axes or are on ``meta``, or there is not one
        answer for each of their questions and answers.
    """
    _require_one_each(logits, answer)
    require_values("logits", logits)
    right = (logits.argmax(dim=-1) == answer.long()) & ~logits.isnan().any(dim=-1)
    return right.all(dim=-1).float().mean().item()


def _require_one_each(logits: Tensor, answer: Tensor) -> None:
    require_floating("logits", logits, "pass the output of a model")
    if logits.dim() != 3:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}; use (batch, answer, symbol)"
        )
    require_integers("answer", answer)
    if logits.shape[:-1] != answer.shape:
        raise ValueError(
            f"answer has shape {tuple(answer.shape)}; logits of shape "
            f"{tuple(logits.shape)} need {tuple(logits.shape[:-1])}, one for each row"
        )


def progress(items: Collection[T], label: str) -> Iterator[T]:
    """Yield the items; meanwhile a line below the notebook cell counts them.

    The line is empty before the first update and after the last item, an error or an
    interrupt, so a stored notebook shows no trace of it. Outside a notebook nothing
    is shown.

    Examples
    --------
    >>> [item for item in progress("abc", "letter")]
    ['a', 'b', 'c']
    """
    show = _notebook_line()
    last_update = time.monotonic()
    try:
        for done, item in enumerate(items, start=1):
            yield item
            if time.monotonic() - last_update > SECONDS_BETWEEN_UPDATES:
                show(f"{label} {done} of {len(items)}")
                last_update = time.monotonic()
    finally:
        show("")


def _notebook_line() -> Callable[[str], None]:
    """Put an empty line below the notebook cell; return a function that rewrites it."""
    # Whoever runs in a notebook has imported IPython already.
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython.get_ipython(), "kernel"):
        return lambda text: None
    line = ipython.display.display(_plain(""), raw=True, display_id=True)
    return lambda text: line.update(_plain(text), raw=True)


def _plain(text: str) -> dict[str, str]:
    return {"text/plain": text}
