// The renderer on page trees that MyST made of test/project (tests/test_theme.py holds
// them up to date).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { toHtml } from "hast-util-to-html";
import { describeBook } from "../src/book.mjs";
import { renderPage } from "../src/render.mjs";
import { searchRecords } from "../src/search.mjs";
import { renderSource, sourceRecords } from "../src/source.mjs";
import { glossaryTerms, withFirstUses } from "../src/terms.mjs";
import { raw, text, textOf } from "../src/text.mjs";

const sample = (name) =>
  JSON.parse(readFileSync(new URL(`samples/${name}.json`, import.meta.url)));
const site = {
  page: (url) => `PAGE${url}`,
  file: ({ urlSource }) => `FILE:${urlSource}`,
  asset: (url) => `ASSET${url}`,
  blob: (url) => Buffer.from(`contents of ${url}`),
  beside: (name, bytes) => ({
    href: `${name}?${bytes.length}`,
    download: `NEAR-${name}`,
  }),
  explanation: (id) => (id.startsWith("term-") ? `what ${id} means` : undefined),
  reference: (id) => `where ${id} is`,
  terms: [],
};
const inChapter = { ...site, terms: glossaryTerms([sample("glossary")]) };
const serialise = (children) =>
  toHtml({ type: "root", children }, { allowDangerousHtml: true });
const attend = readFileSync(new URL("project/attend.py", import.meta.url), "utf8");
const everything = renderPage(sample("index"), site);
const notebook = renderPage(sample("chapters.notebook"), inChapter);
const glossary = renderPage(sample("glossary"), site);
const page = serialise(everything.body);
const cells = serialise(notebook.body);

// Pages are long: say what was looked for, not all that was there.
const has = (html, pattern) =>
  assert.ok(pattern.test(html), `nothing matches ${pattern}`);
const lacks = (html, pattern) =>
  assert.ok(!pattern.test(html), `something matches ${pattern}`);
const paragraph = (...children) => ({ type: "paragraph", children });
const render = (...children) => {
  const mdast = { type: "root", children: [{ type: "block", children }] };
  const { body, problems } = renderPage({ mdast }, site);
  return { html: serialise(body), problems };
};
const termLink = (id, word) =>
  `<a href="PAGE/glossary#${id}" title="what ${id} means" class="term">${word}</a>`;
const nextCell =
  /<div class="cell"|<details class="fold"><summary>Show the (?:check|cell)/;
const cellOf = (id) => cells.slice(cells.indexOf(`id="${id}"`)).split(nextCell)[0];

test("the samples hold nothing that the theme does not know", () => {
  assert.deepEqual(everything.problems, []);
  assert.deepEqual(notebook.problems, []);
  assert.deepEqual(glossary.problems, []);
});

test("an unknown node is a problem that names the node", () => {
  const { problems } = render(
    { type: "mermaid", value: "A --> B" },
    { type: "mystRole", name: "emphasiz" },
  );
  assert.deepEqual(problems, [
    'the theme does not know the node type "mermaid"',
    'the theme does not know the node type mystRole "emphasiz"',
  ]);
});

test("text is escaped, formulas and outputs are not", () => {
  has(render(paragraph(text('a < b & "c"'))).html, /<p>a &#x3C; b &#x26; "c"<\/p>/);
  has(page, /<span class="katex"><span class="katex-mathml"><math/);
});

test("the outline has the headings in order, with formulas and without links", () => {
  assert.deepEqual(
    everything.outline.map(({ level, id }) => [level, id]),
    [
      [2, "boxes-of-code-and-d-k"],
      [3, "tabs"],
      [3, "figures-and-tables"],
    ],
  );
  has(page, /<h3 id="tabs"><a href="#tabs">Tabs<\/a><\/h3>/);
});

test("a labelled equation has its number, a tagged one its tag and no second number", () => {
  has(
    page,
    /<div class="equation" id="attention">.*?<span class="number">\(1\)<\/span><\/div>/s,
  );
  assert.equal(page.match(/class="number"/g).length, 1);
  has(page, /<span class="tag">/);
});

test("formulas inside raw HTML are rendered", () => {
  const folded = page.slice(page.indexOf("Raw HTML"));
  has(folded, /<p>With <span class="katex">/);
  has(folded, /<div class="equation"><span class="katex-display">/);
});

test("raw HTML may fold a solution", () => {
  has(
    page,
    /<details class="solution"><summary>A worked solution<\/summary><p>Nobody may find/,
  );
});

test("references lead to their target on this page or on another", () => {
  has(page, /<a href="#attention">\(1\)<\/a>/);
  has(page, /<a href="PAGE\/chapters\/notebook">notebook<\/a>/);
  has(page, /<a href="PAGE\/chapters\/notebook#a-section">its section<\/a>/);
  has(page, /<a href="FILE:attend.py#L8">a line<\/a>/);
});

test("a broken link or reference is a problem that names it", () => {
  const link = { type: "link", url: "./gone.md", children: [text("gone")] };
  const reference = {
    type: "crossReference",
    label: "eq-gone",
    children: [text("gone")],
  };
  assert.deepEqual(render(paragraph(link, reference)).problems, [
    "the link to ./gone.md leads to no file of this project",
    'the reference to "eq-gone" has no target',
  ]);
});

test("terms, abbreviations and citations say on hover what they mean", () => {
  has(
    page,
    /<a href="PAGE\/glossary#term-mask" title="what term-mask means" class="term">mask<\/a>/,
  );
  has(
    page,
    /<abbr title="multi-head attention" tabindex="0">MHA<\/abbr> and <abbr title="multi-head attention">MHA<\/abbr> again/,
  );
  has(page, /\(<a href="#ref-vaswani2017" title="where vaswani2017 is">Vaswani/);
  has(page, /<li id="ref-michel2019">Michel, P/);
});

test("a chapter marks the first use of a term in its prose, and no other", () => {
  const [, words] = cells.match(/a sample with (.*?)<\/ul>/s);
  assert.equal(
    words,
    "<strong>key heads</strong>, " +
      `<em>${termLink("term-mask", "masks")}</em>, ` +
      "a mask for each head, <code>mask</code> and " +
      `${termLink("term-key-head", "key heads")}.</p><ul>` +
      `<li><p>${termLink("term-head", "One head")}</p></li>`,
  );
  lacks(render(paragraph(text("a mask"))).html, /class="term"/);
});

test("a term is found as a whole word, whatever its case and number", () => {
  const terms = ["query", "bias", "batch", "softmax", "map"];
  const marked = withFirstUses(
    paragraph(text("Queries, biases, batch-wise, unmapped, softmax_x; a Map.")),
    terms.map((name) => ({ name, id: `term-${name}`, url: "/glossary" })),
  );
  const found = marked.children.filter(({ type }) => type === "crossReference");
  assert.deepEqual(found.map(textOf), ["Queries", "biases", "Map"]);
  assert.equal(
    textOf(marked),
    "Queries, biases, batch-wise, unmapped, softmax_x; a Map.",
  );
});

test("of a glossary entry the first paragraph explains its term", () => {
  const { explanations } = describeBook({
    config: { options: {} },
    project: { index: "index", pages: [] },
    pages: [{ ...sample("glossary"), references: {} }],
  });
  assert.equal(explanations["term-mask"], "A boolean tensor; True means may attend.");
  has(explanations["term-head"], /^One attention with its own projections/);
});

test("Chinese words say that they are Chinese", () => {
  has(
    serialise(glossary.body),
    /<p><span lang="zh-Hans">掩码<\/span> · <span class="katex">/,
  );
  has(
    render(paragraph(text("球 and 队友"))).html,
    /<span lang="zh-Hans">球<\/span> and /,
  );
});

test("a footnote and its text lead to one another", () => {
  has(page, /<a id="fnref-one" href="#fn-one">1<\/a>/);
  has(
    page,
    /<li id="fn-one"><p>A footnote .*<a class="back" href="#fnref-one" aria-label="Back to the text">↩<\/a><\/p><\/li>/s,
  );
});

test("boxes have a title, and fold where they should", () => {
  has(page, /<div class="box note" role="note"><p class="box-title">Note<\/p>/);
  has(page, /<p class="box-title">With a title<\/p>/);
  has(page, /<details class="box tip"><summary>Tip<\/summary>/);
  has(
    page,
    /<div id="shapes" class="box exercise" role="note"><p class="box-title">Exercise 1: Shapes<\/p>/,
  );
  has(
    page,
    /<details class="box solution"><summary>Solution to Exercise\s1<\/summary>/,
  );
  has(page, /<p class="box-title">Theorem 1: Rank<\/p>/);
  has(page, /<p class="box-title">Proof<\/p>/);
});

test("a quote that begins in bold is a box; another is a quote", () => {
  has(
    page,
    /<div class="box common-slip" role="note"><p class="box-title">Common slip<\/p><p>A mask upside down.<\/p><\/div>/,
  );
  has(page, /<figure class="of-quote"><blockquote><p>Plain words/);
  has(
    render({
      type: "blockquote",
      children: [
        paragraph({ type: "strong", children: [text("Bold")] }, text(" and on")),
      ],
    }).html,
    /<blockquote><p><strong>Bold<\/strong> and on<\/p><\/blockquote>/,
  );
});

test("the first output after a Predict box is folded, and no other", () => {
  has(
    cellOf("sample-3"),
    /<details class="fold"><summary>Show the output<\/summary><div class="outputs"><pre class="stdout">/,
  );
  lacks(cellOf("sample-4"), /<details/);
  lacks(cellOf("sample-7"), /<details/);
});

test("an explorer after a Predict box is not folded: to move it is the answer", () => {
  const predict = paragraph({ type: "strong", children: [text("Predict.")] });
  const answered = (html) =>
    render(
      { type: "blockquote", children: [predict] },
      {
        type: "outputs",
        children: [
          {
            type: "output",
            jupyter_data: {
              output_type: "display_data",
              data: { "text/html": { content: html } },
            },
          },
        ],
      },
    ).html;
  has(answered("<figure></figure>"), /<details class="fold">/);
  const explorer = '<figure><script type="module">1</script></figure>';
  lacks(answered(explorer), /<details/);
});

test("a figure comes before its code, which is folded", () => {
  has(
    cellOf("sample-29"),
    /id="sample-29"><div class="outputs"><div class="html-output"><figure>.*<details class="fold"><summary>Show the code of the figure<\/summary><div class="code"><pre>.*Three bars/,
  );
});

test("a figure after a Predict box is folded with its code, also after words", () => {
  const bothInOne =
    /^id="sample-\d+"><details class="fold"><summary>Show the output<\/summary><div class="outputs">.*<\/figure><\/div><details class="fold"><summary>Show the code of the figure<\/summary>.*<\/details><\/div><\/details><\/div>/;
  has(cellOf("sample-24"), bothInOne);
  has(cellOf("sample-27"), bothInOne);
});

test("a guard is folded whole", () => {
  has(
    cells,
    /<details class="fold"><summary>Show the check<\/summary><div class="cell" id="sample-5">/,
  );
});

test("what a reader is to write first is folded whole", () => {
  const tree = JSON.stringify(sample("chapters.notebook")).replace("guard", "solution");
  has(
    serialise(renderPage(JSON.parse(tree), inChapter).body),
    /<details class="fold"><summary>Show one way to write it<\/summary><div class="cell" id="sample-5">/,
  );
});

test("hide tags fold, remove tags remove", () => {
  has(
    cellOf("sample-16"),
    /<details class="fold"><summary>Show the code<\/summary>.*hidden input.*<\/details><div class="outputs"><pre class="stdout"><code>shown/s,
  );
  has(
    cellOf("sample-17"),
    /shown input.*<details class="fold"><summary>Show the output<\/summary>.*hidden/s,
  );
  has(
    cells,
    /<details class="fold"><summary>Show the cell<\/summary><div class="cell" id="sample-18">/,
  );
  lacks(cells, /removed input|removed output|removed cell/);
  has(cells, /kept\n/);
  has(cells, /kept input/);
});

test("an output takes the richest form that needs no kernel", () => {
  has(
    cellOf("sample-9"),
    /<div class="html-output"><figure><img src="data:image\/png;base64,[^"]+" alt="A dot">/,
  );
  has(
    cellOf("sample-10"),
    /<script type="module">const figure = document\.querySelector\('figure\[data-mha="0"\]'\);/,
  );
  has(cellOf("sample-11"), /<img src="ASSET\/[0-9a-f]+\.png" alt="A small picture">/);
  has(
    cellOf("sample-12"),
    /<img src="data:image\/svg\+xml,%3Csvg[^"]+" alt="A drawing">/,
  );
  has(cellOf("sample-13"), /<pre class="plain"><code>tensor\(\[1\.\]\)<\/code><\/pre>/);
  has(
    cellOf("sample-14"),
    /<p class="needs-kernel">This control needs a running notebook\.<\/p>/,
  );
  has(cellOf("sample-15"), /<div class="html-output"><p>A live figure\.<\/p><\/div>/);
  lacks(cells, /model_id|IntSlider/);
});

test("a figure can be saved; an explorer saves itself, and a bitmap is no drawing", () => {
  has(
    cellOf("sample-30"),
    /<\/figure><\/div><a class="save" href="figure-1\.svg\?62" download="NEAR-figure-1\.svg" aria-label="Save SVG of figure 1: A plain drawing\.">Save SVG<\/a>/,
  );
  assert.equal(cells.match(/class="save"/g).length, 1);
});

test("the figures of a page are numbered in order", () => {
  const src = `data:image/svg+xml;base64,${btoa("<svg/>")}`;
  const figure = (words) => ({
    type: "output",
    jupyter_data: {
      output_type: "display_data",
      data: {
        "text/html": { content: `<figure><img src="${src}" alt="${words}"></figure>` },
        "text/plain": { content: words },
      },
    },
  });
  const { html } = render(figure("At w = 0.5: half. More."), figure("No end"));
  has(
    html,
    /download="NEAR-figure-1\.svg" aria-label="Save SVG of figure 1: At w = 0\.5: half\."/,
  );
  has(html, /download="NEAR-figure-2\.svg" aria-label="Save SVG of figure 2: No end"/);
});

test("a stream keeps its colours and is escaped", () => {
  has(cellOf("sample-7"), /<span class="ansi-red-fg">red<\/span> &lt;b&gt;/);
});

test("an error shows its message first and folds the traceback", () => {
  has(
    cellOf("sample-8"),
    /<pre><code><b>ValueError:<\/b> d_model=512 is &#x3C;wrong><\/code><\/pre><details><summary>Show the traceback<\/summary>/,
  );
});

test("an output without a form for a page, or a picture without words, is a problem", () => {
  const output = (data) => ({
    type: "output",
    jupyter_data: { output_type: "display_data", data },
  });
  assert.deepEqual(render(output({ "text/markdown": { content: "**x**" } })).problems, [
    "an output has no form that a page can show: text/markdown",
  ]);
  const figure = {
    "image/png": { path: "/x.png" },
    "text/plain": { content: "<Figure size 640x480>" },
  };
  assert.deepEqual(render(output(figure)).problems, [
    "an image/png output has no text to stand for it",
  ]);
});

test("a long output that MyST keeps in a file is put back", () => {
  const data = { "text/html": { path: "/long.html" } };
  const { html } = render({
    type: "output",
    jupyter_data: { output_type: "display_data", data },
  });
  has(html, /<div class="html-output">contents of \/long\.html<\/div>/);
});

test("an image needs alt text", () => {
  has(page, /<img src="ASSET\/figure-[0-9a-f]+\.svg" alt="Two boxes" width="50%">/);
  assert.deepEqual(
    render({ type: "image", url: "/x.svg", urlSource: "x.svg" }).problems,
    ["the image x.svg has no alt text"],
  );
});

test("a table has a head, a body, alignment, and no empty header cell", () => {
  has(
    page,
    /<figcaption><p><b>Table\s1:<\/b> Sizes<\/p><\/figcaption><div class="scroll"><table><thead><tr><td class="align-left"><\/td><th scope="col" class="align-right">a<\/th>/,
  );
  has(
    page,
    /<th scope="col" class="align-center"><span aria-hidden="true"><span class="katex">.*?<span class="unseen">d_k<\/span><\/th>/s,
  );
  has(page, /<tbody><tr><td class="align-left">x<\/td><td class="align-right">1<\/td>/);
});

test("code is highlighted; lines are numbered and marked where asked", () => {
  has(
    page,
    /<span class="hljs-keyword">def<\/span> <span class="hljs-title function_">f<\/span>/,
  );
  has(page, /<pre><code>plain text that/);
  has(
    page,
    /<pre class="numbered"><code><span class="line" id="L1">a = <span class="hljs-number">1<\/span>\n<\/span><span class="line emphasized" id="L2">b/,
  );
});

test("tabs are radio buttons with a name of their own per set", () => {
  has(
    page,
    /<fieldset class="tabs"><legend>Choose one: pip, conda<\/legend><input type="radio" name="tabs-1" id="tabs-1-1" checked data-sync="pip"><label for="tabs-1-1">pip<\/label><div class="panel">/,
  );
  has(page, /name="tabs-2" id="tabs-2-2" data-sync="conda"/);
});

test("a task list says which tasks are done", () => {
  has(page, /<li class="task"><input type="checkbox" disabled aria-label="to do">/);
  has(page, /<input type="checkbox" disabled checked aria-label="done">/);
});

test("a page of a source file numbers its lines and outlines its public names", () => {
  const { body, outline } = renderSource("attend.py", attend);
  assert.deepEqual(
    outline.map(({ level, id, content }) => [level, id, textOf(content)]),
    [
      [2, "L4", "Attend"],
      [3, "L7", "forward"],
    ],
  );
  const html = serialise(body);
  has(
    html,
    /<span class="line" id="L11"> {8}<span class="hljs-keyword">return<\/span> <span class="hljs-string">"""a text<\/span>\n<\/span><span class="line" id="L12"><span class="hljs-string"> {8}over two lines"""<\/span>/,
  );
});

test("search records: one per section, code apart, formulas as plain letters", () => {
  const records = searchRecords("Everything", "", everything.body);
  assert.deepEqual(
    records.map(({ url }) => url),
    [
      "",
      "#boxes-of-code-and-d-k",
      "#tabs",
      "#figures-and-tables",
      "#footnotes",
      "#works-cited",
    ],
  );
  has(records[0].text, /under, d_model, a mask, a head and a note\.1 A new line\./);
  lacks(records[0].text, /operatorname/);
  has(records[3].code, /return x # a comment/);
  lacks(records[3].text, /return x/);
});

test("search records: of a solution only what is written on its fold", () => {
  const found = JSON.stringify(searchRecords("Everything", "", everything.body));
  has(found, /A worked solution/);
  has(found, /Solution to Exercise/);
  lacks(found, /Nobody may find|spoiled|\(batch, head, query, key\)/);
});

test("search records: what a figure shows, not the link that saves it", () => {
  const found = JSON.stringify(searchRecords("A notebook", "", notebook.body));
  has(found, /A plain drawing\. It is 9 pixels wide\./);
  lacks(found, /Save SVG/);
});

test("search records of a source file: its opening, and each thing it defines", () => {
  const url = "source/attend.py.html";
  assert.deepEqual(sourceRecords("attend.py", attend), [
    {
      title: "attend.py",
      section: "",
      url,
      text: "A file that a page links to.",
      code: '"""A file that a page links to."""',
    },
    {
      title: "attend.py",
      section: "Attend",
      url: `${url}#L4`,
      text: "One method that an outline shows, one that it does not.",
      code: 'class Attend: """One method that an outline shows, one that it does not."""',
    },
    {
      title: "attend.py",
      section: "forward",
      url: `${url}#L7`,
      text: "",
      code: "def forward(self, q, k): return (q @ k.mT).softmax(-1) # (query, key)",
    },
    {
      title: "attend.py",
      section: "_check",
      url: `${url}#L10`,
      text: "a text over two lines",
      code: 'def _check(self): return """a text over two lines"""',
    },
  ]);
  const [, f] = sourceRecords(
    "f.py",
    'def f():\n    """Say `a`\n    b.\n\n    c."""\n',
  );
  assert.equal(f.text, "Say a b.");
  assert.deepEqual(sourceRecords("card.md", "def f(): pass"), []);
});

test("the text of raw HTML is what was said to stand for it", () => {
  assert.equal(
    textOf([text("a "), { type: "element", children: [raw("<b>B</b>", "b")] }]),
    "a b",
  );
});
