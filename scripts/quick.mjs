/**
 * `npm run quick`: checks a change in about a minute. Types, lint of what has
 * changed since the last commit, and the unit tests that are not slow, side by side.
 */
import { spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

import { main, ROOT, setUp } from "./setup.mjs";
import { node, python } from "./steps.mjs";

/** Many small programs are slower on many threads. */
const ENVIRONMENT = { ...process.env, OMP_NUM_THREADS: "1" };

main(async () => {
  setUp();
  const began = Date.now();
  const scripts = changed().filter((file) => /\.(ts|mjs)$/.test(file));
  const pretty = changed().filter((file) => /\.(ts|mjs|json|md|ya?ml)$/.test(file));
  const results = await Promise.all([
    // The longest on a processor of its own, all others one after the other beside it.
    inTurn([
      python("pytest", "-n", "2", "-m", "not slow", "tests/python/unit", "tests/python/boundaries"),
    ]),
    inTurn([
      python("ruff", "check", "."),
      python("ruff", "format", "--check", "."),
      python("mypy"),
      node("typescript/bin/tsc", "--noEmit"),
      ...(pretty.length > 0 ? [node("prettier/bin/prettier.cjs", "--check", ...pretty)] : []),
      ...(scripts.length > 0 ? [node("eslint/bin/eslint.js", "--max-warnings=0", ...scripts)] : []),
      unitTests(),
    ]),
  ]);
  const failed = results.flat();
  const seconds = Math.round((Date.now() - began) / 1000);
  console.log(failed.length === 0 ? `all well, in ${seconds} s` : `failed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
});

/** The files that differ from the last commit, new ones among them. */
function changed() {
  const options = ["-z", "HEAD", "--"];
  const listed = [
    spawnSync("git", ["diff", "--name-only", "--diff-filter=d", ...options], { cwd: ROOT }),
    spawnSync("git", ["ls-files", "-z", "--others", "--exclude-standard"], { cwd: ROOT }),
  ];
  return listed.flatMap(({ stdout }) => stdout.toString().split("\0")).filter(Boolean);
}

/** @returns {import("./steps.mjs").Step} */
function unitTests() {
  const folder = join(ROOT, "tests", "extension", "unit");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(folder, file));
  return {
    name: "the extension's unit tests",
    program: process.execPath,
    options: ["--import", "tsx", "--test", "--test-reporter=dot", ...files],
  };
}

/**
 * Runs steps one after the other, and shows what those say that fail.
 *
 * @param {readonly import("./steps.mjs").Step[]} steps
 * @returns {Promise<string[]>} the names of those that failed
 */
async function inTurn(steps) {
  const failed = [];
  for (const { name, program, options } of steps) {
    const began = Date.now();
    const { code, output } = await ran(program, options);
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    console.log(`${code === 0 ? "well" : "FAILED"} ${seconds.padStart(6)} s  ${name}`);
    if (code !== 0) {
      console.log(output);
      failed.push(name);
    }
  }
  return failed;
}

/**
 * @param {string} program
 * @param {readonly string[]} options
 * @returns {Promise<{ code: number | null, output: string }>}
 */
function ran(program, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, options, { cwd: ROOT, env: ENVIRONMENT });
    /** @type {Buffer[]} */
    const output = [];
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (/** @type {Buffer} */ data) => output.push(data));
    }
    child.once("error", reject);
    child.once("close", (code) => {
      resolve({ code, output: Buffer.concat(output).toString() });
    });
  });
}
