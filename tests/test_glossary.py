"""The glossary: every term is complete, and its symbol and code name are the book's."""

import functools
import inspect
import re

import pytest
import torch

import mha_teach
from mha_teach import MultiHeadAttention, models
from tools.notebooks import ROOT

GLOSSARY = (ROOT / "chapters" / "glossary.md").read_text("utf-8")
NOTATION = (ROOT / "chapters" / "notation.md").read_text("utf-8")
ENTRY = re.compile(r"^(\S.*)\n: (.+)\n\n  (.+)$", re.M)
LONGEST_TIP = 240  # characters, which the site shows on hover: theme/src/book.mjs
NONE = "–"

[TERMS] = re.findall(r"^:::\{glossary\}\n(.+?)\n:::$", GLOSSARY, re.M | re.S)
ENTRIES = {term: (sentence, line) for term, sentence, line in ENTRY.findall(TERMS)}
ROW = re.compile(r"^\| *(\$.+?\$) *\| *((?:`\w+`(?:, )?)+) *\|", re.M)
SYMBOLS = {
    name: symbol
    for symbol, code in ROW.findall(NOTATION)
    for name in re.findall(r"`(\w+)`", code)
}


def columns(term):
    """Return Chinese term, symbol and code name of a term, '' where there is none."""
    _, line = ENTRIES[term]
    parts = line.split(" · ")
    assert len(parts) == 3, f"{term}: {line}"
    return ["" if part == NONE else part for part in parts]


@pytest.fixture(params=ENTRIES)
def term(request):
    return request.param


def test_the_notation_was_read():
    assert SYMBOLS["d_model"] == r"$d_\text{model}$"
    assert SYMBOLS["n_k"] == "$n_q$, $n_k$"
    assert SYMBOLS["weights"] == r"$A_i = \operatorname{softmax}(S_i)$"


def test_every_line_belongs_to_an_entry():
    assert ENTRY.sub("", TERMS).strip() == ""
    assert len(ENTRIES) == len(ENTRY.findall(TERMS)) > 40


def test_terms_stand_in_alphabetical_order():
    assert list(ENTRIES) == sorted(ENTRIES, key=str.casefold)


def test_a_term_has_one_sentence_that_fits_a_tip(term):
    sentence, _ = ENTRIES[term]
    assert re.fullmatch(r"[A-Z][^.!?$`]*\.", sentence), sentence
    assert len(sentence) <= LONGEST_TIP


def test_a_term_has_a_chinese_name(term):
    chinese, _, _ = columns(term)
    assert re.fullmatch(r"[\u4e00-\u9fff]+", chinese)


def test_a_symbol_is_that_of_the_notation_or_used_in_a_chapter(term):
    _, symbol, code = columns(term)
    if not symbol:
        return
    tex = symbol.strip("$")
    assert symbol == f"${tex}$"
    if in_notation := SYMBOLS.get(code.strip("`")):
        assert tex in in_notation
    else:
        chapters = [path.read_text("utf-8") for path in ROOT.glob("chapters/*.py")]
        assert any(tex in text for text in [NOTATION, *chapters])


def test_a_code_name_exists(term):
    code = columns(term)[2]
    if not code:
        return
    name = code.strip("`")
    assert code == f"`{name}`"
    assert exists(name), f"{name} is no name of the package, of torch or the notation"


def exists(name):
    """Say whether a name is one of the package, of torch, or of the notation."""
    known = SYMBOLS.keys() | arguments() | attributes()
    package = {**vars(mha_teach), "models": models, "torch": torch}
    first, *others = name.split(".")
    if first not in package:
        return name in known
    try:
        functools.reduce(getattr, others, package[first])
    except AttributeError:
        return False
    return True


def arguments():
    """Return the names of what the function and the module take."""
    public = (
        mha_teach.scaled_dot_product_attention,
        MultiHeadAttention,
        MultiHeadAttention.forward,
    )
    return {name for each in public for name in inspect.signature(each).parameters}


def attributes():
    """Return the names of the layers that a module holds."""
    return set(MultiHeadAttention(6, 2)._modules)


@pytest.mark.parametrize(
    "name", ["nobody", "masks.nobody", "MultiHeadAttention.nobody", "torch.nobody"]
)
def test_a_name_that_does_not_exist_is_noticed(name):
    assert not exists(name)
