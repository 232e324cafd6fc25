/**
 * The tests on other Pythons and other torches, and what came of them.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { setUpPythons } from "./pythons.mjs";
import { ROOT, run } from "./setup.mjs";
import { inWords, sum, totalsOf } from "./totals.mjs";

/** The Pythons of `npm run test:pythons`. */
export const PYTHONS = ["3.12", "3.13"];

/** The torches of `npm run test:all`, from the oldest that is supported on. */
export const TORCHES = ["3.11-torch-2.4.0", "3.11-torch-2.6.0", "3.11-torch-2.8.0"];

const UNIT = "tests/python/unit";
const COMMAND_LINE = "tests/python/e2e/cli";
const DEBUGGER = "tests/python/e2e/agent";

/**
 * Of the debugger's tests those that show whether a stop, a step, an exception, a pane and a hint are
 * as they should be by the events of this Python's `sys.monitoring`. The others drive the same code
 * through other programs.
 */
const DEBUGGER_ON_EACH_PYTHON = [
  "test_breakpoints.py::test_each_line_stops_once",
  "test_captures.py::test_steps_end_where_they_would[True]",
  "test_evaluation.py::test_values_that_the_user_changes",
  "test_exceptions.py::test_an_uncaught_exception_in_a_thread",
  "test_exceptions.py::test_an_uncaught_shape_error_stops_in_the_program",
  "test_exceptions.py::test_stops_at_exceptions[True]",
  "test_followed_functions.py::test_only_what_the_program_raises_stops[True]",
  "test_followed_functions.py::test_steps_lead_from_line_to_line_as_ever[2]",
  "test_forward_pass.py::test_the_whole_step_is_recorded_once",
  "test_stop_query.py",
  "test_in_place.py::test_within_a_forward_that_stands_still",
  "test_panes.py::test_every_kind_of_value_and_nothing_is_read[bundled]",
  "test_panes.py::test_where_a_script_assigned_its_variables",
  "test_processes.py::test_a_forked_child_is_unharmed",
  "test_stepping.py::test_any_steps",
  "test_stepping.py::test_steps_into_what_torch_calls_back",
  "test_watches.py::test_steps_of_all_kinds[0]",
].map((test) => `${DEBUGGER}/${test}`);

/** What depends on the interpreter: capture, server and transport never look at its version. */
const FEW = [UNIT, COMMAND_LINE, ...DEBUGGER_ON_EACH_PYTHON];

const ALL = [UNIT, COMMAND_LINE, DEBUGGER];

/** What depends on torch's version. */
const FOR_TORCH = [
  ...["recorder", "agent", "instrument", "variables", "watch", "compat", "odd_tensors"].map(
    (name) => `${UNIT}/${name}`,
  ),
  COMMAND_LINE,
];

/** The debugger's and the command line's tests wait for other processes. */
const WORKERS = 3;

const RESULTS = join(ROOT, "build", "test-results");

const ENVIRONMENT = { ...process.env, OMP_NUM_THREADS: "1", TOKENIZERS_PARALLELISM: "false" };

/**
 * Hands options to pytest on each of the Pythons. Returns the highest exit code.
 *
 * @param {readonly string[]} names
 * @param {readonly string[]} options
 */
export async function runPytestOn(names, options) {
  const environments = await setUpPythons(names);
  const codes = environments.map(({ name, python }) => {
    console.log(`\n> Python ${name}`);
    return run(python, ["-m", "pytest", ...options], ENVIRONMENT);
  });
  return Math.max(...codes);
}

/**
 * Runs what depends on the Python or the torch of each. Returns an exit code.
 *
 * @param {readonly string[]} names
 * @param {{ all?: boolean }} options whether all of the debugger's tests are run, and all examples
 */
export async function testOn(names, { all = false } = {}) {
  const environments = await setUpPythons(names);
  mkdirSync(RESULTS, { recursive: true });
  const totals = environments.map(({ name, python }) => {
    console.log(`\n> Python ${name}`);
    const tests = name.includes("torch") ? FOR_TORCH : all ? ALL : FEW;
    return { name, ...test(name, python, tests, all) };
  });
  console.log();
  for (const { name, ...total } of totals) {
    console.log(`Python ${name}: ${inWords(total)}`);
  }
  const total = sum(totals);
  console.log(`total: ${inWords(total)}`);
  return total.failed === 0 ? 0 : 1;
}

/**
 * @param {string} name
 * @param {string} python
 * @param {readonly string[]} tests
 * @param {boolean} all
 */
function test(name, python, tests, all) {
  const results = join(RESULTS, `pytest-${name}.xml`);
  rmSync(results, { force: true });
  const sharing = ["--numprocesses", String(WORKERS), "--dist=worksteal"];
  const order = all ? [] : ["--randomly-dont-reorganize"];
  const code = run(
    python,
    ["-m", "pytest", ...sharing, ...order, `--junit-xml=${results}`, ...tests],
    {
      ...ENVIRONMENT,
      ...(all
        ? { SHAPETRACE_OUTCOMES: "new" }
        : // `npm test` tries them all, and two more Pythons are to take no longer than that one.
          { SHAPETRACE_ONE_IN: process.env["SHAPETRACE_ONE_IN"] ?? "8" }),
    },
  );
  return totalsOf(results, code);
}
