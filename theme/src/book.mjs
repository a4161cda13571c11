// The book as a whole: its pages in order, their addresses, what its terms mean.
import { visit } from "./content.mjs";
import { glossaryTerms } from "./terms.mjs";
import { textOf } from "./text.mjs";

const TIP_LENGTH = 240;

export function describeBook({ config, project, pages }) {
  const { options } = config;
  const described = pages.map((page) => describePage(page, project));
  const path = (slug) =>
    slug === project.index
      ? ""
      : `${slug.replaceAll(".", "/").replace(/\/index$/, "")}/`;
  return {
    lang: options.lang ?? "en",
    dir: options.dir,
    version: options.version,
    branch: options.branch ?? "main",
    title: project.title,
    shortTitle: config.title ?? project.title,
    description: project.description,
    date: project.date,
    authors: project.authors?.map(({ name }) => name) ?? [],
    repository: project.github,
    index: project.index,
    pages: described,
    contents: nested(project, described),
    path,
    href: (root, slug) => root + path(slug) || "./",
    explanations: explanations(pages),
    terms: glossaryTerms(pages),
    references: Object.assign({}, ...pages.map((page) => page.references?.cite?.data)),
  };
}

/** The contents may give a page a shorter title than it has on its own. */
function describePage({ slug, location, frontmatter }, project) {
  const { title, description, date } = frontmatter;
  const listed = project.pages.find((page) => page.slug === slug);
  const shortTitle = listed?.short_title ?? frontmatter.short_title ?? title;
  const number = location.match(/^\/chapters\/0?(\d+)_/)?.[1];
  return {
    slug,
    location: location.slice(1),
    title,
    shortTitle,
    description,
    date,
    number,
  };
}

/** MyST lists pages with a level; the navigation wants them inside one another. */
function nested(project, pages) {
  const open = [{ items: [] }];
  for (const listed of [{ level: 1, slug: project.index }, ...project.pages]) {
    const page = pages.find(({ slug }) => slug === listed.slug);
    const title = page?.shortTitle ?? listed.title;
    const entry = { slug: listed.slug, title, number: page?.number, items: [] };
    open.length = Math.min(listed.level, open.length);
    open.at(-1).items.push(entry);
    open.push(entry);
  }
  return open[0].items;
}

/** By id: how a glossary entry begins, and the text of a paragraph that has a label. */
function explanations(pages) {
  const found = {};
  for (const { mdast } of pages) {
    visit(mdast, ({ type, html_id: id, children }) => {
      if (type === "paragraph" && id) found[id] = shortened(textOf(children));
      if (type !== "definitionList") return;
      children.forEach((term, index) => {
        const text = children[index + 1];
        if (text?.type !== "definitionDescription") return;
        const [first] = text.children;
        const isParagraph = first?.type === "paragraph";
        found[term.html_id] = shortened(textOf(isParagraph ? first : text));
      });
    });
  }
  return found;
}

function shortened(text) {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= TIP_LENGTH) return line;
  return `${line.slice(0, line.lastIndexOf(" ", TIP_LENGTH))} …`;
}
