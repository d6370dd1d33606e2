// Writes dist/manifest.json after a build, and prints how much a first visit loads.
//
// The file has three fields:
//   files    the SHA-256, in hex, of every other file of dist by its path
//   entries  the entry and the chunks, with what each imports, imports later and needs of CSS
//   sources  the SHA-256, in hex, over everything that the output is made of
//
// `sources` is computed over these files: everything below app/ and scripts/, apart from names that end in .test.ts or
// .test.tsx, and index.html, package.json, package-lock.json, .npmrc, tsconfig.json and vite.config.ts where they exist.
// The paths are relative to this package and have `/`. In the order of the bytes of their paths, each file adds:
// its path, a NUL byte, the length of its content in bytes as decimal digits, a NUL byte, its content.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const FOLDERS = ["app", "scripts"];
const SINGLE = ["index.html", "package.json", "package-lock.json", ".npmrc", "tsconfig.json", "vite.config.ts"];
const MAX_HTML = 2048;
const MAX_SHELL = 60 * 1024;
const MAX_ALL = 520 * 1024;

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const pathsFrom = (base, folder) => filesBelow(folder).map((file) => relative(base, file).split(sep).join("/"));

function sources() {
  const inFolders = FOLDERS.flatMap((folder) => pathsFrom(root, join(root, folder)));
  const paths = [...inFolders, ...SINGLE.filter((path) => existsSync(join(root, path)))]
    .filter((path) => !/\.test\.tsx?$/.test(path))
    .sort(byBytes);
  const hash = createHash("sha256");
  for (const path of paths) {
    const content = readFileSync(join(root, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** Vite's own manifest with files in place of the names of modules, in one order. */
function entriesOf(graph) {
  const filesOf = (keys = []) => keys.map((key) => graph[key].file).sort(byBytes);
  const entries = Object.values(graph)
    .filter((chunk) => chunk.file.endsWith(".js"))
    .map((chunk) => [
      chunk.file,
      {
        entry: chunk.isEntry === true,
        imports: filesOf(chunk.imports),
        later: filesOf(chunk.dynamicImports),
        css: [...(chunk.css ?? [])].sort(byBytes),
      },
    ]);
  return Object.fromEntries(entries.sort(([a], [b]) => byBytes(a, b)));
}

/** The entry's own files and everything it imports at once. */
function firstLoad(entries) {
  const wanted = new Set();
  const add = (file) => {
    if (wanted.has(file)) return;
    wanted.add(file);
    for (const css of entries[file].css) wanted.add(css);
    entries[file].imports.forEach(add);
  };
  for (const [file, chunk] of Object.entries(entries)) if (chunk.entry) add(file);
  return [...wanted];
}

const graphFolder = join(dist, ".vite");
const entries = entriesOf(JSON.parse(readFileSync(join(graphFolder, "manifest.json"), "utf8")));
rmSync(graphFolder, { recursive: true });
rmSync(join(dist, "manifest.json"), { force: true });

const files = pathsFrom(dist, dist).sort(byBytes);
const contents = new Map(files.map((path) => [path, readFileSync(join(dist, path))]));
const hashes = Object.fromEntries(files.map((path) => [path, sha256(contents.get(path))]));
writeFileSync(
  join(dist, "manifest.json"),
  `${JSON.stringify({ files: hashes, entries, sources: sources() }, null, 2)}\n`,
);

const zipped = (path) => gzipSync(contents.get(path), { level: 9 }).length;
const total = (paths) => paths.reduce((sum, path) => sum + zipped(path), 0);
const shown = (bytes) => `${(bytes / 1024).toFixed(1).padStart(6)} KB`;
const code = files.filter((path) => /\.(?:js|css)$/.test(path));
const shell = total(firstLoad(entries));
const all = total(code);
for (const path of files) console.log(`${shown(zipped(path))} gz  ${path}`);
console.log(`${shown(shell)} gz  the shell, of ${shown(MAX_SHELL).trim()}`);
console.log(`${shown(all)} gz  all JavaScript and CSS, of ${shown(MAX_ALL).trim()}`);

const html = contents.get("index.html").length;
if (html >= MAX_HTML || shell > MAX_SHELL || all > MAX_ALL) {
  console.error(`The output is larger than its budget (index.html has ${html} bytes).`);
  process.exit(1);
}
