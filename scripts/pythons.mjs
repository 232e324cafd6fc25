/**
 * `.pythons`: for each other Python and torch that Shapetrace is tested on an environment like `.venv`.
 *
 * On Linux PyPI has torch for these with CUDA in it, whose libraries it loads wherever it runs. They
 * are the same for every Python and 2.7 GB, so they are installed once for each torch, and linked.
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
const WINDOWS = process.platform === "win32";

/** What torch asks for and does without on a processor: CUDA's, and the compiler for its kernels. */
const FOR_DEVICES = /^(?:nvidia-|cuda-|triton\b)/;

/**
 * An environment, and the interpreter that it is made with.
 *
 * @typedef {object} Environment
 * @property {string} name
 * @property {string} version of its Python
 * @property {string} torch what pip is to install, as "torch==2.13.0"
 * @property {string} interpreter
 * @property {string} home its folder
 * @property {string} python its interpreter
 * @property {string} cuda the folder of the libraries that its torch loads
 */

/** "3.12", with the torch of `.venv`, or "3.12-torch-2.4.0". */
const NAME = /^(\d+\.\d+)(?:-torch-(\d+\.\d+\.\d+))?$/;

/**
 * Installs the missing environments, and returns their interpreters.
 *
 * @param {readonly string[]} names as "3.12" or "3.11-torch-2.4.0"
 * @returns {Promise<{ name: string, python: string }[]>}
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
  /** @type {string[]} */
  const missing = [];
  for (const name of names) {
    const [, series, other] = NAME.exec(name) ?? [];
    if (series === undefined) {
      throw new Failure(`SHAPETRACE_PYTHONS: ${name} is neither "3.12" nor "3.12-torch-2.4.0"`);
    }
    const interpreter = candidatesFor(series).find((file) => serves(file, series));
    const version = interpreter && versionOf([interpreter]);
    if (interpreter && version) {
      const home = join(FOLDER, name);
      const python = WINDOWS ? join(home, "Scripts", "python.exe") : join(home, "bin", "python");
      const torch = other === undefined ? torchRequirement() : `torch==${other}`;
      const cuda = join(FOLDER, other === undefined ? "cuda" : `cuda-torch-${other}`);
      found.push({ name, version, torch, interpreter, home, python, cuda });
    } else if (!missing.includes(series)) {
      missing.push(series);
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
 * @param {string} series as "3.12"
 * @returns {string[]}
 */
function candidatesFor(series) {
  const file = WINDOWS ? `python${series}.exe` : `python${series}`;
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  const versions = join(process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv"), "versions");
  const ofPyenv = existsSync(versions) ? readdirSync(versions) : [];
  const byVersion = new Intl.Collator("en", { numeric: true }).compare;
  return [
    ...folders.map((folder) => join(folder, file)),
    ...ofPyenv
      .filter((version) => version.startsWith(`${series}.`))
      .sort((one, other) => byVersion(other, one))
      .map((version) => join(versions, version, ...(WINDOWS ? [] : ["bin"]), "python")),
  ].filter((candidate) => existsSync(candidate));
}

/**
 * @param {string} interpreter
 * @param {string} series
 */
function serves(interpreter, series) {
  const source = `import ensurepip, sys, venv; sys.exit("%d.%d" % sys.version_info[:2] != "${series}")`;
  return spawnSync(interpreter, ["-c", source]).status === 0;
}

/** @param {Environment} environment */
function isComplete(environment) {
  const mark = completeMark(environment.home);
  return (
    existsSync(mark) &&
    readFileSync(mark, "utf8") === contentOf(environment) &&
    versionOf([environment.python]) === environment.version
  );
}

/**
 * What an environment's mark holds.
 *
 * @param {Environment} environment
 */
function contentOf({ version, torch }) {
  return `${packagesDigest(version)} ${torch}`;
}

/**
 * All at once: most of the time goes by in waiting for the network.
 *
 * @param {readonly Environment[]} environments
 */
async function install(environments) {
  if (environments.length === 0) {
    return; // Whoever held the lock has done it.
  }
  const names = environments.map(({ name }) => name).join(" and ");
  console.log(`pythons: making .pythons for Python ${names} (6 GB, minutes the first time)`);
  const stop = new AbortController();
  /** @type {Command} */
  const must = (program, ...options) => finished(program, options, stop.signal);
  try {
    await Promise.all(environments.map((environment) => installTorch(environment, must)));
    const firstOfEach = new Map(environments.map((environment) => [environment.cuda, environment]));
    await Promise.all([
      ...[...firstOfEach.values()].map((environment) => installLibraries(environment, must)),
      ...environments.map((environment) => installPackages(environment, must)),
    ]);
    for (const environment of environments) {
      if (existsSync(environment.cuda)) {
        await link(environment, must);
      }
      await check(environment, must);
      writeFileSync(completeMark(environment.home), contentOf(environment));
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
async function installTorch({ home, interpreter, python, torch }, must) {
  // Without its mark it is unknown what is in it.
  rmSync(home, { recursive: true, force: true });
  await must(interpreter, "-m", "venv", home);
  await must(python, ...PIP_INSTALL, "--no-deps", torch);
}

/**
 * Every package that there is to be has its version in one of the two files. torch is there already.
 *
 * @param {Environment} environment
 * @param {Command} must
 */
async function installPackages({ python, home }, must) {
  const others = join(home, REQUIREMENTS);
  const lines = readFileSync(join(ROOT, REQUIREMENTS), "utf8").split("\n");
  writeFileSync(others, lines.filter((line) => !line.startsWith("torch==")).join("\n"));
  await must(python, ...PIP_INSTALL, "--no-deps", "-r", others, "-r", CONSTRAINTS);
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
 * @param {Command} must
 */
async function installLibraries(environment, must) {
  const { cuda, interpreter } = environment;
  const libraries = await librariesForDevices(environment, must);
  const mark = completeMark(cuda);
  const wanted = libraries.join("\n");
  if (libraries.length === 0 || (existsSync(mark) && readFileSync(mark, "utf8") === wanted)) {
    return;
  }
  rmSync(cuda, { recursive: true, force: true });
  await must(interpreter, ...PIP_INSTALL, "--target", cuda, ...libraries);
  writeFileSync(mark, wanted);
}

/**
 * Puts the libraries where torch's own search path has them.
 *
 * @param {Environment} environment
 * @param {Command} must
 */
async function link({ cuda, python }, must) {
  const source = "import sysconfig; print(sysconfig.get_path('platlib'))";
  const folder = (await must(python, "-c", source)).trim();
  const place = join(folder, "nvidia");
  if (lstatSync(place, { throwIfNoEntry: false }) === undefined) {
    symlinkSync(relative(folder, join(cuda, "nvidia")), place);
  }
}

/**
 * @param {Environment} environment
 * @param {Command} must
 */
async function check({ name, python, torch }, must) {
  await must(python, "-c", "import torch; assert torch.ones(2).sum() == 2");
  if (torch !== torchRequirement()) {
    return; // What is pinned is pinned for one torch.
  }
  const { stdout } = spawnSync(python, ["-m", "pip", "check"], { encoding: "utf8" });
  const lacking = stdout
    .split("\n")
    .filter((line) => line && !line.startsWith("No broken requirements"))
    .filter((line) => !FOR_DEVICES.test(/^torch \S+ requires (.*)$/.exec(line)?.[1] ?? ""));
  if (lacking.length > 0) {
    throw new Failure(`Python ${name}: ${lacking.join("; ")}; pin it in ${CONSTRAINTS}`);
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
