// The frame around every page: head, header, contents, outline, neighbours, footer.
import { h } from "hastscript";
import { toHtml } from "hast-util-to-html";

/**
 * `view` holds book (see book.mjs), page, body, outline, actions, `root` (the way from
 * the page to the top of the site, such as `../../`) and `reloadFrom` (preview only).
 */
export function layout(view) {
  const { book, page, root, reloadFrom } = view;
  const reload = `new WebSocket('${reloadFrom}').onmessage = () => location.reload()`;
  const body = h("body", [
    h("a.skip", { href: "#main" }, "Skip to the text"),
    header(book, root),
    h("div.frame", [contents(view), main(view)]),
    footer(book, page),
    reloadFrom && h("script", reload),
  ]);
  const html = h("html", { lang: book.lang, dir: book.dir }, [head(view), body]);
  return toHtml(h(null, [{ type: "doctype" }, html]), { allowDangerousHtml: true });
}

function head({ book, page, root }) {
  const isFront = page.slug === book.index;
  const sheets = ["vendor/fonts.css", "vendor/katex.css", "site.css"];
  return h("head", [
    h("meta", { charSet: "utf-8" }),
    h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
    h("title", isFront ? book.title : `${page.title} · ${book.shortTitle}`),
    h("meta", { name: "description", content: page.description || book.description }),
    h("link", { rel: "icon", href: `${root}favicon.svg`, type: "image/svg+xml" }),
    sheets.map((name) => h("link", { rel: "stylesheet", href: root + name })),
    h("script", { src: `${root}theme.js` }),
    h("script", { type: "module", src: `${root}site.js`, dataRoot: root }),
  ]);
}

function header(book, root) {
  const opener = { type: "button", popoverTarget: "contents" };
  const query = { type: "search", placeholder: "Search", autoComplete: "off" };
  return h("header.top", [
    h("button.contents-button", opener, "Contents"),
    h("a.brand", { href: root || "./" }, book.shortTitle),
    h("form.search", { role: "search" }, [
      h("label.unseen", { htmlFor: "query" }, "Search the book"),
      h("input#query", query),
      h("div#hits", { hidden: true }, [h("p#hit-count", { role: "status" }), h("ul")]),
    ]),
    h("button#theme", { type: "button", hidden: true }, "Dark"),
  ]);
}

function contents({ book, page, root }) {
  const link = ({ slug, title, number }) => {
    const current = slug === page.slug ? "page" : undefined;
    const place = number && h("span.chapter-number", number);
    return h("a", { href: book.href(root, slug), ariaCurrent: current }, [
      place,
      title,
    ]);
  };
  const list = (entries) =>
    h(
      "ul",
      entries.map((entry) =>
        h("li", [
          entry.slug === undefined ? h("p.part", entry.title) : link(entry),
          entry.items.length > 0 ? list(entry.items) : undefined,
        ]),
      ),
    );
  const properties = { popover: "auto", ariaLabel: "Contents" };
  return h("nav#contents", properties, list(book.contents));
}

function main({ book, page, body, outline, actions, root }) {
  const items = actions.map((action) => h("li", action));
  const opening = h("div.opening", [
    page.number && h("p.eyebrow", `Chapter ${page.number}`),
    h("h1", page.title),
    items.length > 0 ? h("ul.actions", items) : undefined,
  ]);
  const parts = [opening, onThisPage(outline), body, neighbours(book, page, root)];
  return h("main#main", { tabIndex: -1 }, parts);
}

function onThisPage(headings) {
  if (headings.length < 2) return undefined;
  const items = headings.map(({ level, id, content }) =>
    h("li", { className: `level-${level}` }, h("a", { href: `#${id}` }, content)),
  );
  const list = h("details", [h("summary", "On this page"), h("ul", items)]);
  const title = h("p.outline-title", "On this page");
  return h("nav.outline", { ariaLabel: "On this page" }, h("div", [title, list]));
}

function neighbours(book, page, root) {
  const position = book.pages.findIndex(({ slug }) => slug === page.slug);
  if (position < 0) return undefined;
  const link = (other, rel, label) => {
    const href = book.href(root, other.slug);
    return h(`a.${rel}`, { href, rel }, [h("span", label), other.shortTitle]);
  };
  const previous = book.pages[position - 1];
  const next = book.pages[position + 1];
  return h("nav.neighbours", { ariaLabel: "Neighbouring pages" }, [
    previous && link(previous, "prev", "Previous"),
    next && link(next, "next", "Next"),
  ]);
}

function footer(book, page) {
  const released = page.date ?? book.date;
  return h("footer", [
    h("p", [
      `${book.title} · version ${book.version}`,
      released && [" · ", h("time", { dateTime: released }, released)],
    ]),
    h("div.footer-tools", [
      reportAnError(book, page),
      h("details", [
        h("summary", "Cite this page"),
        h("pre", h("code", citation(book, page))),
      ]),
    ]),
  ]);
}

/** A form in the repository; without one, the lines that help whoever is told. */
function reportAnError(book, page) {
  const where = `Page: ${page.location}\nVersion: ${book.version}`;
  const body = `${where}\n\nWhat is wrong, and what should it say?\n`;
  if (book.repository) {
    const form = new URLSearchParams({ title: `${page.title}: `, body });
    const href = `${book.repository}/issues/new?${form}`;
    return h("p", h("a", { href }, "Report an error"));
  }
  return h("details", [
    h("summary", "Report an error"),
    h("p", "Write to whoever gave you this copy of the book. These lines help:"),
    h("pre", h("code", body)),
  ]);
}

/** A BibTeX entry for the page; for a page outside the reading order, for the book. */
function citation(book, page) {
  const isBook = !page.slug || page.slug === book.index;
  const path = isBook ? "book" : book.path(page.slug);
  const fields = {
    author: book.authors.join(" and "),
    title: isBook ? book.title : page.title,
    howpublished: isBook ? undefined : book.title,
    year: (page.date ?? book.date)?.slice(0, 4),
    note: `Version ${book.version}`,
    url: book.repository,
  };
  const lines = Object.entries(fields)
    .filter(([, value]) => value)
    .map(([name, value]) => `  ${name} = {${value}},\n`);
  return `@misc{${path.replace(/\/$/, "").replace(/\W+/g, "-")},\n${lines.join("")}}`;
}
