/**
 * A real VS Code for tests, screenshots and trying things out: the npm package `code-server` is VS
 * Code's own workbench, server and extension host, and a browser shows it. The newest version and
 * the oldest that the extension supports, each with the Node.js it is made for, in `.editors`.
 *
 * An editor is put together in a folder with another name, which is renamed when all is there: a
 * folder with the right name is complete.
 */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { locked } from "../lock.mjs";
import { Failure, main, ROOT } from "../setup.mjs";

/**
 * @typedef {"newest" | "oldest"} EditorName
 * @typedef {{ codeServer: string, node: string, ripgrep?: string }} Recipe
 */

/** @type {Readonly<Record<EditorName, Recipe>>} */
const RECIPES = {
  newest: { codeServer: "4.139.1", node: "24.19.0" },
  // The package whose install script downloads ripgrep is given one from npm.
  oldest: { codeServer: "4.100.3", node: "20.20.2", ripgrep: "1.18.0" },
};

/** Packages that are compiled, or choose among what is compiled, where they exist. */
const NATIVE_PACKAGES = [
  "@parcel/watcher",
  "@vscode/deviceid",
  "@vscode/native-watchdog",
  "@vscode/spdlog",
  "native-watchdog",
  "node-pty",
];

const EDITORS = join(ROOT, ".editors");
const LOCK = join(EDITORS, ".lock");
const UNFINISHED = ".unfinished-";
const PLATFORM = `${process.platform}-${process.arch}`;

/** An installed editor: the program that runs it, and its server's main file. */
export class Editor {
  /**
   * @param {EditorName} name
   * @param {string} folder
   */
  constructor(name, folder) {
    this.name = name;
    this.node = join(folder, "node_modules", `node-${PLATFORM}`, "bin", "node");
    this.server = join(folder, "node_modules", "code-server");
    this.entry = join(this.server, "out", "node", "entry.js");
  }
}

/**
 * The editor of that name, installed now if it is not yet.
 *
 * @param {EditorName} name
 * @returns {Editor}
 */
export function installEditor(name) {
  const recipe = RECIPES[name];
  const folder = join(EDITORS, `${recipe.codeServer}-node-${recipe.node}`);
  if (!existsSync(folder)) {
    if (process.platform !== "linux") {
      throw new Failure("the editor for tests is installed on Linux only");
    }
    mkdirSync(EDITORS, { recursive: true });
    locked(LOCK, sayWaiting, () => {
      if (!existsSync(folder)) {
        putTogether(name, recipe, folder);
      }
    });
  }
  return new Editor(name, folder);
}

/**
 * The browser that shows an editor: SHAPETRACE_CHROMIUM, or the first on PATH.
 *
 * @returns {string}
 */
export function findBrowser() {
  const chosen = process.env["SHAPETRACE_CHROMIUM"];
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const candidates = chosen
    ? [chosen]
    : ["chromium", "chromium-browser", "google-chrome"].flatMap((name) =>
        folders.map((folder) => join(folder, name)),
      );
  const found = candidates.find((file) => existsSync(file));
  if (found === undefined) {
    throw new Failure(
      chosen
        ? `SHAPETRACE_CHROMIUM=${chosen} does not exist`
        : "no Chromium was found; install one (Debian: apt-get install chromium), or name it in SHAPETRACE_CHROMIUM",
    );
  }
  return found;
}

/**
 * @param {EditorName} name
 * @param {Recipe} recipe
 * @param {string} folder
 */
function putTogether(name, recipe, folder) {
  say(`installing the ${name} editor, code-server ${recipe.codeServer} (a minute)`);
  removeLeftOvers();
  // A name of its own: what an installation started that was killed may be writing still.
  const unfinished = `${folder}${UNFINISHED}${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  const dependencies = {
    "code-server": recipe.codeServer,
    [`node-${PLATFORM}`]: recipe.node,
    ...(recipe.ripgrep && { [`@vscode/ripgrep-${PLATFORM}`]: recipe.ripgrep }),
  };
  writeFileSync(join(unfinished, "package.json"), JSON.stringify({ private: true, dependencies }));
  const { server, node } = new Editor(name, unfinished);
  npm(unfinished, process.execPath, ["install", "--ignore-scripts"]);

  const workbench = join(server, "lib", "vscode");
  const extensions = join(workbench, "extensions");
  for (const place of [workbench, extensions]) {
    npm(place, node, ["install", "--omit=dev", "--ignore-scripts"]);
  }
  npm(unfinished, node, ["rebuild", "--ignore-scripts=false", "argon2"]);
  const native = NATIVE_PACKAGES.filter((it) => existsSync(join(workbench, "node_modules", it)));
  npm(workbench, node, ["rebuild", "--ignore-scripts=false", ...native]);

  link("node_modules", join(workbench, "node_modules.asar"));
  link("code-linux.sh", join(workbench, "bin", "remote-cli", "code-server"));
  link("browser-linux.sh", join(workbench, "bin", "helpers", "browser.sh"));
  if (recipe.ripgrep) {
    const wants = join(workbench, "node_modules", "@vscode", "ripgrep");
    const given = join(unfinished, "node_modules", "@vscode", `ripgrep-${PLATFORM}`);
    link(relative(wants, join(given, "bin")), join(wants, "bin"));
  }
  renameSync(unfinished, folder);
  removeLeftOvers();
}

/** Removes what installations have left that were killed. */
function removeLeftOvers() {
  for (const name of readdirSync(EDITORS).filter((it) => it.includes(UNFINISHED))) {
    try {
      rmSync(join(EDITORS, name), { recursive: true, force: true });
    } catch (error) {
      say(`${name} is still being written, the next installation removes it: ${String(error)}`);
    }
  }
}

/**
 * Runs npm in a folder with a Node.js, for which it also compiles.
 *
 * @param {string} folder
 * @param {string} node
 * @param {readonly string[]} options
 */
function npm(folder, node, options) {
  const [program, ...before] = npmCommand(node);
  const result = spawnSync(
    program,
    [...before, ...options, "--no-audit", "--no-fund", "--loglevel=error"],
    { cwd: folder, env: npmEnvironment(node), encoding: "utf8" },
  );
  if (result.status !== 0) {
    const output = `${result.stdout}${result.stderr}`.trim() || (result.error?.message ?? "");
    const needs = options[0] === "rebuild" ? " (it needs make, g++ and python3)" : "";
    throw new Failure(`\`npm ${options.join(" ")}\` failed${needs}:\n${output}`);
  }
}

/**
 * @param {string} node
 * @returns {[string, ...string[]]}
 */
function npmCommand(node) {
  const npm = process.env["npm_execpath"];
  return npm?.endsWith(".js") ? [node, npm] : ["npm"];
}

/**
 * What npm and the compilers it starts find: that Node.js first, with its headers, and nothing that
 * an npm around us has set for this project.
 *
 * @param {string} node
 * @returns {NodeJS.ProcessEnv}
 */
function npmEnvironment(node) {
  const foreign =
    /^npm_(package_|lifecycle_|command$|node_execpath$|config_(local_prefix|prefix|ignore_scripts|nodedir|omit|include)$)/i;
  const kept = Object.entries(process.env).filter(([key]) => !foreign.test(key));
  const home = dirname(dirname(node));
  return {
    ...Object.fromEntries(kept),
    PATH: [dirname(node), process.env["PATH"]].filter(Boolean).join(delimiter),
    npm_config_yes: "true", // node-pty 1.1 has node-gyp run by npx
    ...(existsSync(join(home, "include", "node")) && { npm_config_nodedir: home }),
  };
}

/**
 * @param {string} target relative to the link's folder
 * @param {string} file
 */
function link(target, file) {
  if (existsSync(file)) {
    return;
  }
  rmSync(file, { force: true });
  symlinkSync(target, file);
  if (!existsSync(file)) {
    throw new Failure(`${file} points at ${readlinkSync(file)}, which does not exist`);
  }
}

/** @param {number | undefined} owner */
function sayWaiting(owner) {
  say(`waiting for process ${owner ?? "?"}, which is installing (its mark is .editors/.lock)`);
}

/** @param {string} message */
function say(message) {
  console.log(`editor: ${message}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(() => {
    findBrowser();
    installEditor("newest");
    installEditor("oldest");
    say("both editors are there");
    return 0;
  });
}
