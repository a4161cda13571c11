"""Write the page of worked solutions beside each exercise notebook.

``python tools/solutions.py`` takes them from the bank in ``mha_teach/exercises``: what
``solution("07-mha")`` prints, one fold for each exercise, with its formulas set.
"""

import re
from html import escape
from pathlib import Path

from mha_teach.exercises import EXERCISES
from mha_teach.exercises.bank import Exercise, source

FOLDER = Path(__file__).resolve().parents[1] / "chapters" / "exercises"

OPENING = """\
# {title}

To the [exercises]({notebook}). Try each one first: the check can say what is wrong with
*your* answer, this page cannot.
"""

# HTML, for JupyterLab and GitHub do not know the site's own folds. What is in one of
# class "solution" is left out of the site's search.
FOLD = """
<details class="solution">
<summary>{id} · {title}</summary>

```python
{source}```

{explanation}

</details>
"""

SYMBOL = (
    r"\b(?:W\^[QKVO]|d_(?:model|context|k|v)|(?:n|var)_[qk]|[qk]_[ij]|s_(?:ij|ji)"
    r"|[hnij])\b"
)
TERM = rf"[-−]?√?(?:{SYMBOL}|\bbatch\b|\d+)"
CODE_OR_FORMULA = re.compile(rf"`[^`]*`|{TERM}(?: ?[-−+·/=] ?{TERM})*")


def pages() -> dict[Path, str]:
    """Return the text of each page, one for each exercise notebook."""
    return {
        notebook.with_name(f"{notebook.stem}_solutions.md"): page(notebook)
        for notebook in sorted(FOLDER.glob("*.py"))
    }


def page(notebook: Path) -> str:
    """Return the page that belongs to one notebook."""
    chapter = notebook.stem.partition("_")[0]
    heading = re.search(r"^# # (.+)$", notebook.read_text("utf-8"), re.M)[1]
    opening = OPENING.format(
        title=heading.replace("Exercises", "Worked solutions"),
        notebook=f"{notebook.stem}.ipynb",
    )
    folds = [
        fold(exercise)
        for exercise in EXERCISES.values()
        if exercise.id.startswith(f"{chapter}-")
    ]
    return "".join([opening, *folds])


def fold(exercise: Exercise) -> str:
    """Return one exercise's solution, folded away behind its title."""
    return FOLD.format(
        id=exercise.id,
        title=escape(exercise.title),
        source=source(exercise.reference),
        explanation="\n\n".join(map(marked_up, exercise.remarks())),
    )


def marked_up(text: str) -> str:
    """Return what ``solution`` prints with its formulas set; code stays as it is."""
    return CODE_OR_FORMULA.sub(_marked_up, text)


def _marked_up(found: re.Match) -> str:
    if found[0].startswith("`") or not re.search(SYMBOL, found[0]):
        return found[0]
    tex = re.sub("[a-z]{3,}", r"\\text{\g<0>}", found[0].replace("−", "-"))
    tex = re.sub("_(ij|ji)", r"_{\1}", tex)
    tex = re.sub(r"√([^ /]+)", r"\\sqrt{\1}", tex)
    tex = re.sub(" ?· ?", r" \\cdot ", tex)
    return f"${tex}$"


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
