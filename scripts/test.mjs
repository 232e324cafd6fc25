/**
 * `npm test`: all tests of both sides and of the editor, and one last line with their number.
 * `npm test -- OPTIONS` hands the options to pytest, and runs nothing else.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { findBrowser, installEditor } from "./editor/install.mjs";
import { packageExtension } from "./package.mjs";
import { main, PYTHON, ROOT, run, setUp } from "./setup.mjs";

/** How many processes share the Python tests, which wait for other processes a good part of the time. */
const PYTEST_WORKERS = 3;

const RESULTS = join(ROOT, "build", "test-results");

/** Timings would vary with the machine, and many small programs are slower on many threads. */
const ENVIRONMENT = { ...process.env, OMP_NUM_THREADS: "1", TOKENIZERS_PARALLELISM: "false" };

/**
 * @typedef {{ passed: number, failed: number, skipped: number }} Totals
 */

main(async () => {
  setUp();
  const options = process.argv.slice(2);
  if (options.length > 0) {
    return run(PYTHON, ["-m", "pytest", ...options], ENVIRONMENT);
  }
  rmSync(RESULTS, { recursive: true, force: true });
  mkdirSync(RESULTS, { recursive: true });
  // Before anything is tested: what is missing should not be found out after ten minutes.
  findBrowser();
  installEditor("newest");
  installEditor("oldest");
  await packageExtension();
  const totals = [
    testPython(),
    testExtension("unit"),
    // More editors than processors make each other wait, and none of them faster.
    testExtension("e2e", "--test-concurrency=2"),
  ];
  const passed = sum(totals.map((total) => total.passed));
  const failed = sum(totals.map((total) => total.failed));
  const skipped = sum(totals.map((total) => total.skipped));
  console.log(
    `\ntotal: ${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`,
  );
  return failed === 0 ? 0 : 1;
});

/** @returns {Totals} */
function testPython() {
  const results = join(RESULTS, "pytest.xml");
  const code = run(
    PYTHON,
    [
      ...["-m", "pytest", "--numprocesses", String(PYTEST_WORKERS), "--dist=worksteal"],
      `--junit-xml=${results}`,
    ],
    ENVIRONMENT,
  );
  return totalsOf(results, code);
}

/**
 * @param {string} kind a folder of tests/extension
 * @param {...string} options of node's test runner
 * @returns {Totals}
 */
function testExtension(kind, ...options) {
  const results = join(RESULTS, `node-${kind}.xml`);
  const folder = join(ROOT, "tests", "extension", kind);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(folder, file));
  const reporters = [
    ...["--test-reporter=spec", "--test-reporter-destination=stdout"],
    ...["--test-reporter=junit", `--test-reporter-destination=${results}`],
  ];
  const code = run(
    process.execPath,
    ["--import", "tsx", "--test", ...options, ...reporters, ...files],
    ENVIRONMENT,
  );
  return totalsOf(results, code);
}

/**
 * Reads a JUnit file. A runner that failed counts as one failure at least, whatever its file says.
 *
 * @param {string} file
 * @param {number} code
 * @returns {Totals}
 */
function totalsOf(file, code) {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  const count = (/** @type {RegExp} */ pattern) => text.match(pattern)?.length ?? 0;
  const reported = count(/<(?:failure|error)\b/g);
  const skipped = count(/<skipped\b/g);
  const passed = Math.max(0, count(/<testcase\b/g) - reported - skipped);
  return { passed, skipped, failed: code === 0 ? reported : Math.max(reported, 1) };
}

/** @param {readonly number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
