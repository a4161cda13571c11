"""Build the static site into _build/html; fail on what a reader would trip over.

``python tools/site.py`` from the project's root. MyST's own ``--strict`` lets broken
references, unknown directives and missing files pass; this does not.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

MAX_PAGE_BYTES = 1_500_000
MARK = re.compile(r"^\s*(?:⛔|⚠)\ufe0f?\s*(.+)$", re.M)
CSS_URL = re.compile(
    r"""(?:\burl\(|@import\s|image-set\()\s*(?:url\()?['"]?([^'")\s]+)""", re.I
)
SRCSET_URL = re.compile(r"(?:^|,)\s*([^\s,]\S*?)(?=,?(?:\s|$))")
XML_NAMESPACE = r"www\.w3\.org/(?:1998|1999|2000)/"
SCRIPT_URL = re.compile(
    rf"""(?:https?|wss?):(?:\\?/){{2}}(?!{XML_NAMESPACE})[^\s'"`)\\<]*"""
    r"""|(?<=['"`])//[\w-]+\.[^\s'"`)]+"""
)
HOME_PATH = re.compile(
    r"(?<![\w.:/])/(?:home|root|Users|mnt|opt)/[\w.-]+"
    r"|(?<!\w)[A-Za-z]:[\\/]+Users[\\/]+[\w.-]*"
    r"|\bfile:///[\w.:%/-]+"
)
TEXT_SUFFIXES = {".css", ".html", ".ipynb", ".js", ".json", ".svg", ".txt"}


class SiteError(Exception):
    """The site cannot be published as it stands; the message says why, line by line."""


def build(root: Path) -> None:
    """Build the site of the project in ``root``.

    Raises
    ------
    SiteError
        If MyST or the theme reports an error or a warning, or if a written page is
        missing, empty or too heavy, links nowhere, loads anything from another host,
        or names a path of this machine, or if a notebook holds a cell that failed.
        _build/html is then removed: a site with a fault cannot be published.
    """
    root = root.resolve()
    site = root / "_build" / "html"
    place = site.parent if site.parent.exists() else root
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise SiteError(f"{place} is no folder, or cannot be written; see to it first")
    try:
        run_myst(root)
        if problems := check(site, expected_pages(root), root):
            raise SiteError("\n".join(problems))
    except BaseException:  # of Ctrl-C as well
        shutil.rmtree(site, ignore_errors=True)
        raise


def run_myst(root: Path) -> None:
    """Run MyST and the theme; whatever they mark in their log counts as an error."""
    if shutil.which("node") is None:
        raise SiteError("the site needs Node.js 20 or newer, and no `node` was found")
    myst = shutil.which("myst", path=Path(sys.executable).parent)
    if myst is None:
        raise SiteError(f"mystmd is not installed for {sys.executable}")
    result = subprocess.run(
        [myst, "build", "--html", "--strict"],
        cwd=root,
        env={**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if marked := MARK.findall(result.stdout):
        raise SiteError("\n".join(dict.fromkeys(marked)))
    if result.returncode != 0:
        raise SiteError(f"myst build failed:\n{result.stdout[-2000:]}")


def expected_pages(root: Path) -> list[str]:
    """Return the path of each page that the table of contents names."""
    config = json.loads((root / "_build/site/config.json").read_text("utf-8"))
    [project] = config["projects"]
    slugs = [page["slug"] for page in project["pages"] if "slug" in page]
    folders = [slug.removesuffix(".index").replace(".", "/") for slug in slugs]
    return ["index.html", *(f"{folder}/index.html" for folder in folders)]


def check(site: Path, expected: list[str], root: Path) -> list[str]:
    """Return what is wrong with a written site, one line for each fault."""
    pages = {path: Page(path, site) for path in sorted(site.rglob("*.html"))}
    faults = [(name, "missing") for name in expected if site / name not in pages]
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found = [*page.faults(), *page.broken_links(pages), *page.bad_loads()]
        faults += [(name, fault) for fault in found]
    for path in sorted(site.rglob("*")):
        if path.suffix in TEXT_SUFFIXES:
            name = path.relative_to(site).as_posix()
            text = path.read_text("utf-8")
            faults += [(name, f) for f in text_faults(text, root)]
            if path.suffix == ".ipynb":
                faults += [(name, f) for f in failed_cells(text)]
    return [f"{name}: {fault}" for name, fault in faults]


def text_faults(text: str, root: Path) -> list[str]:
    """Return the paths of this machine and the hosts of style sheets in a text."""
    paths = HOME_PATH.findall(text) + [str(root)] * (str(root) in text)
    hosts = [url for url in CSS_URL.findall(text) if is_foreign(url)]
    return [
        *(f"names a path of this machine: {path}" for path in dict.fromkeys(paths)),
        *(f"loads {url} from another host" for url in dict.fromkeys(hosts)),
    ]


def failed_cells(notebook: str) -> list[str]:
    """Return the cells of a notebook that raised, where none was meant to."""
    return [
        f"the cell {cell.get('id', number)} raised {output['ename']}; "
        "mend it, or tag it raises-exception where the error is the lesson"
        for number, cell in enumerate(json.loads(notebook)["cells"], start=1)
        for output in cell.get("outputs", [])
        if output["output_type"] == "error"
        and "raises-exception" not in cell["metadata"].get("tags", [])
    ]


def is_foreign(url: str) -> bool:
    """Say whether a browser would ask another host for this address."""
    return bool(urlsplit(url).netloc)


class Page(HTMLParser):
    """The parts of a written page that can be wrong."""

    LOADS = {"data", "href", "poster", "src", "xlink:href"}
    LINKS = {"a", "area"}
    NOT_TEXT = {"h1", "nav", "script", "style"}

    def __init__(self, path: Path, site: Path):
        super().__init__()
        self.path = path
        self.site = site
        self.ids = Counter()
        self.links = []
        self.loads = set()
        self.foreign = set()
        self.images_without_alt = 0
        self.words = 0
        self.open_tags = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.open_tags.append(tag)
        if "id" in values:
            self.ids[values["id"]] += 1
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag not in self.LINKS:
            self.add_loads(values)
        for name, value in values.items():
            if value and name == "style":
                self.foreign |= set(filter(is_foreign, CSS_URL.findall(value)))
            elif value and (name == "srcdoc" or name.startswith("on")):
                self.foreign |= set(SCRIPT_URL.findall(value))
        self.images_without_alt += tag == "img" and "alt" not in values

    def add_loads(self, values):
        """Note the addresses that a browser asks for on its own."""
        urls = [values[name] for name in self.LOADS & values.keys()]
        for name in {"imagesrcset", "srcset"} & values.keys():
            urls += SRCSET_URL.findall(values[name] or "")
        self.loads |= {url for url in urls if url and not url.startswith("data:")}

    def handle_endtag(self, tag):
        if tag in self.open_tags:
            while self.open_tags.pop() != tag:
                pass

    def handle_data(self, data):
        if self.open_tags[-1:] == ["script"]:
            self.foreign |= set(SCRIPT_URL.findall(data))
        if "main" in self.open_tags and self.NOT_TEXT.isdisjoint(self.open_tags):
            self.words += len(data.split())

    def faults(self) -> list[str]:
        """Return what is wrong with this page alone."""
        faults = [
            f"the id {k!r} is used {n} times" for k, n in self.ids.items() if n > 1
        ]
        if self.images_without_alt:
            faults.append(f"{self.images_without_alt} images without alt text")
        if not self.words:
            faults.append("the page is empty")
        return faults

    def broken_links(self, pages: dict[Path, "Page"]) -> list[str]:
        """Return the links that lead to no file, or to no place within a page."""
        faults = []
        for link in dict.fromkeys(self.links):
            url, place = urldefrag(link)
            if urlsplit(url).scheme or is_foreign(url):
                continue
            target = self.resolve(url)
            if not (target.is_relative_to(self.site) and target.is_file()):
                faults.append(f"links to {link}, which does not exist")
            elif place and target in pages and unquote(place) not in pages[target].ids:
                faults.append(f"links to {link}, but there is no such place")
        return faults

    def bad_loads(self) -> list[str]:
        """Return what the page cannot or must not load, and whether it is too heavy."""
        foreign = sorted(self.foreign.union(filter(is_foreign, self.loads)))
        files = [self.resolve(url) for url in sorted(self.loads) if not is_foreign(url)]
        gone = [path.name for path in files if not path.is_file()]
        size = sum(p.stat().st_size for p in {self.path, *files} if p.is_file())
        return [
            *(f"loads {url} from another host" for url in foreign),
            *(f"loads {name}, which does not exist" for name in gone),
            *[f"{size:,} bytes with its assets; {MAX_PAGE_BYTES:,} are allowed"]
            * (size > MAX_PAGE_BYTES),
        ]

    def resolve(self, url: str) -> Path:
        """Return the file that a server would send for an address on this page."""
        path = unquote(urlsplit(url).path).removeprefix(os.environ.get("BASE_URL", ""))
        if not path:
            return self.path
        base = self.site if path.startswith("/") else self.path.parent
        target = (base / path.lstrip("/")).resolve()
        return target / "index.html" if target.is_dir() else target


def main() -> None:
    """Build the site of the project that this is run in, and say how to look at it."""
    try:
        build(Path.cwd())
    except SiteError as error:
        sys.exit(f"The site was not built.\n{error}")
    except KeyboardInterrupt:
        print("\nInterrupted; the site was not built.")
        sys.exit(130)
    print(
        "The site is in _build/html. To read it, run this and open "
        "http://127.0.0.1:8000:\n"
        "  python3 -m http.server --bind 127.0.0.1 --directory _build/html"
    )


if __name__ == "__main__":
    main()
