/**
 * `npm test`: all tests of both sides and of the editor, and one last line with their number.
 * `npm test -- OPTIONS` hands the options to pytest, and runs nothing else.
 *
 * Tests that need more of the machine than the others are skipped where it is not there. With
 * SHAPETRACE_ALLOW_SKIPS=0 that is a failure.
 */
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { checkMachine, installEditors } from "./editor/install.mjs";
import { packageExtension } from "./package.mjs";
import { Failure, main, PYTHON, ROOT, run, setUp } from "./setup.mjs";
import { inWords, reasonsOf, sum, totalsOf } from "./totals.mjs";

/** How many processes share the Python tests, which wait for other processes a good part of the time. */
const PYTEST_WORKERS = 3;

/** Files in their order, unless a random one is asked for: some tests still lean on others. */
const ORDER = process.env["SHAPETRACE_ORDER"] === "random" ? [] : ["--randomly-dont-reorganize"];

/** More editors at a time than processors make each other wait, and none of them faster. */
const EDITOR_PROCESSES = 2;

const RESULTS = join(ROOT, "build", "test-results");

/** Timings would vary with the machine, and many small programs are slower on many threads. */
const ENVIRONMENT = { ...process.env, OMP_NUM_THREADS: "1", TOKENIZERS_PARALLELISM: "false" };

main(async () => {
  const options = process.argv.slice(2);
  if (options.length > 0) {
    setUp();
    return run(PYTHON, ["-m", "pytest", ...options], ENVIRONMENT);
  }
  // Before anything is installed or tested: what is missing should not be found out after minutes.
  checkMachine(["newest", "oldest"]);
  setUp();
  const maySkip = process.env["SHAPETRACE_ALLOW_SKIPS"] !== "0";
  const lacking = run(PYTHON, ["-m", "tests.support.machine"], ENVIRONMENT);
  if (lacking !== 0 && !maySkip) {
    throw new Failure(
      "SHAPETRACE_ALLOW_SKIPS=0, and tests would be skipped: install what they need",
    );
  }
  rmSync(RESULTS, { recursive: true, force: true });
  mkdirSync(RESULTS, { recursive: true });
  installEditors();
  await packageExtension();
  const totals = [testPython(), testExtension("unit"), testExtension("e2e")];
  const total = sum(totals);
  console.log();
  for (const reason of reasonsOf(total)) {
    console.log(`skipped: ${reason}`);
  }
  console.log(`total: ${inWords(total)}`);
  return total.failed === 0 && (maySkip || total.skipped.length === 0) ? 0 : 1;
});

/** @returns {import("./totals.mjs").Totals} */
function testPython() {
  const results = join(RESULTS, "pytest.xml");
  const code = run(
    PYTHON,
    [
      ...["-m", "pytest", "--numprocesses", String(PYTEST_WORKERS), "--dist=worksteal"],
      ...ORDER,
      `--junit-xml=${results}`,
    ],
    ENVIRONMENT,
  );
  return totalsOf(results, code);
}

/**
 * @param {"unit" | "e2e"} kind a folder of tests/extension
 * @returns {import("./totals.mjs").Totals}
 */
function testExtension(kind) {
  const results = join(RESULTS, `node-${kind}.xml`);
  const folder = join(ROOT, "tests", "extension", kind);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(folder, file));
  const reporters = [
    ...["--test-reporter=spec", "--test-reporter-destination=stdout"],
    ...["--test-reporter=junit", `--test-reporter-destination=${results}`],
  ];
  const chosen =
    kind === "e2e" ? [`--test-concurrency=${EDITOR_PROCESSES}`, ...inProcesses(files)] : files;
  const code = run(
    process.execPath,
    ["--import", "tsx", "--test", ...reporters, ...chosen],
    ENVIRONMENT,
  );
  return totalsOf(results, code);
}

/**
 * As many files as there are to be processes, each of which loads some of the tests: those of one
 * process share an editor and its window.
 *
 * @param {readonly string[]} files
 * @returns {string[]}
 */
function inProcesses(files) {
  // The longest first, so that each process has about as much to do.
  const sorted = [...files].sort((one, other) => statSync(other).size - statSync(one).size);
  return Array.from({ length: EDITOR_PROCESSES }, (_, index) => {
    const part = sorted.filter((_, place) => place % EDITOR_PROCESSES === index);
    const file = join(RESULTS, `editors-${index + 1}.test.mjs`);
    const imports = part.map((each) => `import ${JSON.stringify(pathToFileURL(each).href)};\n`);
    writeFileSync(file, imports.join(""));
    return file;
  });
}
