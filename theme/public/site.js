// Everything here is an extra: without it, pages still read, fold, link and print.
const root = document.querySelector("script[data-root]").dataset.root;
const html = document.documentElement;
const find = (selector) => document.querySelector(selector);
const findAll = (selector) => [...document.querySelectorAll(selector)];

function create(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function themeButton() {
  const button = find("#theme");
  const name = () => {
    button.textContent = html.dataset.theme === "dark" ? "Light" : "Dark";
    button.setAttribute(
      "aria-label",
      `Switch to the ${button.textContent.toLowerCase()} theme`,
    );
  };
  button.addEventListener("click", () => {
    html.dataset.theme = html.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("mha-teach.theme", html.dataset.theme);
    } catch {
      // storage is blocked: the choice holds for this page
    }
  });
  new MutationObserver(name).observe(html, { attributeFilter: ["data-theme"] });
  name();
  button.hidden = false;
}

/** What scrolls sideways must be reachable by key; what does not is no tab stop. */
function scrollableRegions() {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  findAll("pre, .scroll, .equation, .html-output").forEach((region) =>
    observer.observe(region),
  );
}

/** Tab sets that offer the same choice change together. */
function syncedTabs() {
  document.addEventListener("change", ({ target }) => {
    const { sync } = target.dataset;
    if (!sync) return;
    findAll(`input[data-sync="${CSS.escape(sync)}"]`).forEach(
      (tab) => (tab.checked = true),
    );
  });
}

/** The outline marks the section that the reader is in. */
function markSection() {
  const links = new Map(
    findAll(".outline a").map((link) => [link.hash.slice(1), link]),
  );
  const headings = [...links.keys()].map((id) => document.getElementById(id));
  const mark = () => {
    const passed = headings.filter(
      (heading) => heading.getBoundingClientRect().top < 120,
    );
    const current = passed.at(-1)?.id;
    links.forEach((link, id) => link.classList.toggle("current", id === current));
  };
  addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  mark();
}

/**
 * Definitions and references, shown on hover and on focus; Escape puts them away.
 *
 * A finger cannot hover: its first tap shows what a link says, its second follows it.
 */
function tips() {
  const tip = create("div", { id: "tip", role: "tooltip", popover: "manual" });
  document.body.append(tip);
  let timer;
  let owner;
  let isFirstTap;
  const hide = () => {
    owner?.removeAttribute("aria-describedby");
    owner = undefined;
    tip.hidePopover();
  };
  const show = (element) => {
    clearTimeout(timer);
    hide();
    owner = element;
    owner.setAttribute("aria-describedby", "tip");
    tip.textContent = element.dataset.tip;
    tip.showPopover();
    const place = element.getBoundingClientRect();
    const left = Math.min(place.left, innerWidth - tip.offsetWidth - 12);
    const above = place.top - tip.offsetHeight - 6;
    tip.style.left = `${Math.max(12, left)}px`;
    tip.style.top = `${above > 60 ? above : place.bottom + 6}px`;
  };
  const hideSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, 200);
  };
  const withMouse = (act) => (event) => event.pointerType === "touch" || act();
  for (const element of findAll("main [title]")) {
    element.dataset.tip = element.title;
    element.removeAttribute("title");
    element.addEventListener(
      "pointerenter",
      withMouse(() => show(element)),
    );
    element.addEventListener("pointerleave", withMouse(hideSoon));
    element.addEventListener("focus", () => show(element));
    element.addEventListener("blur", hide);
    element.addEventListener("pointerdown", ({ pointerType }) => {
      const isLink = element.localName === "a";
      isFirstTap = isLink && pointerType === "touch" && owner !== element;
    });
    element.addEventListener("click", (event) => {
      if (!isFirstTap) return;
      isFirstTap = false;
      event.preventDefault();
      show(element);
    });
  }
  tip.addEventListener("pointerenter", () => clearTimeout(timer));
  tip.addEventListener("pointerleave", hideSoon);
  addEventListener("pointerdown", ({ target }) => {
    if (owner && !owner.contains(target) && !tip.contains(target)) hide();
  });
  addEventListener("keydown", ({ key }) => key === "Escape" && hide());
}

function copyButtons() {
  for (const pre of findAll(".code > pre")) {
    const button = create("button", {
      type: "button",
      className: "copy",
      textContent: "Copy",
    });
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    pre.after(button);
  }
}

/** Han characters are words of their own; other text is split at what is no letter. */
const words = (text) =>
  text.match(/\p{Script=Han}|[^\s\p{P}\p{S}\p{Script=Han}]+/gu) ?? [];

let index;
async function searchIndex() {
  const [{ default: MiniSearch }, response] = await Promise.all([
    import("./vendor/minisearch.js"),
    fetch(`${root}search.json`),
  ]);
  const search = new MiniSearch({
    idField: "url",
    fields: ["title", "section", "text", "code"],
    storeFields: ["title", "section", "text"],
    tokenize: words,
    searchOptions: {
      prefix: true,
      fuzzy: 0.2,
      combineWith: "AND",
      boost: { title: 4, section: 3, code: 0.5 },
    },
  });
  search.addAll(await response.json());
  return search;
}

/** The words around the first match, with every match marked. */
function excerpt({ text, terms }) {
  const literals = terms.map((term) => term.replace(/[^\p{L}\p{N}]/gu, "\\$&"));
  const pattern = new RegExp(`(${literals.join("|")})`, "giu");
  const first = Math.max(0, text.search(pattern) - 40);
  const start = first && text.indexOf(" ", first) + 1;
  const pieces = text.slice(start, start + 150).split(pattern);
  const marked = pieces.map((piece, i) => (i % 2 ? create("mark", {}, piece) : piece));
  return [start ? "… " : "", ...marked, " …"];
}

function searchBox() {
  const input = find("#query");
  const hits = find("#hits");
  const list = hits.querySelector("ul");
  const close = () => (hits.hidden = true);

  const entry = (hit) => {
    const title = create(
      "b",
      {},
      hit.section ? `${hit.title} › ${hit.section}` : hit.title,
    );
    const link = create(
      "a",
      { href: root + hit.id },
      title,
      create("span", {}, ...excerpt(hit)),
    );
    return create("li", {}, link);
  };
  const update = async () => {
    const query = input.value.trim();
    if (query.length < 2) return close();
    let found = [];
    let summary = "The index of the search could not be loaded; type on to try again";
    try {
      index ??= searchIndex();
      found = (await index).search(query).slice(0, 8);
      summary = found.length
        ? `${found.length} ${found.length === 1 ? "place" : "places"}`
        : `Nothing found for “${query}”`;
    } catch {
      index = undefined;
    }
    if (query !== input.value.trim()) return undefined; // a newer search is on its way
    find("#hit-count").textContent = summary;
    list.replaceChildren(...found.map(entry));
    hits.hidden = false;
    return undefined;
  };
  const step = (event, by) => {
    const stops = [input, ...list.querySelectorAll("a")];
    const next = stops[stops.indexOf(document.activeElement) + by];
    if (hits.hidden || !next) return;
    event.preventDefault();
    next.focus();
  };

  input.addEventListener("input", update);
  input.addEventListener("focus", () => input.value && update());
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  input.form.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") step(event, 1);
    if (event.key === "ArrowUp") step(event, -1);
    if (event.key === "Escape") {
      close();
      input.focus();
    }
  });
  addEventListener("click", ({ target }) => input.form.contains(target) || close());
  addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    input.focus();
  });
}

themeButton();
scrollableRegions();
syncedTabs();
markSection();
tips();
copyButtons();
searchBox();
