// The two things MyST asks of a theme: `render` writes the site, `serve` previews it.
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { buildSite } from "./site.mjs";

const THEME = path.dirname(fileURLToPath(import.meta.url));
const PUBLIC = path.join(THEME, "public");
const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

/** Write every file, unless something is wrong with a page: then say what, and fail. */
async function render({ CONTENT_CDN, BUILD_DIRECTORY, BASE_URL }) {
  // MyST names the folder as seen from the project, and starts the theme in theme/.
  const target = path.resolve(THEME, "..", BUILD_DIRECTORY);
  if ((await readdir(target)).length)
    throw new Error(`${target} is not MyST's empty output folder`);
  const { files, problems } = await buildSite(CONTENT_CDN, { baseUrl: BASE_URL });
  if (problems.length) {
    problems.forEach(report);
    process.exitCode = 1;
    return;
  }
  await cp(PUBLIC, target, { recursive: true });
  for (const [name, content] of files) {
    const file = path.join(target, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
}

/** Preview: the whole site is built anew for each page that is asked for. */
function serve({ PORT, HOST, CONTENT_CDN_PORT }) {
  const origin = `http://${HOST}:${CONTENT_CDN_PORT}`;
  const reloadFrom = `ws://${HOST}:${CONTENT_CDN_PORT}/socket`;
  let latest = new Map();
  const answer = async (request, response) => {
    const { pathname } = new URL(request.url, origin);
    const name = decodeURI(pathname).replace(/\/$/, "/index.html").slice(1);
    if (name.endsWith(".html") || !latest.size) {
      const { files, problems } = await buildSite(origin, { reloadFrom });
      problems.forEach(report);
      latest = files;
    }
    const content =
      latest.get(name) ??
      (await readFile(path.join(PUBLIC, name)).catch(() => undefined));
    response.writeHead(content === undefined ? 404 : 200, {
      "content-type":
        content === undefined
          ? TYPES[".html"]
          : (TYPES[path.extname(name)] ?? "application/octet-stream"),
    });
    response.end(content ?? latest.get("404.html"));
  };
  http
    .createServer((request, response) => {
      answer(request, response).catch((error) => {
        console.error(error);
        response.writeHead(500).end(String(error));
      });
    })
    .listen(Number(PORT), HOST, () =>
      console.log(`Server started at http://${HOST}:${PORT}`),
    );
}

const report = (problem) => console.error(`⛔ ${problem}`);

await { render, serve }[process.argv[2]](process.env);
