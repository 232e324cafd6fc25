/**
 * `npm run package`: one VSIX for every platform, at the project's root.
 *
 * The Python libraries in it are fetched once, into python_libraries; after that no network is used.
 */
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { bundle } from "./build.mjs";
import { locked } from "./lock.mjs";
import { BUNDLED_PAGES, forExtensionPage } from "./readme.mjs";
import { Failure, main, PYTHON, requireIndex, ROOT, run, setUp } from "./setup.mjs";

const BUILD = join(ROOT, "build");
const LIBRARIES = join(ROOT, "python_libraries");

/** Each folder of python_libraries and the requirements that fill it. */
const LIBRARY_FOLDERS = /** @type {const} */ ({
  server: "requirements-server.txt",
  debugpy: "requirements-debugger.txt",
});

/** Build products and sources of compiled code that nothing reads at run time. */
const UNUSED = new Set([".c", ".cpp", ".h", ".hpp", ".lib", ".pdb", ".pxd", ".pyx"]);

const LARGEST_MEGABYTES = 10;

/** The files of this folder for vsce, which reads all that it finds. */
const STAGED = [
  ...[".vscodeignore", "package.json", "README.md", "CHANGELOG.md", "LICENSE"],
  ...["extension", "python_backend", "python_libraries"],
];

/**
 * Builds everything that is not up to date, and packs it.
 *
 * @returns {Promise<string>} the VSIX
 */
export async function packageExtension() {
  const esbuild = await import("esbuild");
  return alone(() => {
    fillLibraries();
    bundle(esbuild);
    return pack();
  });
}

/** Fills python_libraries, unless it holds what the requirements ask for already. */
export function fetchLibraries() {
  alone(fillLibraries);
}

/**
 * Does the work while no other script packs.
 *
 * @template Result
 * @param {() => Result} work
 * @returns {Result}
 */
function alone(work) {
  mkdirSync(BUILD, { recursive: true });
  return locked(join(BUILD, "package.lock"), tellWaiting, work);
}

/** @param {number | undefined} owner */
function tellWaiting(owner) {
  console.log(`package: waiting for the VSIX that process ${owner ?? "?"} is making`);
}

function fillLibraries() {
  for (const [folder, requirements] of Object.entries(LIBRARY_FOLDERS)) {
    const target = join(LIBRARIES, folder);
    const mark = join(LIBRARIES, `.${folder}`);
    const digest = digestOf(requirements);
    if (existsSync(mark) && readFileSync(mark, "utf8") === digest) {
      continue;
    }
    console.log(`package: fetching the libraries of ${requirements}`);
    rmSync(mark, { force: true });
    rmSync(target, { recursive: true, force: true });
    install(requirements, target);
    prune(target);
    writeFileSync(mark, digest);
  }
}

/**
 * @param {string} requirements
 * @param {string} target
 */
function install(requirements, target) {
  requireIndex();
  const code = run(PYTHON, [
    ...["-m", "pip", "install", "--quiet", "--disable-pip-version-check"],
    ...["--requirement", requirements, "--target", target, "--no-deps", "--no-compile"],
    // Only what runs everywhere: no compiled wheel, and nothing of this machine's Python.
    ...["--require-hashes", "--only-binary=:all:", "--implementation", "py"],
    ...["--abi", "none", "--platform", "any", "--python-version", "3.11"],
  ]);
  if (code !== 0) {
    throw new Failure(
      `pip could not fetch ${requirements}; mend what it says above, and run this again`,
    );
  }
}

/** @param {string} target */
function prune(target) {
  rmSync(join(target, "bin"), { recursive: true, force: true });
  for (const entry of readdirSync(target, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && UNUSED.has(extname(entry.name))) {
      rmSync(path);
    } else if (entry.isDirectory() && entry.name === "__pycache__") {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/**
 * Copies what the VSIX is made from; which of it goes in is said in `.vscodeignore`.
 *
 * @param {string} folder
 */
export function stageExtension(folder) {
  rmSync(folder, { recursive: true, force: true });
  for (const part of STAGED.filter((name) => existsSync(join(ROOT, name)))) {
    cpSync(join(ROOT, part), join(folder, part), {
      recursive: true,
      dereference: true,
      filter: (path) => !path.endsWith("__pycache__"),
    });
  }
  writeFileSync(join(folder, "README.md"), extensionPage());
}

/** @returns {string} what VS Code shows of the extension */
export function extensionPage() {
  /** @param {string[]} path */
  const read = (...path) => readFileSync(join(ROOT, ...path), "utf8");
  const pages = new Map(BUNDLED_PAGES.map((name) => [name, read("docs", name)]));
  return forExtensionPage(read("README.md"), pages);
}

/** @returns {string} the VSIX */
function pack() {
  /** @type {{ name: string, version: string }} */
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const name = `${manifest.name}-${manifest.version}.vsix`;
  const unfinished = join(BUILD, name);
  const folder = join(BUILD, "package");
  stageExtension(folder);
  const code = run(
    process.execPath,
    [
      join(ROOT, "node_modules", "@vscode", "vsce", "vsce"),
      ...["package", "--out", unfinished],
      // Everything is bundled; there is no public repository that links could point to.
      ...["--no-dependencies", "--allow-missing-repository", "--no-rewrite-relative-links"],
    ],
    process.env,
    folder,
  );
  if (code !== 0) {
    throw new Failure("vsce could not make the VSIX");
  }
  const megabytes = statSync(unfinished).size / 1e6;
  if (megabytes > LARGEST_MEGABYTES) {
    throw new Failure(`${name} has ${megabytes.toFixed(1)} MB, more than ${LARGEST_MEGABYTES}`);
  }
  // Whoever reads the file finds the former one or this one, never a part.
  const file = join(ROOT, name);
  renameSync(unfinished, file);
  console.log(`package: ${name} (${megabytes.toFixed(1)} MB)`);
  return file;
}

/** @param {string} requirements */
function digestOf(requirements) {
  return createHash("sha256")
    .update(readFileSync(join(ROOT, requirements)))
    .update([...UNUSED].join(" "))
    .digest("hex");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(async () => {
    setUp();
    await packageExtension();
    return 0;
  });
}
