// What MyST's content server offers: the configuration, page trees, and copied files.

export async function loadContent(origin) {
  const get = async (path) => {
    const response = await fetch(origin + path);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return response;
  };
  const bytes = async (path) => Buffer.from(await (await get(path)).arrayBuffer());
  const json = async (path) => (await get(path)).json();

  const config = await json("/config.json");
  const [project] = config.projects;
  const slugs = [project.index, ...project.pages.flatMap(({ slug }) => slug ?? [])];
  const pages = await Promise.all(slugs.map((slug) => json(`/content/${slug}.json`)));
  const urls = [...new Set(pages.flatMap(copiedFiles))];
  const blobs = await Promise.all(urls.map(async (url) => [url, await bytes(url)]));
  return { config, project, pages, blobs: new Map(blobs) };
}

/** What a page refers to and MyST has copied: images, linked files, long outputs. */
function copiedFiles({ frontmatter, mdast }) {
  const urls = frontmatter.exports.map(({ url }) => url);
  visit(mdast, (node) => {
    if (node.type === "image" || node.static) urls.push(node.url);
    const forms = Object.values(node.jupyter_data?.data ?? {});
    urls.push(...forms.flatMap(({ path }) => path ?? []));
  });
  return urls.filter((url) => url.startsWith("/"));
}

export function visit(node, callback) {
  callback(node);
  node.children?.forEach((child) => visit(child, callback));
}
