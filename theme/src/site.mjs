// The whole site: MyST's content -> a map from path to text or bytes. Writes no file.
import { h } from "hastscript";
import { describeBook } from "./book.mjs";
import { loadContent } from "./content.mjs";
import { layout } from "./layout.mjs";
import { renderPage } from "./render.mjs";
import { searchRecords } from "./search.mjs";
import { renderSource, sourceRecords } from "./source.mjs";
import { textOf } from "./text.mjs";

const SOURCE_LIMIT = 200_000;

/**
 * Build every page from what MyST's content server offers below `origin`.
 *
 * Returns `files`, and `problems`: lines that name the page and what is wrong with it.
 */
export async function buildSite(origin, { baseUrl = "", reloadFrom } = {}) {
  const content = await loadContent(origin);
  const book = describeBook(content);
  const files = new Map();
  const records = [];
  const problems = [];
  const sourceFiles = new Map();
  for (const [index, source] of content.pages.entries()) {
    const page = book.pages[index];
    const path = book.path(page.slug);
    try {
      const site = siteOf(content, book, page, files, sourceFiles);
      const rendered = renderPage(source, site);
      const actions = actionsOf(source, book, site);
      const view = { book, page, root: site.root, actions, reloadFrom, ...rendered };
      files.set(`${path}index.html`, layout(view));
      records.push(...searchRecords(page.title, path, rendered.body));
      const found = [...rendered.problems];
      if (!textOf(rendered.body).trim()) found.push("the page is empty");
      problems.push(...found.map((problem) => `${page.location}: ${problem}`));
    } catch (error) {
      problems.push(`${page.location}: ${error.stack}`);
    }
  }
  for (const [path, text] of sourceFiles) {
    files.set(`source/${path}.html`, sourcePage(book, path, text));
    records.push(...sourceRecords(path, text));
  }
  files.set("search.json", JSON.stringify(records));
  files.set("404.html", notFound(book, baseUrl));
  return { files, problems };
}

/** What the renderer may ask of the site, seen from one page. */
function siteOf({ blobs, project }, book, page, files, sourceFiles) {
  const root = "../".repeat(book.path(page.slug).split("/").length - 1);
  const put = (path, content) => {
    files.set(path, content);
    return root + path;
  };
  const file = ({ url, urlSource }) => {
    const { pathname, hash } = new URL(urlSource, `file:///${page.location}`);
    const path = decodeURI(pathname).slice(1);
    const content = blobs.get(url);
    const isSource = isText(content) && !path.endsWith(".ipynb");
    if (!isSource) return put(`files/${path}`, content);
    sourceFiles.set(path, content.toString());
    return `${root}source/${path}.html${hash}`;
  };
  const beside = (name, content) => {
    const folder = book.path(page.slug);
    const download = `${folder.split("/").at(-2) ?? page.slug}-${name}`;
    files.set(folder + download, content);
    return { href: download, download };
  };
  return {
    root,
    put,
    file,
    beside,
    page: (url) => book.href(root, url.slice(1) || project.index),
    asset: (url) => (url.startsWith("/") ? put(`assets${url}`, blobs.get(url)) : url),
    blob: (url) => blobs.get(url),
    explanation: (id) => book.explanations[id],
    terms: page.number ? book.terms : [],
    reference: (id) => book.references[id]?.html.replace(/<[^>]+>/g, ""),
  };
}

const isText = (content) => content.length < SOURCE_LIMIT && !content.includes(0);

function sourcePage(book, path, text) {
  const root = "../".repeat(path.split("/").length);
  const page = { title: path, location: path };
  const href = `${book.repository}/blob/${book.branch}/${path}`;
  const actions = book.repository ? [h("a", { href }, "View in the repository")] : [];
  return layout({ book, page, root, actions, ...renderSource(path, text) });
}

/** Where a reader can take a page: the notebook, and what a repository offers. */
function actionsOf({ frontmatter, location }, book, site) {
  const actions = [];
  const add = (text, href, properties) =>
    actions.push(h("a", { href, ...properties }, text));
  const notebook = frontmatter.exports.find(({ format }) => format === "ipynb");
  if (notebook) {
    const href = site.put(`files${location}`, site.blob(notebook.url));
    add("Download the notebook", href, { download: notebook.filename });
    actions.push(needsTheBook());
  }
  const name = book.repository?.match(/github\.com\/([^/]+\/[^/]+)/)?.[1];
  if (name && notebook) {
    const colab = "https://colab.research.google.com/github";
    const binder = "https://mybinder.org/v2/gh";
    add("Open in Colab", `${colab}/${name}/blob/${book.branch}${location}`);
    add(
      "Open in Binder",
      `${binder}/${name}/${book.branch}?urlpath=lab/tree${location}`,
    );
  }
  if (name) {
    const source = location.replace(/^(\/chapters\/.+)\.ipynb$/, "$1.py");
    add("Edit this page", `${book.repository}/edit/${book.branch}${source}`);
  }
  return actions;
}

const needsTheBook = () =>
  h("span", [
    "To run it you need a clone of the book, where ",
    h("code", "python3 book.py lab"),
    " sets up its package ",
    h("code", "mha_teach"),
    ".",
  ]);

function notFound(book, baseUrl) {
  const page = { title: "There is no such page", location: "404" };
  const advice = "The address may have changed. Search above, or use the contents.";
  const body = [h("p", advice)];
  return layout({ book, page, root: `${baseUrl}/`, body, outline: [], actions: [] });
}
