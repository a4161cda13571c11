"""Where the pretrained encoder is missing, every chapter goes on with a stand-in."""

import jupytext
import pytest

from conftest import ROOT
from mha_teach import models

CHAPTERS = [
    path
    for path in sorted((ROOT / "chapters").glob("[0-9]*.py"))
    if "load_minilm_or_stand_in" in path.read_text("utf-8")
]


def test_there_are_chapters_with_an_encoder():
    assert len(CHAPTERS) > 5


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("in_chapters")
def test_a_chapter_runs_through_without_the_encoder(chapter, monkeypatch, capsys):
    def missing():
        raise models.ModelNotInstalledError("no encoder here")

    monkeypatch.setattr(models, "load_minilm", missing)
    names = {"__name__": "chapter"}
    for cell in jupytext.read(chapter).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    assert not names["encoder"].pretrained
    assert "no encoder here" in capsys.readouterr().out
