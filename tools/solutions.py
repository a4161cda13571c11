"""Write the page of worked solutions beside each exercise notebook.

``python tools/solutions.py`` takes them from the bank in ``mha_teach/exercises``: what
``solution("07-mha")`` prints, one fold for each exercise.
"""

import re
from pathlib import Path

from mha_teach.exercises import EXERCISES
from mha_teach.exercises.bank import Exercise, source

FOLDER = Path(__file__).resolve().parents[1] / "chapters" / "exercises"

OPENING = """\
# {title}

To the [exercises]({notebook}). Try each one first: the check can say what is wrong with
*your* answer, this page cannot.
"""

FOLD = """
:::{{dropdown}} {id} · {title}
```python
{source}```

{explanation}
:::
"""


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
        title=exercise.title,
        source=source(exercise.reference),
        explanation="\n\n".join(exercise.remarks()),
    )


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
