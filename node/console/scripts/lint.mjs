// Checks the rules of the folder that the compiler does not know: who imports whom, lengths, and forbidden words.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const app = join(root, "app");
const MAX_LINES = 300;

/** What each part may import besides itself. */
const ALLOWED = {
  lib: [],
  design: ["lib"],
  api: ["lib"],
  btql: ["lib"],
  features: ["design", "lib", "api", "btql"],
  frame: ["design", "lib", "api", "btql", "features", "routes"],
  routes: ["lib", "features", "frame"],
  main: ["design", "lib", "api", "frame", "routes"],
};

const FORBIDDEN = [
  [/dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|srcdoc|document\.write/, "writes HTML from text"],
  [/\beval\s*\(|\bnew Function\b|javascript:/, "runs text as a program"],
  [/\bsessionStorage\b|\bindexedDB\b|document\.cookie/, "stores something in the browser"],
  [/:\s*any\b|<any\b|\bany\[\]|\bas any\b|@ts-ignore|@ts-nocheck/, "gives up the types"],
  [/https?:\/\/(?!www\.w3\.org\/|console\.invalid)/, "names a foreign address"],
];

/** `as` before what only a type begins with. */
const CAST = /[\w)\]}"'`] as (?:[A-Z{(["'`]|(?:unknown|string|number|boolean|never|object|keyof|typeof|readonly)\b)/;

const faults = [];
const fault = (file, line, text) => faults.push(`${relative(root, file)}:${line}: ${text}`);

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

/** The part that a file belongs to, and for features which one. */
function placeOf(file) {
  const [part, feature] = relative(app, file).split(sep);
  const name = part.replace(/(?:\.test)?\.\w+$/, "");
  return { part: name, feature: name === "features" ? feature : null };
}

function checkImports(file, text) {
  const from = placeOf(file);
  for (const match of text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]*)"/g)) {
    const to = placeOf(resolve(dirname(file), match[1]));
    const line = text.slice(0, match.index).split("\n").length;
    const isInside = to.part === from.part && to.feature === from.feature;
    if (!isInside && !ALLOWED[from.part]?.includes(to.part)) fault(file, line, `${from.part} must not import ${match[1]}`);
  }
}

function checkWords(file, text) {
  const isPreferences = relative(app, file) === join("lib", "preferences.ts");
  const isTest = file.endsWith(".test.ts");
  for (const [index, line] of text.split("\n").entries()) {
    for (const [words, why] of FORBIDDEN) if (!isTest && words.test(line)) fault(file, index + 1, why);
    if (/\blocalStorage\b/.test(line) && !isPreferences) fault(file, index + 1, "only lib/preferences.ts stores anything");
    const isCast = CAST.test(line) && !/^\s*(?:import|export)\b|^\s*\/?\*|^\s*\/\//.test(line);
    if (isCast && placeOf(file).part !== "api") fault(file, index + 1, "casts a type outside api");
  }
}

/** Finds functions of more than 60 lines by their braces, at the level of the file and one below. */
function checkFunctions(file, lines) {
  const MAX_FUNCTION = 60;
  let start = null;
  for (const [index, line] of lines.entries()) {
    const opens = /^(?:export )?(?:default )?(?:async )?(?:function\b|const \w+.*=>)/.test(line);
    if (opens) start = index;
    if (start !== null && /^[})]/.test(line)) {
      if (index - start + 1 > MAX_FUNCTION) fault(file, start + 1, `a function of more than ${MAX_FUNCTION} lines`);
      start = null;
    }
  }
}

for (const file of filesBelow(app)) {
  if (!/\.(?:ts|tsx|css)$/.test(file)) continue;
  const text = readFileSync(file, "utf8");
  const lines = text.split("\n");
  if (lines.length > MAX_LINES + 1) fault(file, MAX_LINES, `more than ${MAX_LINES} lines`);
  if (file.endsWith(".css")) {
    if (/url\(\s*["']?data:|@import\s+(?:url\()?["']?https?:/.test(text)) fault(file, 1, "holds data or a foreign address");
    if (!/^\/\* [A-Z][^]*?\. \*\/\n/.test(text)) fault(file, 1, "does not open with a sentence on what it is");
    continue;
  }
  if (!/^\/\/ [A-Z]/.test(text)) fault(file, 1, "does not open with a sentence on what it is");
  checkImports(file, text);
  checkWords(file, text);
  checkFunctions(file, lines);
}

if (faults.length > 0) {
  console.error(faults.sort().join("\n"));
  process.exit(1);
}
