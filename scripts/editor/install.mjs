/**
 * A real VS Code for tests, screenshots and trying things out: the npm package `code-server` is VS
 * Code's own workbench, server and extension host, and a browser shows it. The newest version and
 * the oldest that the extension supports, each with the Node.js it is made for, in `.editors`.
 */
import { existsSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { Failure, main, setUp } from "../setup.mjs";
import { canHaveBrowser, installBrowser } from "./browser.mjs";
import { canHaveCompilers, installCompilers, removeCompilers } from "./compilers.mjs";
import { EDITORS, installed, npm, npmEnvironment, withoutBlanks } from "./folders.mjs";

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

/** Where an editor is, or will be. */
function folderOf(/** @type {EditorName} */ name) {
  const { codeServer, node } = RECIPES[name];
  return `${codeServer}-node-${node}`;
}

/**
 * Fails at once where the editors, or a browser for them, cannot be had: before anything is
 * installed, which takes minutes.
 *
 * @param {readonly EditorName[]} names
 * @param {{ browser?: boolean }} [needs]
 */
export function checkMachine(names, { browser = true } = {}) {
  if (process.platform !== "linux") {
    throw new Failure("the editor for tests is installed on Linux only; use a Linux machine");
  }
  const isThere = names.every((name) => existsSync(join(EDITORS, folderOf(name))));
  const missing = [
    ...(isThere || canHaveCompilers() ? [] : ["g++", "make"]),
    ...(!browser || canHaveBrowser() ? [] : ["chromium"]),
  ];
  if (missing.length > 0) {
    const names = missing.join(" ");
    throw new Failure(
      `this machine lacks ${names}; install them (Debian: apt-get install ${names})`,
    );
  }
}

/**
 * The editor of that name, installed now if it is not yet.
 *
 * @param {EditorName} name
 * @returns {Editor}
 */
export function installEditor(name) {
  const folder = join(EDITORS, folderOf(name));
  if (!existsSync(folder)) {
    // Before the lock is taken for the editor: the compilers are installed under it too.
    const compilers = installCompilers();
    installed(folderOf(name), (unfinished) => {
      putTogether(name, RECIPES[name], unfinished, compilers);
    });
  }
  return new Editor(name, folder);
}

/** Installs both editors and a browser, if they are not there yet. */
export function installEditors() {
  installBrowser();
  installEditor("newest");
  installEditor("oldest");
  removeCompilers();
}

/**
 * @param {EditorName} name
 * @param {Recipe} recipe
 * @param {string} unfinished
 * @param {NodeJS.ProcessEnv} compilers
 */
function putTogether(name, recipe, unfinished, compilers) {
  say(`installing the ${name} editor, code-server ${recipe.codeServer} (a minute)`);
  const dependencies = {
    "code-server": recipe.codeServer,
    [`node-${PLATFORM}`]: recipe.node,
    ...(recipe.ripgrep && { [`@vscode/ripgrep-${PLATFORM}`]: recipe.ripgrep }),
  };
  writeFileSync(join(unfinished, "package.json"), JSON.stringify({ private: true, dependencies }));
  npm(unfinished, process.execPath, ["install", "--ignore-scripts"]);

  const { server, node } = new Editor(name, unfinished);
  const environment = environmentOf(node, compilers);
  const workbench = join(server, "lib", "vscode");
  const extensions = join(workbench, "extensions");
  for (const place of [workbench, extensions]) {
    npm(place, node, ["install", "--omit=dev", "--ignore-scripts"], environment);
  }
  const native = NATIVE_PACKAGES.filter((it) => existsSync(join(workbench, "node_modules", it)));
  const compile = (/** @type {string} */ folder, /** @type {readonly string[]} */ packages) => {
    npm(folder, node, ["rebuild", "--ignore-scripts=false", ...packages], environment);
  };
  try {
    compile(unfinished, ["argon2"]);
    compile(workbench, native);
  } catch (error) {
    if (error instanceof Failure) {
      error.message += "\nmend that, or install other compilers (Debian: apt-get install g++ make)";
    }
    throw error;
  }

  link("node_modules", join(workbench, "node_modules.asar"));
  link("code-linux.sh", join(workbench, "bin", "remote-cli", "code-server"));
  link("browser-linux.sh", join(workbench, "bin", "helpers", "browser.sh"));
  if (recipe.ripgrep) {
    const wants = join(workbench, "node_modules", "@vscode", "ripgrep");
    const given = join(unfinished, "node_modules", "@vscode", `ripgrep-${PLATFORM}`);
    link(relative(wants, join(given, "bin")), join(wants, "bin"));
  }
}

/**
 * What npm and the compilers that it starts find: the editor's Node.js first, with its headers.
 *
 * @param {string} node
 * @param {NodeJS.ProcessEnv} compilers
 * @returns {NodeJS.ProcessEnv}
 */
function environmentOf(node, compilers) {
  const home = withoutBlanks(dirname(dirname(node)));
  return {
    ...npmEnvironment(),
    ...compilers,
    PATH: [dirname(node), compilers["PATH"] ?? process.env["PATH"]].filter(Boolean).join(delimiter),
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

/** @param {string} message */
function say(message) {
  console.log(`editor: ${message}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(() => {
    checkMachine(["newest", "oldest"]);
    setUp();
    installEditors();
    say("both editors and a browser are there");
    return 0;
  });
}
