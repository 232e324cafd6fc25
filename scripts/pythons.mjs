/**
 * `.pythons`: for each other Python that Shapetrace is tested on an environment like `.venv`.
 *
 * On Linux PyPI has torch for these with CUDA in it, whose libraries it loads wherever it runs. They
 * are the same for every Python and 2.7 GB, so they are installed once, and linked into each.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, relative } from "node:path";

import { lockedWhile } from "./lock.mjs";
import {
  CONSTRAINTS,
  CommandFailure,
  Failure,
  packagesDigest,
  REQUIREMENTS,
  ROOT,
  torchRequirement,
  versionOf,
} from "./setup.mjs";

const FOLDER = join(ROOT, ".pythons");
const LOCK = join(FOLDER, "setup.lock");
const CUDA = join(FOLDER, "cuda");
const WINDOWS = process.platform === "win32";

/** What torch asks for and does without on a processor: CUDA's, and the compiler for its kernels. */
const FOR_DEVICES = /^(?:nvidia-|cuda-|triton\b)/;

/**
 * An environment, and the interpreter that it is made with.
 *
 * @typedef {{ name: string, version: string, interpreter: string, home: string, python: string }} Environment
 */

/**
 * Installs the missing environments, and returns their interpreters.
 *
 * @param {readonly string[]} names as "3.12"
 * @returns {Promise<{ version: string, python: string }[]>}
 */
export async function setUpPythons(names) {
  const environments = findInterpreters(names);
  // Outside the lock: nearly always there is nothing to do, and then there is no need to wait.
  if (!environments.every(isComplete)) {
    mkdirSync(FOLDER, { recursive: true });
    await lockedWhile(LOCK, sayWaiting, () =>
      install(environments.filter((one) => !isComplete(one))),
    );
  }
  return environments;
}

/**
 * @param {readonly string[]} names
 * @returns {Environment[]}
 */
function findInterpreters(names) {
  /** @type {Environment[]} */
  const found = [];
  const missing = [];
  for (const name of names) {
    const interpreter = candidatesFor(name).find((file) => serves(file, name));
    const version = interpreter && versionOf([interpreter]);
    if (interpreter && version) {
      const home = join(FOLDER, name);
      const python = WINDOWS ? join(home, "Scripts", "python.exe") : join(home, "bin", "python");
      found.push({ name, version, interpreter, home, python });
    } else {
      missing.push(name);
    }
  }
  if (missing.length > 0) {
    throw new Failure(
      `no Python ${missing.join(" and no Python ")} with its venv module was found: ` +
        `install ${missing.length === 1 ? "it" : "them"} with pyenv, or as ` +
        `${missing.map((name) => `python${name}`).join(" and ")} on PATH`,
    );
  }
  return found;
}

/**
 * What may be the interpreter: PATH's comes first, then pyenv's from the newest on.
 *
 * @param {string} name
 * @returns {string[]}
 */
function candidatesFor(name) {
  const file = WINDOWS ? `python${name}.exe` : `python${name}`;
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const versions = join(process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv"), "versions");
  const ofPyenv = existsSync(versions) ? readdirSync(versions) : [];
  const byVersion = new Intl.Collator("en", { numeric: true }).compare;
  return [
    ...folders.map((folder) => join(folder, file)),
    ...ofPyenv
      .filter((version) => version.startsWith(`${name}.`))
      .sort((one, other) => byVersion(other, one))
      .map((version) => join(versions, version, ...(WINDOWS ? [] : ["bin"]), "python")),
  ].filter((candidate) => existsSync(candidate));
}

/**
 * @param {string} interpreter
 * @param {string} name
 */
function serves(interpreter, name) {
  const source = `import ensurepip, sys, venv; sys.exit("%d.%d" % sys.version_info[:2] != "${name}")`;
  return spawnSync(interpreter, ["-c", source]).status === 0;
}

/** @param {Environment} environment */
function isComplete({ home, version, python }) {
  const mark = completeMark(home);
  return (
    existsSync(mark) &&
    readFileSync(mark, "utf8") === packagesDigest(version) &&
    versionOf([python]) === version
  );
}

/**
 * All at once: most of the time goes by in waiting for the network.
 *
 * @param {readonly Environment[]} environments
 */
async function install(environments) {
  const [first] = environments;
  if (first === undefined) {
    return; // Whoever held the lock has done it.
  }
  const versions = environments.map(({ version }) => version).join(" and ");
  console.log(`pythons: making .pythons for Python ${versions} (6 GB, minutes the first time)`);
  const stop = new AbortController();
  /** @type {Command} */
  const must = (program, ...options) => finished(program, options, stop.signal);
  try {
    await Promise.all(environments.map((environment) => installTorch(environment, must)));
    const libraries = await librariesForDevices(first, must);
    await Promise.all([
      installLibraries(first, libraries, must),
      ...environments.map((environment) => installPackages(environment, must)),
    ]);
    for (const environment of environments) {
      if (libraries.length > 0) {
        await link(environment, must);
      }
      await check(environment, must);
      writeFileSync(completeMark(environment.home), packagesDigest(environment.version));
    }
  } finally {
    stop.abort();
  }
}

/**
 * @typedef {(program: string, ...options: string[]) => Promise<string>} Command returns what it printed
 * @param {Environment} environment
 * @param {Command} must
 */
async function installTorch({ home, interpreter, python }, must) {
  // Without its mark it is unknown what is in it.
  rmSync(home, { recursive: true, force: true });
  await must(interpreter, "-m", "venv", home);
  await must(python, ...PIP_INSTALL, "--no-deps", torchRequirement());
}

/**
 * Every package that there is to be has its version in one of the two files.
 *
 * @param {Environment} environment
 * @param {Command} must
 */
async function installPackages({ python }, must) {
  await must(python, ...PIP_INSTALL, "--no-deps", "-r", REQUIREMENTS, "-r", CONSTRAINTS);
}

/**
 * The packages of CUDA libraries that torch asks for: none where its build is for processors.
 *
 * @param {Environment} environment
 * @param {Command} must
 * @returns {Promise<string[]>}
 */
async function librariesForDevices({ python }, must) {
  const source = "import importlib.metadata as m; print(*m.requires('torch') or [], sep='\\n')";
  const requirements = (await must(python, "-c", source)).split("\n").map((line) => line.trim());
  return requirements.filter((one) => /^(?:nvidia-|cuda-toolkit\b)/.test(one)).sort();
}

/**
 * @param {Environment} environment
 * @param {readonly string[]} libraries
 * @param {Command} must
 */
async function installLibraries({ interpreter }, libraries, must) {
  const mark = completeMark(CUDA);
  const wanted = libraries.join("\n");
  if (libraries.length === 0 || (existsSync(mark) && readFileSync(mark, "utf8") === wanted)) {
    return;
  }
  rmSync(CUDA, { recursive: true, force: true });
  await must(interpreter, ...PIP_INSTALL, "--target", CUDA, ...libraries);
  writeFileSync(mark, wanted);
}

/**
 * Puts the libraries where torch's own search path has them.
 *
 * @param {Environment} environment
 * @param {Command} must
 */
async function link({ python }, must) {
  const source = "import sysconfig; print(sysconfig.get_path('platlib'))";
  const folder = (await must(python, "-c", source)).trim();
  const place = join(folder, "nvidia");
  if (lstatSync(place, { throwIfNoEntry: false }) === undefined) {
    symlinkSync(relative(folder, join(CUDA, "nvidia")), place);
  }
}

/**
 * @param {Environment} environment
 * @param {Command} must
 */
async function check({ version, python }, must) {
  await must(python, "-c", "import torch; assert torch.ones(2).sum() == 2");
  const { stdout } = spawnSync(python, ["-m", "pip", "check"], { encoding: "utf8" });
  const lacking = stdout
    .split("\n")
    .filter((line) => line && !line.startsWith("No broken requirements"))
    .filter((line) => !FOR_DEVICES.test(/^torch \S+ requires (.*)$/.exec(line)?.[1] ?? ""));
  if (lacking.length > 0) {
    throw new Failure(`Python ${version}: ${lacking.join("; ")}; pin it in ${CONSTRAINTS}`);
  }
}

const PIP_INSTALL = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"];

/** @param {string} home */
function completeMark(home) {
  return join(home, ".shapetrace-complete");
}

/**
 * Runs a program to its end, and returns what it printed.
 *
 * @param {string} program
 * @param {readonly string[]} options
 * @param {AbortSignal} signal ends it, where another one has failed
 * @returns {Promise<string>}
 */
function finished(program, options, signal) {
  const command = [program, ...options].join(" ");
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, {
      cwd: ROOT,
      signal,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.setEncoding("utf8").on("data", (/** @type {string} */ text) => (printed += text));
    child.on("error", (error) => {
      reject(new Failure(`cannot run ${program}: ${error.message}`));
    });
    child.on("close", (code) => {
      if (code === 0) {
        resolve(printed);
      } else {
        reject(new CommandFailure(`\`${command}\` failed with exit code ${code ?? "?"}`, code));
      }
    });
  });
}

/** @param {number | undefined} owner */
function sayWaiting(owner) {
  console.log(`pythons: waiting for the set-up that process ${owner ?? "?"} is doing`);
}
