/**
 * What every other script starts with: a virtual environment and node packages that are those the
 * project names. Installs what is missing and is quick when nothing is.
 *
 * `.venv` carries a mark with a digest of all that went into it, written last. While it is being
 * filled it carries another, so that a set-up that was cut off is noticed, and made again.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { locked } from "./lock.mjs";
import { isSupervised, supervise } from "./processes.mjs";

// Tests start Python a thousand times, and each would compile the backend and the tests again.
delete process.env["PYTHONDONTWRITEBYTECODE"];

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** An expected failure: its message is for the person at the terminal. */
export class Failure extends Error {}

/** A command that did not do its work: `code` is null where a signal ended it. */
export class CommandFailure extends Failure {
  /**
   * @param {string} message
   * @param {number | null} code
   */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

const OLDEST_PYTHON = /** @type {const} */ ([3, 11]);
const OLDEST_NODE = /** @type {const} */ ([20, 19]);
export const REQUIREMENTS = "requirements-dev.txt";
export const CONSTRAINTS = "constraints.txt";
const WINDOWS = process.platform === "win32";

/** With these npm gives up a network that is not there after seconds, not minutes. */
export const SOON = ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=4000"];

/** Of a disk that is full: with fewer than these left, that is why something fails. */
const FEW_MEGABYTES = 50;

const ENVIRONMENT = join(ROOT, ".venv");
const COMPLETE = join(ENVIRONMENT, ".shapetrace-complete");
const UNFINISHED = join(ENVIRONMENT, ".shapetrace-unfinished");
const LOCK = join(ROOT, ".setup.lock");

/** The folder of the virtual environment's programs. */
export const PROGRAMS = join(ENVIRONMENT, WINDOWS ? "Scripts" : "bin");

/** The virtual environment's Python. */
export const PYTHON = join(PROGRAMS, WINDOWS ? "python.exe" : "python");

/** The environment of programs that import Shapetrace from here. */
export const BACKEND_ENVIRONMENT = {
  ...process.env,
  PYTHONPATH: [join(ROOT, "python_backend"), process.env["PYTHONPATH"]]
    .filter(Boolean)
    .join(delimiter),
};

/** Installs whatever of the virtual environment and the node packages is missing. */
export function setUp() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
    const oldest = OLDEST_NODE.join(".");
    throw new Failure(`this is Node.js ${process.versions.node}; install ${oldest} or newer`);
  }
  // Outside the lock: nearly always there is nothing to do, and then there is no need to wait.
  if (pythonIsComplete() && nodeIsComplete()) {
    return;
  }
  locked(LOCK, sayWaiting, () => {
    setUpPython();
    setUpNode();
  });
}

/**
 * Runs a program to its end with our terminal, and returns its exit code.
 *
 * @param {string} program
 * @param {readonly string[]} options
 * @param {NodeJS.ProcessEnv} [environment]
 * @param {string} [folder]
 * @returns {number}
 */
export function run(program, options, environment = process.env, folder = ROOT) {
  const result = spawnSync(program, options, { cwd: folder, env: environment, stdio: "inherit" });
  if (result.error) {
    throw new Failure(`cannot run ${program}: ${result.error.message}`);
  }
  if (result.signal !== null) {
    throw new CommandFailure(`${program} was ended by ${result.signal}`, null);
  }
  return result.status ?? 1;
}

/**
 * Does the work of a script, and turns a failure into one line and an exit code. When it is done,
 * nothing that it started is left.
 *
 * @param {() => number | Promise<number>} work
 */
export function main(work) {
  void (isSupervised() ? finished(work) : supervise()).then((code) => {
    // Whatever is still open: a failure in one part does not wait for the others.
    process.exit(code);
  });
}

/** @param {() => number | Promise<number>} work */
async function finished(work) {
  try {
    return await work();
  } catch (error) {
    console.error(`shapetrace: ${adviceOn(error)}`);
    return 1;
  }
}

/** @param {unknown} error */
function adviceOn(error) {
  if (error instanceof Failure) {
    return error.message;
  }
  if (error instanceof Error && "syscall" in error) {
    // Of the system: a disk that is full, a folder that cannot be written to.
    return `${error.message}; mend that, and run this again`;
  }
  console.error(error);
  return "see above; mend that, and run this again";
}

function setUpPython() {
  if (pythonIsComplete()) {
    return;
  }
  const requirement = torchRequirement();
  const cutOff = existsSync(UNFINISHED);
  if (cutOff || !environmentServes()) {
    const interpreter = findPython();
    say(`making .venv with ${interpreter.command.join(" ")} (Python ${interpreter.version})`);
    rmSync(ENVIRONMENT, { recursive: true, force: true });
    // From the start: without its mark, one that was cut off here would be taken for a whole one.
    mkdirSync(ENVIRONMENT);
    markUnfinished();
    const [program = "", ...options] = interpreter.command;
    must(program, [...options, "-m", "venv", ENVIRONMENT]);
  }
  say("installing Python packages (1.5 GB, a few minutes the first time)");
  markUnfinished();
  rmSync(COMPLETE, { force: true });
  try {
    requireIndex();
    // torch by itself and first: as a dependency of another package pip may choose another build.
    must(PYTHON, ["-m", "pip", "install", "--quiet", requirement]);
    must(PYTHON, ["-m", "pip", "install", "--quiet", "-r", REQUIREMENTS, "-c", CONSTRAINTS]);
    must(PYTHON, ["-m", "pip", "check"]);
  } catch (error) {
    // A pip that says it failed has undone what it began: only a killed one leaves half a package.
    if (error instanceof CommandFailure && error.code !== null) {
      rmSync(UNFINISHED);
    }
    throw error;
  }
  writeFileSync(COMPLETE, packagesDigest(versionOf([PYTHON])));
  rmSync(UNFINISHED);
}

function markUnfinished() {
  writeFileSync(UNFINISHED, "This is being made and filled, or that was cut off.\n");
}

function setUpNode() {
  if (!nodeIsComplete()) {
    say("installing node packages");
    const npm = process.env["npm_execpath"];
    if (npm?.endsWith(".js")) {
      must(process.execPath, [npm, "ci", ...SOON]);
    } else {
      must(WINDOWS ? "npm.cmd" : "npm", ["ci", ...SOON]);
    }
  }
}

/** @returns {boolean} */
function pythonIsComplete() {
  return (
    existsSync(COMPLETE) &&
    !existsSync(UNFINISHED) &&
    environmentServes() &&
    readFileSync(COMPLETE, "utf8") === packagesDigest(versionOf([PYTHON]))
  );
}

/** Whether .venv has a Python that runs, is new enough, and is the one that was asked for. */
function environmentServes() {
  const version = existsSync(PYTHON) ? versionOf([PYTHON]) : undefined;
  const chosen = process.env["SHAPETRACE_PYTHON"];
  return isNewEnough(version) && (!chosen || versionOf([chosen]) === version);
}

/**
 * What an environment's mark holds: of the version of its Python, and of its packages.
 *
 * @param {string | undefined} version
 */
export function packagesDigest(version) {
  const digest = createHash("sha256").update(version ?? "");
  for (const file of [REQUIREMENTS, CONSTRAINTS]) {
    digest.update(`\0${readFileSync(join(ROOT, file), "utf8")}`);
  }
  return digest.digest("hex");
}

export function torchRequirement() {
  return requirementOf("torch");
}

/** @param {string} name */
function requirementOf(name) {
  const source = readFileSync(join(ROOT, REQUIREMENTS), "utf8");
  const requirement = new RegExp(`^${name}==.*$`, "m").exec(source);
  if (requirement === null) {
    throw new Failure(`${REQUIREMENTS} pins no ${name}`);
  }
  return requirement[0].trim();
}

/**
 * Fails within seconds where pip finds no packages. It asks for each of them six times, and waits
 * longer and longer: of use while a network is poor, minutes where there is none.
 */
export function requireIndex() {
  // A small one, of which nothing but what it is called is fetched.
  const asked = ["--dry-run", "--ignore-installed", "--no-deps", requirementOf("pygls")];
  const options = ["-m", "pip", "install", "--quiet", "--retries=1", "--timeout=10", ...asked];
  const result = spawnSync(PYTHON, options, { encoding: "utf8" });
  if (result.status !== 0) {
    const [line = ""] = /^ERROR: .*/m.exec(result.stderr) ?? [];
    throw new CommandFailure(
      `pip finds no packages (${line.slice(7) || "it says nothing"}); connect this machine to the network, or name an index with PIP_INDEX_URL, and run this again`,
      result.status,
    );
  }
}

/**
 * A Python that can make virtual environments: SHAPETRACE_PYTHON, or the first on PATH.
 *
 * @returns {{ command: string[], version: string }}
 */
function findPython() {
  const oldest = OLDEST_PYTHON.join(".");
  const chosen = process.env["SHAPETRACE_PYTHON"];
  const candidates = chosen
    ? [[chosen]]
    : [
        ["python3"],
        ...["3.11", "3.12", "3.13", "3.14"].map((version) => [`python${version}`]),
        ["python"],
        ...(WINDOWS ? [["py", "-3"]] : []),
      ];
  const refused = [];
  for (const command of candidates) {
    const version = versionOf(command);
    if (version === undefined) {
      continue;
    }
    if (!isNewEnough(version)) {
      refused.push(`${command.join(" ")} is ${version}`);
    } else if (!works([...command, "-c", "import ensurepip, venv"])) {
      refused.push(
        `${command.join(" ")} has no venv module (Debian: apt-get install python3-venv)`,
      );
    } else {
      return { command, version };
    }
  }
  const reasons = refused.length === 0 ? "" : ` (${refused.join("; ")})`;
  throw new Failure(
    chosen
      ? `SHAPETRACE_PYTHON=${chosen} is no Python ${oldest} or newer${reasons}`
      : `no Python ${oldest} or newer was found${reasons}; install one, or name it in SHAPETRACE_PYTHON`,
  );
}

/**
 * The version of a Python, or undefined where it does not run.
 *
 * @param {readonly string[]} command
 * @returns {string | undefined}
 */
export function versionOf([program = "", ...options]) {
  const source = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
  const result = spawnSync(program, [...options, "-c", source], { encoding: "utf8" });
  return result.status === 0 ? result.stdout.trim() : undefined;
}

/** @param {string | undefined} version */
function isNewEnough(version) {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  return major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1];
}

/** @param {readonly string[]} command */
function works([program = "", ...options]) {
  return spawnSync(program, options).status === 0;
}

/** Whether node_modules holds each package of package-lock.json that is not optional. */
function nodeIsComplete() {
  const wanted = packagesOf(join(ROOT, "package-lock.json"));
  const present = packagesOf(join(ROOT, "node_modules", ".package-lock.json"));
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === "" ||
      optional === true ||
      (present[path]?.version === version && existsSync(join(ROOT, path, "package.json"))),
  );
}

/**
 * @typedef {{ version: string, optional?: boolean }} Package
 * @param {string} file
 * @returns {Record<string, Package>}
 */
function packagesOf(file) {
  try {
    /** @type {{ packages: Record<string, Package> }} */
    const lockfile = JSON.parse(readFileSync(file, "utf8"));
    return lockfile.packages;
  } catch {
    return {}; // Missing, or cut off: nothing counts as installed.
  }
}

/** @param {number | undefined} owner */
function sayWaiting(owner) {
  say(`waiting for the set-up that process ${owner ?? "?"} is doing (its mark is .setup.lock)`);
}

/**
 * @param {string} program
 * @param {readonly string[]} options
 */
function must(program, options) {
  const code = run(program, options);
  if (code !== 0) {
    const command = [program, ...options].join(" ");
    const { bavail, bsize } = statfsSync(ROOT);
    const megabytes = Math.floor((bavail * bsize) / 1e6);
    // Not every program says so.
    const advice =
      megabytes < FEW_MEGABYTES
        ? `the disk has ${megabytes} MB left; make room, and run this again`
        : "mend what it says above, and run this again";
    throw new CommandFailure(`\`${command}\` failed with exit code ${code}: ${advice}`, code);
  }
}

/** @param {string} message */
function say(message) {
  console.log(`setup: ${message}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(() => {
    setUp();
    say("everything is there");
    return 0;
  });
}
