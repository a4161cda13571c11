"""MiniLM on our attention equals its reference; bad files and input are named."""

import dataclasses
import importlib
import json
import shutil
from pathlib import Path

import pytest
import torch

from mha_teach import models

GOLDEN = json.loads((Path(__file__).parent / "golden" / "minilm.json").read_text())


@pytest.fixture(scope="module")
def encoder():
    try:
        return models.load_minilm()
    except models.ModelNotInstalledError as missing:
        pytest.skip(str(missing))


def test_weights_and_hidden_states_equal_the_reference(encoder):
    encoding = encoder.encode(GOLDEN["sentences"])
    for trace, weights in zip(encoding.traces, GOLDEN["weights"], strict=True):
        assert torch.allclose(trace.weights[1, :, -3], torch.tensor(weights), atol=2e-5)
    for row, golden in zip(encoding.hidden[-1], GOLDEN["last_hidden"], strict=True):
        golden = torch.tensor(golden)
        assert torch.allclose(row[: len(golden), :5], golden, atol=2e-5)


def test_tokens_equal_the_reference(encoder):
    ids = [encoder.tokenize(sentence)[1] for sentence in GOLDEN["sentences"]]
    assert ids == GOLDEN["ids"]


def test_every_number_equals_transformers_where_it_is_installed(encoder):
    transformers = pytest.importorskip("transformers")
    files = models.checked_files(models.MINILM)
    reference = transformers.BertModel.from_pretrained(
        files["model/model.safetensors"].parent, attn_implementation="eager"
    ).eval()
    encoding = encoder.encode(GOLDEN["sentences"])
    _, ids, mask = encoder._batch(GOLDEN["sentences"])
    with torch.no_grad():
        theirs = reference(ids, mask[:, 0, 0].long(), output_attentions=True)
    for trace, weights in zip(encoding.traces, theirs.attentions, strict=True):
        assert torch.allclose(trace.weights, weights, atol=2e-5)


def test_forward_equals_encode(encoder):
    _, ids, mask = encoder._batch(GOLDEN["sentences"])
    real = mask[:, 0, 0]
    last = encoder.encode(GOLDEN["sentences"]).hidden[-1]
    assert torch.allclose(encoder(ids, mask)[real], last[real], atol=2e-5)


def test_padding_changes_no_embedding(encoder):
    alone = torch.cat([encoder.embed([s]) for s in GOLDEN["sentences"]])
    assert torch.allclose(encoder.embed(GOLDEN["sentences"]), alone, atol=1e-5)
    assert torch.allclose(alone.norm(dim=-1), torch.ones(2))


def test_a_paraphrase_is_nearer_than_another_topic(encoder):
    asked, paraphrase, other = encoder.embed(
        ["How old are you?", "What is your age?", "The train leaves at noon."]
    )
    assert asked @ paraphrase > 0.5 > asked @ other


def test_a_missing_package_says_how_to_get_it():
    absent = dataclasses.replace(models.MINILM, package="no_such_package")
    with pytest.raises(
        models.ModelNotInstalledError, match=r"'minilm' are not .*: mha-teach models m"
    ):
        models.checked_files(absent)


def test_a_damaged_file_is_named_with_both_digests(encoder, tmp_path, monkeypatch):
    files = models.checked_files(models.MINILM)
    folder = tmp_path / "damaged_minilm" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    shutil.copy(files["model/tokenizer.json"], folder)
    weights = bytearray(files["model/model.safetensors"].read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    monkeypatch.syspath_prepend(tmp_path)
    damaged = dataclasses.replace(models.MINILM, package="damaged_minilm")
    with pytest.raises(
        ValueError, match=r"model\.safetensors of gt-all.* damaged: .* expected 53aa5"
    ):
        models.checked_files(damaged)


def test_a_missing_file_is_named(tmp_path, monkeypatch):
    (tmp_path / "empty_minilm").mkdir()
    (tmp_path / "empty_minilm" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    empty = dataclasses.replace(models.MINILM, package="empty_minilm")
    with pytest.raises(ValueError, match="SHA-256 is no such file"):
        models.checked_files(empty)


def test_without_the_package_random_weights_stand_in(monkeypatch, capsys):
    absent = dataclasses.replace(models.MINILM, package="no_such_package")
    monkeypatch.setattr(models, "MINILM", absent)
    model = models.load_minilm_or_stand_in()
    assert "mha-teach models minilm" in capsys.readouterr().out
    assert not model.pretrained
    encoding = model.encode(["Two heads, one sentence."])
    assert encoding.tokens[0][:3] == ["[CLS]", "two", "heads"]
    assert encoding.traces[5].weights.shape == (1, 12, 8, 8)


def test_a_state_dict_brings_weights_without_a_tokenizer(encoder):
    model = models.MiniLM()
    model.load_state_dict(encoder.state_dict())
    assert torch.equal(model.word.weight, encoder.word.weight)
    assert encoder.pretrained
    assert not model.pretrained
    assert model.tokenize("Tokenizers") != encoder.tokenize("Tokenizers")


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ("one string", TypeError, r"must be a list of strings; pass \['one string'\]"),
        ([], ValueError, "sentences is empty; pass at least one"),
        (3, TypeError, "sentences must be a list of strings, got 3"),
        (["a", None], TypeError, "a sentence must be a str, got None"),
        (["word " * 600], ValueError, "has 602 tokens, but the model has 512"),
    ],
)
def test_bad_sentences_are_refused(plain, sentences, error, message):
    model = importlib.import_module("mha_teach.models").MiniLM()
    with pytest.raises(error, match=message):
        model.encode(sentences)
