/**
 * `npm run soak`: programs that others wrote the libraries of, with and without Shapetrace, and what
 * they go through. Takes hours, and is no part of `npm test`; see docs/reliability.md.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Failure, main, PYTHON, ROOT, run, setUp } from "./setup.mjs";

const ENVIRONMENT = join(ROOT, ".soak");
const SOAK_PYTHON = join(ENVIRONMENT, "bin", "python");
const MARK = join(ENVIRONMENT, ".complete");
const REQUIREMENTS = join(ROOT, "tests", "soak", "requirements.txt");

main(() => {
  setUp();
  prepare();
  const paths = [ROOT, join(ROOT, "python_backend")].join(":");
  const environment = { ...process.env, PYTHONPATH: paths };
  return run(SOAK_PYTHON, ["-m", "tests.soak.run", ...process.argv.slice(2)], environment);
});

/** Makes an environment that sees all of `.venv`, so that torch is there once. */
function prepare() {
  const digest = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex");
  if (existsSync(MARK) && readFileSync(MARK, "utf8") === digest) {
    return;
  }
  rmSync(ENVIRONMENT, { recursive: true, force: true });
  must(PYTHON, ["-m", "venv", ENVIRONMENT]);
  const [version = ""] = readdirSync(join(ENVIRONMENT, "lib"));
  const packages = (/** @type {string} */ folder) => join(folder, "lib", version, "site-packages");
  writeFileSync(join(packages(ENVIRONMENT), "project.pth"), `${packages(join(ROOT, ".venv"))}\n`);
  must(SOAK_PYTHON, ["-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS]);
  writeFileSync(MARK, digest);
}

/**
 * @param {string} program
 * @param {readonly string[]} options
 */
function must(program, options) {
  if (run(program, options) !== 0) {
    throw new Failure(`\`${[program, ...options].join(" ")}\` failed`);
  }
}
