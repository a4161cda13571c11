"""What has been tried and passed, in one local file that is never sent anywhere.

Each line of the file is one result. Lines are only ever appended, so several
notebooks can write at the same time; damage costs the damaged lines and no more.
"""

import json
import os
from pathlib import Path

import platformdirs

_unkept: dict[str, float] = {}


def path() -> Path:
    """Return ``MHA_TEACH_PROGRESS`` if set, else a file in the user's data folder."""
    chosen = os.environ.get("MHA_TEACH_PROGRESS")
    if chosen:
        return Path(chosen)
    return platformdirs.user_data_path("mha-teach") / "progress.jsonl"


def record(exercise_id: str, share: float) -> None:
    """Keep the share of properties that hold, if it is the best so far."""
    if share > best().get(exercise_id, -1.0):
        _append({exercise_id: share})


def best() -> dict[str, float]:
    """Return the best share of each exercise tried; set a damaged file aside."""
    try:
        lines = path().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    results = [_parsed(line) for line in lines if line.strip()]
    best = dict(_unkept)
    for exercise_id, share in filter(None, results):
        best[exercise_id] = max(share, best.get(exercise_id, 0.0))
    if None in results:
        _set_aside(best)
    return best


def is_kept() -> bool:
    """Return whether every result so far could be written."""
    return not _unkept


def damaged_files() -> list[Path]:
    """Return the files that were set aside."""
    return sorted(path().parent.glob(f"{path().stem}.damaged-*"))


def _parsed(line: str) -> tuple[str, float] | None:
    try:
        result = json.loads(line)
        exercise_id, share = result["id"], result["share"]
    except (ValueError, TypeError, KeyError):
        return None
    if not isinstance(exercise_id, str) or not isinstance(share, int | float):
        return None
    return (exercise_id, float(share)) if 0 <= share <= 1 else None


def _append(results: dict[str, float]) -> None:
    """Write one line a result in one go; keep in memory what cannot be written.

    The line break comes first: it also ends a line that was cut off.
    """
    lines = [
        "\n" + json.dumps({"id": exercise_id, "share": share})
        for exercise_id, share in results.items()
    ]
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        with path().open("ab", buffering=0) as file:
            file.write("".join(lines).encode())
    except OSError:
        _unkept.update(results)


def _set_aside(good: dict[str, float]) -> None:
    number = len(damaged_files()) + 1
    try:
        path().rename(path().with_suffix(f".damaged-{number}"))
    except OSError:  # another notebook was faster, or the folder is read-only
        return
    _append(good)
