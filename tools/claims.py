"""Write chapters/claims.md: the claims that the book began with, and what holds.

``python tools/claims.py`` takes them from chapters/claims.toml, which a maintainer
edits, and says first what is wrong with them: a claim that no cell measures, a tag that
is no claim, a source that the references lack.
"""

import ast
import re
import sys
import textwrap
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jupytext

ROOT = Path(__file__).resolve().parents[1]
IDS = [f"S0-{n}" for n in range(1, 30)] + [f"S1-{n}" for n in range(1, 47)]
ID = re.compile(r"S\d-\d+")
CHAPTERS = range(17)
VERDICTS = {
    "right": "it holds as it stands",
    "partly": "a part of it holds",
    "misleading": "it can be read so that it holds, and is mostly read otherwise",
    "wrong": "it does not hold",
    "unsupported": "nothing is shown for it",
}

OPENING = """\
---
title: Claims, and what holds
short_title: Claims
description: {description}
---

<!-- Written by tools/claims.py from claims.toml: edit that. -->

This book began with two short Chinese texts on multi-head attention, a chapter (S0)
and an overview (S1). Each claim in them is here in our words, with a verdict and what
holds. After it stands where you can see that: a chapter whose code measures it, a
source that settles it, or the later chapter that will.

| verdict | means | claims |
|---|---|---|
{verdicts}

{measured} of the {total} claims are measured in a chapter, {settled} more are settled
by a source, and {open} wait for their chapter.
"""
CLAIM = "({label})=\n{text}\n"
WIDTH = 120
UNBROKEN = re.compile(r"\$[^$]+\$|\w+ \d+")


@dataclass(frozen=True)
class Claim:
    """One claim of the two texts; the fields are explained in claims.toml."""

    id: str
    says: str
    verdict: str
    holds: str
    measured: list[int] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    open: int | None = None


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook that is tagged with the id of a claim."""

    claim: str
    chapter: int
    notebook: str
    section: str
    holds_an_assert: bool


class Ledger:
    """The claims of a book, its chapters, its tagged cells, and its references."""

    def __init__(self, root: Path = ROOT):
        folder = root / "chapters"
        data = tomllib.loads((folder / "claims.toml").read_text("utf-8"))
        self.subjects = {
            subject["title"]: [Claim(**entry) for entry in subject["claims"]]
            for subject in data["subject"]
        }
        self.claims = [claim for claims in self.subjects.values() for claim in claims]
        sources = sorted(folder.glob("[0-9][0-9]_*.py"))
        self.chapters = {int(path.name[:2]) for path in sources}
        self.cells = [
            cell
            for path in [*sources, *sorted(folder.glob("exercises/*.py"))]
            for cell in tagged_cells(path)
        ]
        self.sources = names_of_sources((folder / "references.md").read_text("utf-8"))

    def faults(self) -> list[str]:
        """Return what is wrong with the ledger, one line for each fault."""
        counts = Counter(claim.id for claim in self.claims)
        return [
            *(f"{id}: missing" for id in IDS if id not in counts),
            *(f"{id}: no claim of the texts" for id in counts if id not in IDS),
            *(f"{id}: stands {n} times" for id, n in counts.items() if n > 1),
            *(fault for claim in self.claims for fault in self.faults_of(claim)),
            *(fault for cell in self.cells for fault in self.faults_of_cell(cell)),
        ]

    def faults_of(self, claim: Claim) -> list[str]:
        """Return what is wrong with one claim."""
        found = []
        if claim.verdict not in VERDICTS:
            found.append(f"verdict {claim.verdict!r} is none of {', '.join(VERDICTS)}")
        if not (claim.measured or claim.settled or claim.open is not None):
            found.append("neither measured nor settled nor open")
        for chapter in claim.measured:
            if chapter not in self.chapters:
                found.append(f"measured in chapter {chapter}, which does not exist")
            elif not self.cells_of(claim, chapter):
                found.append(f"chapter {chapter} has no cell with this tag")
        if claim.open in self.chapters:
            found.append(f"open, but chapter {claim.open} exists: tag its cell")
        elif claim.open is not None and claim.open not in CHAPTERS:
            found.append(f"open, but no chapter {claim.open} is planned")
        linked = re.findall(r"references\.md#([\w-]+)", claim.says + claim.holds)
        for source in [*claim.settled, *linked]:
            if source not in self.sources:
                found.append(f"references.md has no entry {source}")
        return [f"{claim.id}: {fault}" for fault in found]

    def faults_of_cell(self, cell: Cell) -> list[str]:
        """Return what is wrong with one tagged cell."""
        where = f"{cell.claim}: a cell in {cell.notebook}"
        claims = [claim for claim in self.claims if claim.id == cell.claim]
        found = []
        if not cell.holds_an_assert:
            found.append(f"{where} holds no assert")
        if not any(cell.chapter in claim.measured for claim in claims):
            found.append(f"{where} is tagged, but the ledger does not name the chapter")
        return found

    def cells_of(self, claim: Claim, chapter: int) -> list[Cell]:
        """Return the cells of a chapter that measure a claim."""
        return [c for c in self.cells if (c.claim, c.chapter) == (claim.id, chapter)]

    def page(self) -> str:
        """Return the text of claims.md."""
        parts = [self.opening()]
        for title, claims in self.subjects.items():
            parts.append(f"## {title}\n")
            parts += [CLAIM.format(label=label(c), text=self.text(c)) for c in claims]
        return "\n".join(parts)

    def opening(self) -> str:
        """Return the head of the page: what it is, and how the claims are spread."""
        counts = Counter(claim.verdict for claim in self.claims)
        measured = sum(bool(c.measured) for c in self.claims)
        settled = sum(bool(c.settled and not c.measured) for c in self.claims)
        return OPENING.format(
            description="Each claim of two texts on multi-head attention, with a "
            "verdict, what holds, and where it is measured or settled.",
            verdicts="\n".join(
                f"| {verdict} | {meaning} | {counts[verdict]} |"
                for verdict, meaning in VERDICTS.items()
            ),
            total=len(self.claims),
            measured=measured,
            settled=settled,
            open=len(self.claims) - measured - settled,
        )

    def text(self, claim: Claim) -> str:
        """Return the paragraph of one claim."""
        paragraph = " ".join(
            [
                f"**{claim.id} · {claim.verdict}.** *{claim.says}*",
                claim.holds,
                *self.evidence(claim),
            ]
        )
        return filled(paragraph)

    def evidence(self, claim: Claim) -> list[str]:
        """Return where a reader can see what holds, one sentence for each way."""
        found = []
        for chapter in claim.measured:
            cells = self.cells_of(claim, chapter)
            places = dict.fromkeys((cell.section, cell.notebook) for cell in cells)
            links = [
                f"[{section}]({notebook}#{slug(section)})"
                for section, notebook in places
            ]
            found.append(f"Measured in chapter {chapter}: {joined(links)}.")
        if claim.settled:
            links = [f"[{self.sources[s]}](references.md#{s})" for s in claim.settled]
            found.append(f"Settled by {joined(links)}.")
        if claim.open is not None:
            opening = "The rest is open" if found else "Open"
            found.append(f"{opening}: chapter {claim.open}.")
        return found


def tagged_cells(path: Path) -> list[Cell]:
    """Return the cells of a notebook that carry the id of a claim."""
    section = ""
    found = []
    for cell in jupytext.read(path).cells:
        if cell.cell_type != "code":
            headings = re.findall(r"^##+ (.+)$", cell.source, re.M)
            section = headings[-1] if headings else section
            continue
        for tag in cell.metadata.get("tags", []):
            if ID.fullmatch(tag):
                nodes = ast.walk(ast.parse(cell.source))
                found.append(
                    Cell(
                        claim=tag,
                        chapter=int(path.name[:2]),
                        notebook=f"{path.stem}.ipynb",
                        section=section,
                        holds_an_assert=any(isinstance(n, ast.Assert) for n in nodes),
                    )
                )
    return found


def names_of_sources(references: str) -> dict[str, str]:
    """Return anchor -> short name, such as Liu et al. (2021), of each reference."""
    entries = re.findall(r"^\(([\w-]+)\)=\n\*\*(.+?)\.?\*\*", references, re.M | re.S)
    return {anchor: short_name(" ".join(name.split())) for anchor, name in entries}


def short_name(name: str) -> str:
    """Shorten a list of three or more authors to the first."""
    authors, year = re.fullmatch(r"(.+?)( \(\d{4}\))?", name).groups()
    first, *others = re.split(r", | and ", authors) if year else [authors]
    if len(others) > 1 or others == ["others"]:
        return f"{first} et al.{year}"
    return name


def filled(paragraph: str) -> str:
    """Break a paragraph into lines, but no formula and no line that begins `14.`."""
    kept = UNBROKEN.sub(lambda match: match[0].replace(" ", "\0"), paragraph)
    lines = textwrap.fill(kept, WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def label(claim: Claim) -> str:
    """Return the anchor of a claim on its page."""
    return f"claim-{claim.id.lower()}"


def slug(heading: str) -> str:
    """Return the anchor that MyST gives a heading."""
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def joined(parts: list[str]) -> str:
    """Join words as in a sentence."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)


def main() -> None:
    ledger = Ledger()
    if faults := ledger.faults():
        sys.exit("\n".join(faults))
    path = ROOT / "chapters" / "claims.md"
    path.write_text(ledger.page(), encoding="utf-8")
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
