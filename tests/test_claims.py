"""The ledger of claims: none is missing, each leads to its cell, source or chapter."""

import json
import re

import pytest

from tools import claims
from tools.claims import ROOT, Ledger

CHAPTER = """\
# %% [markdown]
# # One
#
# ## Is $d_k$ right?

# %% tags=["S0-6", "guard"]
assert 1 + 1 == 2
"""
REFERENCES = """\
(liu-2021)=
**Liu, Liu and Han (2021).** *A title.*

(torch-mha)=
**`torch.nn.MultiheadAttention`.** A page.
"""


@pytest.fixture(scope="module")
def ledger():
    return Ledger()


def test_nothing_is_wrong_with_the_ledger(ledger):
    assert ledger.faults() == []


def test_the_page_is_what_the_data_say(ledger):
    page = (ROOT / "chapters" / "claims.md").read_text("utf-8")
    assert page == ledger.page(), "run python tools/claims.py"


def test_every_claim_is_a_sentence_in_our_words(ledger):
    for claim in ledger.claims:
        for text in (claim.says, claim.holds):
            assert text.endswith("."), claim.id
            assert not re.search(r"[\u4e00-\u9fff]", text), claim.id


def test_readers_see_no_ids_but_on_the_page_of_claims():
    """A tag is nothing that JupyterLab, the site or nbval shows or acts on."""
    for path in [*ROOT.glob("chapters/*.py"), *ROOT.glob("chapters/exercises/*.py")]:
        text = re.sub(r"^# %%.*", "", path.read_text("utf-8"), flags=re.M)
        assert not claims.ID.search(text), path.name


@pytest.fixture
def book(tmp_path):
    """A small book: all claims are open, one is measured in its only chapter."""
    folder = tmp_path / "chapters"
    (folder / "exercises").mkdir(parents=True)
    (folder / "01_one.py").write_text(CHAPTER, "utf-8")
    (folder / "references.md").write_text(REFERENCES, "utf-8")
    return tmp_path


def faults(book, *changed, missing=()):
    """Return the faults of the small book with these entries in place of its own."""
    changed_ids = {entry["id"] for entry in changed} | set(missing)
    sound = [{"id": id, "open": 9} for id in claims.IDS if id != "S0-6"]
    sound.append({"id": "S0-6", "measured": [1]})
    entries = [entry for entry in sound if entry["id"] not in changed_ids] + [*changed]
    lines = ["[[subject]]", 'title = "All"']
    for entry in entries:
        fields = {"says": "A.", "holds": "B.", "verdict": "right"} | entry
        lines.append("[[subject.claims]]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in fields.items()]
    (book / "chapters" / "claims.toml").write_text("\n".join(lines), "utf-8")
    return Ledger(book).faults()


def test_a_sound_ledger_has_no_faults(book):
    assert faults(book) == []
    assert faults(book, {"id": "S0-1", "settled": ["liu-2021"]}) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"id": "S2-1", "open": 9}, "no claim of the texts"),
        ({"id": "S0-3"}, "neither measured nor settled nor open"),
        ({"id": "S0-3", "open": 9, "verdict": "true"}, "verdict 'true' is none of"),
        ({"id": "S0-3", "measured": [1]}, "chapter 1 has no cell with this tag"),
        ({"id": "S0-3", "measured": [2]}, "measured in chapter 2, which does not"),
        ({"id": "S0-3", "settled": ["liu-2022"]}, "references.md has no entry liu"),
        ({"id": "S0-3", "open": 1}, "open, but chapter 1 exists: tag its cell"),
        ({"id": "S0-3", "open": 17}, "open, but no chapter 17 is planned"),
        ({"id": "S0-6", "open": 9}, "a cell in 01_one.ipynb is tagged, but the"),
    ],
)
def test_a_fault_is_named(book, changed, fault):
    [found] = faults(book, changed)
    assert found.startswith(f"{changed['id']}: {fault}")


def test_a_missing_claim_is_named(book):
    assert faults(book, missing=["S0-3"]) == ["S0-3: missing"]
    assert faults(book, missing=["S0-6"]) == [
        "S0-6: missing",
        "S0-6: a cell in 01_one.ipynb is tagged, but the ledger does not name the "
        "chapter",
    ]


def test_a_claim_that_stands_twice_is_named(book):
    twice = {"id": "S0-3", "open": 9}
    assert faults(book, twice, twice) == ["S0-3: stands 2 times"]


def test_a_cell_without_an_assert_is_named(book):
    path = book / "chapters" / "01_one.py"
    path.write_text(CHAPTER.replace("assert", "print(1) #"), "utf-8")
    assert faults(book) == ["S0-6: a cell in 01_one.ipynb holds no assert"]


def test_a_link_in_a_claim_needs_its_source(book):
    holds = "[Gone](references.md#gone-2021), [there](references.md#liu-2021)."
    found = faults(book, {"id": "S0-3", "open": 9, "holds": holds})
    assert found == ["S0-3: references.md has no entry gone-2021"]


def test_a_claim_on_the_page(book):
    sources = ["liu-2021", "torch-mha"]
    claim = {"id": "S0-6", "measured": [1], "settled": sources, "open": 9}
    assert faults(book, claim) == []
    page = " ".join(Ledger(book).page().split())
    assert (
        "(claim-s0-6)= **S0-6 · right.** *A.* B. "
        "Measured in chapter 1: [Is $d_k$ right?](01_one.ipynb#is-d-k-right). "
        "Settled by [Liu et al. (2021)](references.md#liu-2021) and "
        "[`torch.nn.MultiheadAttention`](references.md#torch-mha). "
        "The rest is open: chapter 9."
    ) in page
    assert "(claim-s0-5)= **S0-5 · right.** *A.* B. Open: chapter 9." in page


def test_no_line_breaks_a_formula_or_begins_with_a_number():
    parts = [*["word"] * 23, "$4 d_k$", *["word"] * 21, "chapter 14. Words."]
    text = claims.filled(" ".join(parts))
    assert [line.split()[0] for line in text.splitlines()] == ["word", "$4", "chapter"]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Shazeer (2019)", "Shazeer (2019)"),
        ("Koehn and Knowles (2017)", "Koehn and Knowles (2017)"),
        ("Liu, Liu and Han (2021)", "Liu et al. (2021)"),
        ("Grattafiori and others (2024)", "Grattafiori et al. (2024)"),
        ("Gemma Team (2024)", "Gemma Team (2024)"),
        ("Issues in pytorch/pytorch", "Issues in pytorch/pytorch"),
    ],
)
def test_a_source_is_named_by_its_first_author(name, short):
    assert claims.short_name(name) == short


def test_a_faulty_ledger_is_not_written(book, monkeypatch):
    faults(book, missing=["S0-3"])
    monkeypatch.setattr(claims, "Ledger", lambda: Ledger(book))
    with pytest.raises(SystemExit, match="S0-3: missing"):
        claims.main()


def test_the_page_is_written_where_it_is_read(book, monkeypatch, capsys):
    assert faults(book) == []
    monkeypatch.setattr(claims, "ROOT", book)
    monkeypatch.setattr(claims, "Ledger", lambda: Ledger(book))
    claims.main()
    written = (book / "chapters" / "claims.md").read_text("utf-8")
    assert written == Ledger(book).page()
    assert capsys.readouterr().out == "wrote claims.md\n"
