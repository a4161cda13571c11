"""What has been tried and passed, in one local file that is never sent anywhere.

Each line of the file is one result. Lines are only ever appended, so several
notebooks can write at the same time; damage costs the damaged lines and no more.
"""

import json
import os
import stat
from pathlib import Path

import platformdirs

_unkept: dict[str, float] = {}


def path() -> Path:
    """Return ``MHA_TEACH_PROGRESS`` if set, else a file in the user's data folder.

    Of a link it is the file behind it, which is read, written and set aside.
    """
    chosen = os.environ.get("MHA_TEACH_PROGRESS")
    usual = platformdirs.user_data_path("mha-teach") / "progress.jsonl"
    return Path(os.path.realpath(os.path.expanduser(chosen or usual)))


def record(exercise_id: str, share: float) -> None:
    """Keep the share of properties that hold, if it is the best so far."""
    if share > best().get(exercise_id, -1.0):
        _append({exercise_id: share})


def best() -> dict[str, float]:
    """Return the best share of each exercise tried; set a damaged file aside."""
    try:
        good, is_damaged = _read(path())
    except OSError:
        good, is_damaged = {}, False
    if is_damaged:
        _set_aside()
    tried = {**_unkept, **good}
    return {id: max(_unkept.get(id, 0.0), good.get(id, 0.0)) for id in tried}


def is_kept() -> bool:
    """Return whether every result so far was written, and the next one can be."""
    place = path()
    while not os.path.exists(place) and place != place.parent:
        place = place.parent
    is_kind = os.path.isfile if place == path() else os.path.isdir
    return not _unkept and is_kind(place) and os.access(place, os.W_OK)


def damaged_files() -> list[Path]:
    """Return the files that were set aside."""
    return sorted(path().parent.glob(f"{path().stem}.damaged-*"))


def _read(file: Path) -> tuple[dict[str, float], bool]:
    """Return the best share of each exercise, and whether any line is damaged."""
    _require_ordinary(file)
    lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    results = [_parsed(line) for line in lines if line.strip()]
    good: dict[str, float] = {}
    for exercise_id, share in filter(None, results):
        good[exercise_id] = max(share, good.get(exercise_id, 0.0))
    return good, None in results


def _require_ordinary(file: Path) -> None:
    """Raise where reading may never end, and what is written may be lost."""
    try:
        mode = file.stat().st_mode  # once: another notebook may set the file aside
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise OSError(f"{file} is no ordinary file")


def _parsed(line: str) -> tuple[str, float] | None:
    try:
        result = json.loads(line)
        exercise_id, share = result["id"], result["share"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(exercise_id, str) or not isinstance(share, int | float):
        return None
    return (exercise_id, float(share)) if 0 <= share <= 1 else None


def _append(results: dict[str, float]) -> bool:
    """Write one line a result in one go; keep in memory what cannot be written.

    Return whether it was written. The line break comes first: it also ends a line that
    was cut off.
    """
    lines = "".join(
        "\n" + json.dumps({"id": exercise_id, "share": share})
        for exercise_id, share in results.items()
    ).encode()
    try:
        _require_ordinary(path())
        path().parent.mkdir(parents=True, exist_ok=True)
        for _ in range(10):  # another notebook may set the file aside meanwhile
            with path().open("ab", buffering=0) as file:
                written = file.write(lines)
                if written == len(lines) and _is_at_path(file.fileno()):
                    return True
        raise OSError("the disk is full, or the file is set aside all the time")
    except OSError:
        _unkept.update(results)
        return False


def _is_at_path(descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path().stat())
    except FileNotFoundError:
        return False


def _set_aside() -> None:
    """Rename the damaged file, then begin a new one with its good lines.

    They are read after the renaming, when no notebook can add to them any more. Until
    then a copy holds the room that they need, as the disk may be full.
    """
    try:
        aside = _new_damaged_file()
    except OSError:  # the folder is read-only
        return
    try:
        aside.write_bytes(path().read_bytes())
        path().replace(aside)
    except OSError:  # the disk is full, or another notebook was faster
        aside.unlink()
        return
    good, is_damaged = _read(aside)
    written = _append(good)
    if written and not is_damaged:  # another notebook was faster to set damage aside
        aside.unlink()


def _new_damaged_file() -> Path:
    """Create an empty file under the first free number."""
    number = 1
    while True:
        file = path().with_suffix(f".damaged-{number}")
        try:
            file.touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return file
