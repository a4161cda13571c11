"""``book.py``: the set-up, its messages, and what each task runs."""

import ast
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
import yaml

from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "book.py"
BASE_PYTHON = sys._base_executable
CLOSED_PORT = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_FIND_LINKS": "",
    "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
    "PIP_RETRIES": "1",
}
CLI = ("-P", "mha_teach/cli.py")
posix = pytest.mark.skipif(os.name == "nt", reason="tests signals as POSIX has them")


def load(folder):
    """Import the book.py of a folder, which is then its root."""
    spec = importlib.util.spec_from_file_location("book", folder / "book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book in a folder of its own; its environments have no pip, to be quick."""
    folder = tmp_path / "my book"
    folder.mkdir()
    shutil.copy(SOURCE, folder)
    module = load(folder)
    create = venv.create

    def quick(path, with_pip, symlinks):
        assert with_pip
        create(path, with_pip=False, symlinks=symlinks)

    monkeypatch.setattr(module.venv, "create", quick)
    return module


def step(book, title, code=None, content="1"):
    """A step that notes that it ran, or runs the code, and depends on one file."""
    note = f"open('ran.txt', 'a').write({title + ' '!r})"
    (book.ROOT / f"{title}.txt").write_text(content)
    return book.Step(title, (f"{title}.txt",), ("-c", code or note))


def ran(book):
    path = book.ROOT / "ran.txt"
    words = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return words


def test_steps_run_once_in_order_and_then_cost_nothing(book, capsys, monkeypatch):
    steps = (step(book, "libraries"), step(book, "torch"))
    book.set_up(steps)
    assert ran(book) == ["libraries", "torch"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Setting up the book in .venv"
    assert re.fullmatch(r"  1/2 libraries \.\.\. \d+ s", lines[1])
    assert re.fullmatch(r"  2/2 torch \.\.\. \d+ s", lines[2])
    assert len(lines) == 4
    monkeypatch.setattr(book.subprocess, "run", lambda *_: pytest.fail("ran again"))
    book.set_up(steps)
    assert capsys.readouterr().out == ""


def test_a_changed_file_repeats_its_step_alone(book):
    book.set_up((step(book, "libraries"), step(book, "torch")))
    ran(book)
    book.set_up((step(book, "libraries", content="2"), step(book, "torch")))
    assert ran(book) == ["libraries"]


def test_a_changed_command_repeats_its_step(book):
    book.set_up((step(book, "torch"),))
    book.set_up((step(book, "torch", code="open('ran.txt', 'w').write('anew')"),))
    assert ran(book) == ["anew"]


def test_test_tools_come_on_top_of_what_a_learner_has(book):
    learner = (step(book, "libraries"),)
    book.set_up(learner)
    book.set_up((*learner, step(book, "tools")))
    assert ran(book) == ["libraries", "tools"]


def keepsake(book):
    """Leave a file in the environment: it is gone when that is made anew."""
    path = book.VENV / "keepsake"
    path.touch()
    return path


def wait_for_the_lock(book):
    """Wait for a step that is ending, and has outlived its set-up."""
    for _ in range(500):
        try:
            with book.only_one_set_up():
                return
        except SystemExit:
            time.sleep(0.01)


@posix
def test_a_killed_step_has_the_environment_made_anew(book):
    sleeps = "import time; print('asleep', flush=True); time.sleep(60)"
    steps = (step(book, "libraries"), step(book, "torch", code=sleeps))
    book.set_up(steps[:1])
    kept = keepsake(book)
    driver = "import book; book.set_up(({}, {}))".format(*map(repr, steps))
    driver = driver.replace("Step(", "book.Step(")
    process = subprocess.Popen(
        [sys.executable, "-c", driver],
        cwd=book.ROOT,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not (book.LOG.exists() and "asleep" in book.LOG.read_text()):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_for_the_lock(book)
    assert book.read_record()["interrupted"] == "torch"
    ran(book)
    book.set_up((steps[0], step(book, "torch")))
    assert ran(book) == ["libraries", "torch"]
    assert not kept.exists()


@posix
def test_a_step_that_the_system_kills_has_the_environment_made_anew(book):
    dies = step(book, "torch", code="import os; os.kill(os.getpid(), 9)")
    with pytest.raises(SystemExit, match="Could not install torch"):
        book.set_up((dies,))
    kept = keepsake(book)
    book.set_up((step(book, "torch"),))
    assert ran(book) == ["torch"]
    assert not kept.exists()


def broken_python(book):
    book.PYTHON.unlink()


def half_made(book):
    book.write_record({"interrupted": "while making the environment"})


def half_written_record(book):
    book.RECORD.write_text('{"environment": [')


def list_for_a_record(book):
    book.RECORD.write_text("[]")


def number_for_a_record(book):
    book.RECORD.write_text("3")


def folder_for_a_record(book):
    book.RECORD.unlink()
    book.RECORD.mkdir()


def number_of_packages(book):
    book.write_record(book.read_record() | {"packages": 7})


def list_for_a_package(book):
    book.write_record(book.read_record() | {"packages": [["click"]]})


def number_for_an_environment(book):
    book.write_record(book.read_record() | {"environment": 7})


def beheaded(book):
    (book.VENV / "pyvenv.cfg").unlink()


def moved(book):
    record = book.read_record()
    book.write_record(record | {"environment": ["/elsewhere", "python3.11"]})


def other_python(book):
    folder, _ = book.environment()
    book.write_record(book.read_record() | {"environment": [folder, "python3.99"]})


def made_by_hand_without_pip(book):
    book.RECORD.unlink()


@pytest.mark.parametrize(
    "spoil",
    [
        broken_python,
        half_made,
        half_written_record,
        list_for_a_record,
        number_for_a_record,
        folder_for_a_record,
        number_of_packages,
        list_for_a_package,
        number_for_an_environment,
        beheaded,
        moved,
        other_python,
        made_by_hand_without_pip,
    ],
)
def test_an_environment_that_cannot_be_used_is_made_anew(book, spoil):
    steps = (step(book, "libraries"),)
    book.set_up(steps)
    kept = keepsake(book)
    spoil(book)
    book.set_up(steps)
    assert ran(book) == ["libraries", "libraries"]
    assert not kept.exists()


@pytest.mark.parametrize("spoil", [moved, broken_python])
def test_what_cannot_be_made_anew_is_put_back(book, spoil, capsys):
    """As without a network: a reader's environment is not lost for it."""
    book.set_up((step(book, "libraries"),))
    kept = keepsake(book)
    spoil(book)
    with pytest.raises(SystemExit, match="Could not install libraries"):
        book.set_up((step(book, "libraries", code="exit(1)"),))
    assert kept.exists()
    assert ".venv is as it was.\n" in capsys.readouterr().out
    book.set_up((step(book, "libraries"),))
    assert not kept.exists()
    assert not book.BEFORE.exists()


@posix
def test_an_environment_set_aside_outlives_a_set_up_that_is_killed(book):
    book.set_up((step(book, "libraries"),))
    kept = keepsake(book)
    moved(book)
    dies = step(book, "libraries", code="import os; os.kill(os.getppid(), 9)")
    driver = f"import book; book.set_up((book.{dies!r},))"
    ended = subprocess.run([sys.executable, "-c", driver], cwd=book.ROOT)
    assert ended.returncode == -signal.SIGKILL
    wait_for_the_lock(book)
    with pytest.raises(SystemExit, match="Could not install libraries"):
        book.set_up((step(book, "libraries", code="exit(1)"),))
    assert kept.exists()


def makes_package(book, name):
    """A step that installs a package, as far as a folder or a .py file is one."""
    code = "import pathlib, site; folder = pathlib.Path(site.getsitepackages()[-1])"
    make = "touch" if name.endswith(".py") else "mkdir"
    code += f"; (folder / {name!r}).{make}(exist_ok=True)"
    return step(book, name, code=code)


@pytest.mark.parametrize("deleted", ["torch", "six.py", "."])
def test_deleted_packages_have_the_environment_made_anew(book, deleted):
    names = ["jupyterlab", "six.py", "torch"]
    steps = tuple(makes_package(book, name) for name in names)
    book.set_up(steps)
    assert book.to_do(steps) == []
    kept = keepsake(book)
    (packages,) = book.VENV.glob("[Ll]ib/**/site-packages")
    gone = packages / deleted
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    book.set_up(steps)
    assert book.packages() == ["pyvenv.cfg", *names]
    assert not kept.exists()


def test_packages_that_a_learner_adds_are_kept(book):
    steps = (makes_package(book, "jupyterlab"),)
    book.set_up(steps)
    (packages,) = book.VENV.glob("[Ll]ib/**/site-packages")
    for name in ("mine", "mine-7.1.dist-info", "__pycache__"):
        (packages / name).mkdir()
    assert book.to_do(steps) == []
    shutil.rmtree(packages / "mine")
    assert book.to_do(steps) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".venv", r"environment in .*\.venv could not be removed: .*\n.*move \.venv"),
        ("_build", r"_build cannot be written: .*\nMove away"),
    ],
)
def test_a_file_in_the_way_is_explained(book, name, message):
    (book.ROOT / name).touch()
    with pytest.raises(SystemExit, match=message):
        book.set_up((step(book, "libraries"),))


@pytest.mark.parametrize("folder", ["_build/set-up.log", "_build/set-up.lock"])
def test_a_folder_in_the_way_is_explained(book, folder):
    (book.ROOT / folder).mkdir(parents=True)
    (book.ROOT / "requirements").mkdir()
    for name in ("lock", "torch", "models"):
        (book.ROOT / "requirements" / f"{name}.txt").touch()
    (book.ROOT / "pyproject.toml").touch()
    ended = subprocess.run(
        [sys.executable, "book.py", "doctor"],
        cwd=book.ROOT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert str(Path(folder)) in ended.stderr
    assert ended.stderr.endswith(", then run the same command.\n")


@pytest.mark.parametrize("before", [True, False])
def test_a_missing_file_of_a_step_is_named(book, before):
    steps = (step(book, "libraries"),)
    if before:
        book.set_up(steps)
    (book.ROOT / "libraries.txt").unlink()
    with pytest.raises(SystemExit, match=r"git checkout -- libraries\.txt$"):
        book.set_up(steps)


def test_an_environment_made_by_hand_is_filled_and_kept(book):
    venv.EnvBuilder(symlinks=os.name != "nt").create(book.VENV)
    (packages,) = book.VENV.rglob("site-packages")
    (packages / "pip.py").touch()
    kept = keepsake(book)
    book.set_up((step(book, "libraries"),))
    assert ran(book) == ["libraries"]
    assert kept.exists()


def test_a_failed_step_names_its_error_and_its_log_and_spares_the_rest(book, capsys):
    no_match = "print('ERROR: No matching distribution found for torch'); exit(1)"
    steps = (step(book, "libraries"), step(book, "torch", code=no_match))
    with pytest.raises(SystemExit) as ended:
        book.set_up(steps)
    assert str(ended.value) == (
        "failed\n"
        "Could not install torch.\n"
        "ERROR: No matching distribution found for torch\n"
        "The same command tries again; what was fetched is kept.\n"
        f"Details: {Path('_build', 'set-up.log')}"
    )
    kept = keepsake(book)
    book.set_up((steps[0], step(book, "torch")))
    assert ran(book) == ["libraries", "torch"]
    assert kept.exists()


def test_without_a_network_the_message_says_so(tmp_path):
    """With the real pip, as the sign that it gives changes over the years."""
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for name in ("book.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    ended = subprocess.run(
        [BASE_PYTHON, "book.py", "lab"],
        cwd=tmp_path,
        env=os.environ | CLOSED_PORT,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert "1/4 JupyterLab and the libraries (120 MB) ... " in ended.stdout
    first, error, connection, again, details = ended.stderr.splitlines()[1:]
    assert first == "Could not install JupyterLab and the libraries (120 MB)."
    assert error.startswith("ERROR: No matching distribution found for ")
    assert connection.startswith("There was no connection: check network, proxy")
    assert again.startswith("The same command tries again")
    assert (tmp_path / details.removeprefix("Details: ")).is_file()


def test_two_set_ups_at_once_are_kept_apart(book):
    with book.only_one_set_up(), pytest.raises(SystemExit, match="Another set-up"):
        book.set_up((step(book, "libraries"),))
    book.set_up((step(book, "libraries"),))
    assert ran(book) == ["libraries"]


@posix
def test_a_step_that_outlives_the_set_up_keeps_others_out(book):
    lasts = step(book, "torch", code="print('asleep', flush=True); input()")
    driver = f"import book; book.set_up((book.{lasts},))"
    read_end, write_end = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", driver],
        cwd=book.ROOT,
        stdin=read_end,
        stdout=subprocess.DEVNULL,
    )
    os.close(read_end)
    while not (book.LOG.exists() and "asleep" in book.LOG.read_text()):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    with pytest.raises(SystemExit, match="Another set-up is at work"):
        book.set_up((lasts,))
    os.close(write_end)  # the step ends
    wait_for_the_lock(book)
    book.set_up((step(book, "torch"),))
    assert ran(book) == ["torch"]


def test_an_environment_that_cannot_be_removed_is_explained(book, monkeypatch):
    book.set_up((step(book, "libraries"),))
    half_made(book)

    def not_empty(path):
        raise OSError(39, "Directory not empty", str(path))

    monkeypatch.setattr(book.shutil, "rmtree", not_empty)
    with pytest.raises(
        SystemExit, match=r"could not be removed: .*not empty.*\n.*wait"
    ):
        book.set_up((step(book, "libraries"),))


def test_debian_without_venv_is_told_the_package(book, monkeypatch):
    monkeypatch.setattr(book.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"sudo apt install python3\.\d+-venv"):
        book.set_up((step(book, "libraries"),))


def test_a_failing_venv_is_explained(book, monkeypatch):
    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr(book.venv, "create", full)
    with pytest.raises(SystemExit, match="could not be made in .*No space left"):
        book.set_up((step(book, "libraries"),))


def test_an_old_python_is_told_what_to_do():
    code = SOURCE.read_text("utf-8")
    ast.parse(code, feature_version=(3, 7))
    script = "import sys; sys.version_info = (3, 9, 18); exec(sys.stdin.read())"
    ended = subprocess.run(
        [sys.executable, "-c", script], input=code, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("The book needs Python 3.11 or newer; this is 3.9 (")
    assert "python3.12 book.py lab" in ended.stderr


def test_without_a_task_the_tasks_are_listed(book):
    for words in ([], ["--help"], ["publish"]):
        ended = subprocess.run(
            [sys.executable, SOURCE, *words], capture_output=True, text=True
        )
        assert re.findall(r"^  ([\w-]+) ", ended.stdout, re.M) == list(book.TASKS)
        assert ended.returncode == (1 if words == ["publish"] else 0)
    assert ended.stderr == "There is no task 'publish'.\n"


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_on_a_task_comes_before_any_set_up(book, commands, capsys, option):
    for name, function in book.TASKS.items():
        assert task(book, name, option) is None
        words = capsys.readouterr().out
        assert words == f"python3 book.py {name}\n\n  {function.__doc__}\n"
    assert "--no-browser" in book.lab.__doc__
    assert commands == []


@pytest.fixture
def commands(book, monkeypatch):
    """What a task runs, in order; nothing is run, and all of it ends well."""
    seen = []
    monkeypatch.setattr(book, "set_up", lambda steps: seen.append(steps))
    monkeypatch.setattr(book, "call", lambda *words: seen.append(words) and 0)

    def become(*words, folder=book.ROOT):
        seen.append(words if folder == book.ROOT else (*words, folder))
        sys.exit(0)

    monkeypatch.setattr(book, "become", become)
    monkeypatch.setitem(os.environ, "PATH", os.environ["PATH"])
    (book.ROOT / "chapters" / "exercises").mkdir(parents=True)
    for name in ("07_many.ipynb", "02_one.ipynb", "exercises/02_one.ipynb"):
        (book.ROOT / "chapters" / name).touch()
    return seen


def task(book, *words):
    with pytest.raises(SystemExit) as ended:
        book.main(list(words))
    return ended.value.code


@pytest.mark.parametrize("words", [["doctor", "extra"], ["lint", "-x"], ["lock", "-n"]])
def test_a_task_without_options_says_so(book, commands, words):
    name, option = words
    message = f"The task {name} takes no options, and was given '{option}'."
    assert task(book, *words) == message
    assert commands == []


@pytest.mark.parametrize(
    ("name", "options", "marks"),
    [
        ("test", ["-x"], ["-m", "not slow", "-x"]),
        ("test-all", [], []),
        ("test-all", ["-m", "slow"], ["-m", "slow"]),
    ],
)
def test_test_runs_every_check(book, commands, name, options, marks):
    book.main([name, *options])
    steps, check, layout, pytest_call = commands
    assert steps is book.MAINTAINER
    assert check == ("-m", "ruff", "check")
    assert layout == ("-m", "ruff", "format", "--check")
    names = ("02_one.ipynb", "07_many.ipynb", "exercises/02_one.ipynb")
    notebooks = [book.ROOT / "chapters" / name for name in names]
    expected = ["-m", "pytest", "-rs", "--doctest-modules", "tests", "mha_teach"]
    expected += ["--nbval", *notebooks, *marks]
    assert pytest_call == tuple(expected)


@pytest.mark.parametrize("broken", ["check", "format", "pytest"])
def test_test_fails_with_any_of_its_checks_and_runs_them_all(
    book, commands, monkeypatch, broken
):
    def call(*words):
        commands.append(words)
        return 1 if broken in words else 0

    monkeypatch.setattr(book, "call", call)
    ends = task(book, "test")
    names = {"check": "ruff check", "format": "ruff format", "pytest": "pytest"}
    assert ends == f"Failed: {names[broken]}"
    assert len(commands) == 4


def test_test_of_named_files_is_pytest_alone(book, commands):
    task(book, "test", "tests/test_masks.py", "-k", "causal")
    words = ("-m", "pytest", "tests/test_masks.py", "-k", "causal")
    assert commands == [book.MAINTAINER, words]


@pytest.mark.parametrize(
    ("words", "steps", "command"),
    [
        (["lab", "--debug"], "LEARNER", (*CLI, "lab", "--debug")),
        (["site"], "LEARNER", ("tools/site.py",)),
        (["notebooks", "07"], "LEARNER", ("tools/notebooks.py", "07")),
        (["bench"], "LEARNER", ("-m", "benchmarks")),
        (["lock"], "MAINTAINER", ("tools/lock.py",)),
    ],
)
def test_the_other_tasks_set_up_and_hand_over(book, commands, words, steps, command):
    assert task(book, *words) == 0
    assert commands == [getattr(book, steps), command]


def test_doctor_speaks_in_the_folder_that_it_was_asked_in(book, commands):
    task(book, "doctor")
    command = ("-P", str(book.ROOT / "mha_teach" / "cli.py"), "doctor", os.getcwd())
    assert commands == [book.LEARNER, command]


def test_the_environment_comes_first_on_the_path(book, commands):
    task(book, "doctor")
    assert os.environ["PATH"].startswith(str(book.PYTHON.parent) + os.pathsep)


@pytest.mark.parametrize("variable", ["PYTHONPATH", "PIP_TARGET", "PIP_USER"])
def test_what_leads_out_of_the_environment_is_left_aside(
    book, commands, monkeypatch, variable
):
    monkeypatch.setenv(variable, "/elsewhere")
    task(book, "doctor")
    assert variable not in os.environ


def test_what_the_tasks_and_the_set_up_name_is_there(book):
    for each in book.MAINTAINER:
        assert all((ROOT / name).is_file() for name in each.files)
    named = re.findall(r'"((?:tools|mha_teach)/\w+\.py)"', SOURCE.read_text("utf-8"))
    assert len(set(named)) == 4
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert (ROOT / "benchmarks" / "__main__.py").is_file()


def test_makefile_workflows_and_hooks_name_real_tasks(book):
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(r"^(.+):\n\tpython3 book\.py \$@", makefile, re.M)[1].split() == [
        *book.TASKS
    ]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    texts = [path.read_text("utf-8") for path in ROOT.glob(".github/workflows/*.yml")]
    texts += [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    texts.append((ROOT / ".ci" / "run").read_text("utf-8"))
    texts.append(CONTRIBUTING)
    named = re.findall(r"python3? book\.py ([\w-]+)", "\n".join(texts))
    assert set(named) >= {"test", "test-all", "site", "lint", "notebooks", "lab"}
    assert set(named) <= set(book.TASKS)


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_what_contributing_names_is_there():
    table = re.search(r"(?s)## Where things go\n(.+?)\n## ", CONTRIBUTING)[1]
    places = re.findall(r"`([\w.]+/[\w./]*)`", table)
    assert {"theme/", "benchmarks/", "tools/", "mha_teach/jupyter/"} <= set(places)
    missing = [name for name in places if not (ROOT / name).exists()]
    assert missing == ["chapters/NN_name.py"]
    rule = re.search(r"(?s)Imports point one way\*\*: (.+?)`costs`", CONTRIBUTING)[1]
    modules = re.findall(r"`(\w+)`", rule)
    assert modules[:3] == ["masks", "cache", "attention"]
    assert all((ROOT / "mha_teach" / f"{name}.py").is_file() for name in modules)


@pytest.fixture
def clone(tmp_path):
    """A fresh clone in a folder whose name has a space."""
    folder = tmp_path / "a clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    return folder


@posix
@pytest.mark.slow
def test_a_clone_sets_itself_up_opens_the_lab_and_stays_clean(clone, tmp_path):
    def doctor(**more):
        return subprocess.run(
            [BASE_PYTHON, "book.py", "doctor"],
            cwd=clone,
            env=os.environ | more,
            capture_output=True,
            text=True,
        )

    first = doctor()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "4/4 a pretrained encoder" in first.stdout
    again = doctor(**CLOSED_PORT)
    assert again.returncode == 0
    assert "Setting up" not in again.stdout

    labs = []

    def start():
        command = [BASE_PYTHON, "book.py", "lab"]
        labs.append(Terminal(command, clone, tmp_path / f"home {len(labs)}"))
        return labs[-1]

    try:
        first, second = start(), start()  # the port is taken
        assert "Copied to my-work: " in first.text()
        assert first.server != second.server
        assert all(lab.opens_its_notebook() for lab in labs)
        assert [lab.interrupt() for lab in labs] == [0, 0]
        assert start().opens_its_notebook()
    finally:
        for lab in labs:
            lab.close()

    status = ["git", "status", "--porcelain"]
    assert subprocess.run(status, cwd=clone, capture_output=True).stdout == b""
