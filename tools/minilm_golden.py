"""Write tests/golden/minilm.json: what the reference implementation computes.

Needs transformers, which the project does not depend on. Run once per pinned model:
``python tools/minilm_golden.py``.
"""

import json
from pathlib import Path

import torch
import transformers

from mha_teach import models

SENTENCES = [
    "The cat sat on the mat.",
    "A much longer sentence, in which a tired animal did not cross the street.",
]
TARGET = Path(__file__).parents[1] / "tests" / "golden" / "minilm.json"


def rounded(tensor: torch.Tensor) -> list:
    return [
        rounded(row) if row.dim() else round(row.item(), 6) for row in tensor.detach()
    ]


def main() -> None:
    folder = models.checked_files(models.MINILM)["model/model.safetensors"].parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    reference = transformers.BertModel.from_pretrained(
        folder, attn_implementation="eager"
    ).eval()
    batch = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    with torch.no_grad():
        result = reference(**batch, output_attentions=True)
    lengths = batch["attention_mask"].sum(dim=1).tolist()
    golden = {
        "transformers": transformers.__version__,
        "sentences": SENTENCES,
        "ids": [
            ids[:length].tolist()
            for ids, length in zip(batch["input_ids"], lengths, strict=True)
        ],
        # One row of weights of every head: the last word of the longer sentence.
        "weights": [rounded(layer[1, :, -3]) for layer in result.attentions],
        "last_hidden": [
            rounded(row[:length, :5])
            for row, length in zip(result.last_hidden_state, lengths, strict=True)
        ],
    }
    TARGET.write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
