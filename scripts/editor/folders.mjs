/**
 * What is installed into `.editors`, each thing in a folder of its own. It is put together in a
 * folder with another name, which is renamed when all is there: a folder with the right name is
 * complete.
 */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { locked } from "../lock.mjs";
import { Failure, ROOT, SOON } from "../setup.mjs";

export const EDITORS = join(ROOT, ".editors");
const LOCK = join(EDITORS, ".lock");
const UNFINISHED = ".unfinished-";

/**
 * The folder of that name, filled now if it is not there yet.
 *
 * @param {string} name
 * @param {(unfinished: string) => void} fill
 * @returns {string}
 */
export function installed(name, fill) {
  const folder = join(EDITORS, name);
  if (!existsSync(folder)) {
    mkdirSync(EDITORS, { recursive: true });
    locked(LOCK, sayWaiting, () => {
      if (!existsSync(folder)) {
        removeLeftOvers();
        // A name of its own: what an installation started that was killed may be writing still.
        const unfinished = `${folder}${UNFINISHED}${process.pid}`;
        mkdirSync(unfinished);
        fill(unfinished);
        renameSync(unfinished, folder);
      }
    });
  }
  return folder;
}

/**
 * The same folder under a name that makefiles can have, for as long as this process runs: a blank
 * ends a name in these.
 *
 * @param {string} folder
 * @returns {string}
 */
export function withoutBlanks(folder) {
  if (!/\s/.test(folder)) {
    return folder;
  }
  const place = mkdtempSync(join(tmpdir(), "shapetrace-"));
  process.once("exit", () => {
    rmSync(place, { recursive: true, force: true });
  });
  const link = join(place, "it");
  symlinkSync(folder, link);
  return link;
}

/**
 * Installs one package of npm's into a folder, without running anything of it.
 *
 * @param {string} folder
 * @param {{ package: string, version: string }} what
 * @returns {string} the package's folder
 */
export function npmInstall(folder, what) {
  const dependencies = { [what.package]: what.version };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies }));
  npm(folder, process.execPath, ["install", "--ignore-scripts", "--omit=dev"]);
  return join(folder, "node_modules", what.package);
}

/**
 * Runs npm in a folder with a Node.js.
 *
 * @param {string} folder
 * @param {string} node
 * @param {readonly string[]} options
 * @param {NodeJS.ProcessEnv} [environment]
 */
export function npm(folder, node, options, environment = npmEnvironment()) {
  const [program, ...before] = npmCommand(node);
  const result = spawnSync(
    program,
    [...before, ...options, ...SOON, "--no-audit", "--no-fund", "--loglevel=error"],
    { cwd: folder, env: environment, encoding: "utf8" },
  );
  if (result.status !== 0) {
    const output = `${result.stdout}${result.stderr}`.trim() || (result.error?.message ?? "");
    throw new Failure(`\`npm ${options.join(" ")}\` failed:\n${output}`);
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

/** Our environment, without what an npm around us has set for this project. */
export function npmEnvironment() {
  const foreign =
    /^npm_(package_|lifecycle_|command$|node_execpath$|config_(local_prefix|prefix|ignore_scripts|nodedir|omit|include)$)/i;
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !foreign.test(key)));
}

/** The loader of programs that are linked against the GNU C library. */
const GNU_LOADERS = { x64: "/lib64/ld-linux-x86-64.so.2", arm64: "/lib/ld-linux-aarch64.so.1" };

/** Whether programs for Linux with the GNU C library run here. */
export function isGnuLinux() {
  const loader = Object.entries(GNU_LOADERS).find(([name]) => name === process.arch)?.[1];
  return process.platform === "linux" && loader !== undefined && existsSync(loader);
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

/** @param {number | undefined} owner */
function sayWaiting(owner) {
  say(`waiting for process ${owner ?? "?"}, which is installing (its mark is .editors/.lock)`);
}

/** @param {string} message */
function say(message) {
  console.log(`editor: ${message}`);
}
