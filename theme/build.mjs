// Make the committed files that MyST and the browser run: `npm ci && npm run build`.
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const VENDOR = "public/vendor";
const SERIF = "node_modules/@fontsource-variable/source-serif-4";
const KATEX = "node_modules/katex/dist";
const SUBSETS =
  /^\/\* source-serif-4-(latin|latin-ext|greek)-wght-(normal|italic) \*\/$/;

await rm(VENDOR, { recursive: true, force: true });
await mkdir(`${VENDOR}/fonts`, { recursive: true });

await build({
  entryPoints: ["src/main.mjs"],
  outfile: "bundle.mjs",
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  minify: true,
  charset: "utf8",
  legalComments: "inline",
});

await build({
  entryPoints: ["node_modules/minisearch/dist/es/index.js"],
  outfile: `${VENDOR}/minisearch.js`,
  format: "esm",
  minify: true,
});

// KaTeX offers each font in three formats; every browser the book supports reads woff2.
const katex = await readFile(`${KATEX}/katex.min.css`, "utf8");
await writeFile(
  `${VENDOR}/katex.css`,
  katex.replace(/,url\([^)]+\) format\("(?:woff|truetype)"\)/g, ""),
);
for (const name of await readdir(`${KATEX}/fonts`)) {
  if (name.endsWith(".woff2"))
    await cp(`${KATEX}/fonts/${name}`, `${VENDOR}/fonts/${name}`);
}

const faces = [];
for (const style of ["wght", "wght-italic"]) {
  const css = await readFile(`${SERIF}/${style}.css`, "utf8");
  const blocks = css.split(/(?=^\/\*)/m);
  faces.push(...blocks.filter((block) => SUBSETS.test(block.split("\n")[0])));
}
await writeFile(
  `${VENDOR}/fonts.css`,
  faces.join("\n").replaceAll("./files/", "fonts/"),
);
for (const [, name] of faces.join("").matchAll(/files\/([\w.-]+)/g)) {
  await cp(`${SERIF}/files/${name}`, `${VENDOR}/fonts/${name}`);
}
await cp(`${SERIF}/LICENSE`, `${VENDOR}/fonts/LICENSE-source-serif-4`);
await cp("node_modules/katex/LICENSE", `${VENDOR}/LICENSE-katex`);
await cp("node_modules/minisearch/LICENSE.txt", `${VENDOR}/LICENSE-minisearch`);
