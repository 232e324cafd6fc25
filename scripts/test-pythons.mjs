/**
 * `npm run test:pythons`: on the other Pythons, the tests that may turn out otherwise there.
 * `npm run test:pythons -- OPTIONS` hands the options to pytest on each of them, and runs nothing else.
 * SHAPETRACE_PYTHONS="3.14" chooses the Pythons.
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import { setUpPythons } from "./pythons.mjs";
import { main, ROOT, run } from "./setup.mjs";
import { inWords, sum, totalsOf } from "./totals.mjs";

const PYTHONS = ["3.12", "3.13"];

/**
 * All unit tests, the command line's, and of the debugger's those that show whether a stop, a step, an
 * exception, a pane and a hint are as they should be by the events of this Python's `sys.monitoring`.
 *
 * Left out for the time they take: the debugger's other tests, which drive the same code through other
 * programs; and capture, server, transport, models and boundaries, where no code looks at the version.
 */
const TESTS = [
  "tests/python/unit",
  "tests/python/e2e/cli",
  ...[
    "test_breakpoints.py::test_each_line_stops_once",
    "test_captures.py::test_steps_end_where_they_would[True-stepIn]",
    "test_evaluation.py::test_values_that_the_user_changes",
    "test_exceptions.py::test_an_uncaught_exception_in_a_thread",
    "test_exceptions.py::test_an_uncaught_shape_error_stops_in_the_program",
    "test_exceptions.py::test_stops_at_exceptions[raised uncaught-True]",
    "test_followed_functions.py::test_only_what_the_program_raises_stops[True]",
    "test_followed_functions.py::test_steps_lead_from_line_to_line_as_ever[2]",
    "test_forward_pass.py::test_the_whole_step_is_recorded_once",
    "test_stop_query.py",
    "test_in_place.py::test_within_a_forward_that_stands_still",
    "test_panes.py::test_every_kind_of_value_and_nothing_is_read[bundled]",
    "test_panes.py::test_where_a_script_assigned_its_variables",
    "test_processes.py::test_a_forked_child_is_unharmed",
    "test_stepping.py::test_any_steps[1]",
    "test_stepping.py::test_steps_into_what_torch_calls_back",
    "test_watches.py::test_steps_of_all_kinds[0]",
  ].map((test) => `tests/python/e2e/agent/${test}`),
];

/** The debugger's and the command line's tests wait for other processes. */
const WORKERS = 3;

const RESULTS = join(ROOT, "build", "test-results");

const ENVIRONMENT = {
  ...process.env,
  OMP_NUM_THREADS: "1",
  TOKENIZERS_PARALLELISM: "false",
  // `npm test` tries them all, and these two Pythons are to take no longer than that one.
  SHAPETRACE_ONE_IN: process.env["SHAPETRACE_ONE_IN"] ?? "8",
};

main(async () => {
  const chosen = process.env["SHAPETRACE_PYTHONS"]?.split(/\s+/).filter(Boolean) ?? PYTHONS;
  const environments = await setUpPythons(chosen);
  const options = process.argv.slice(2);
  if (options.length > 0) {
    const codes = environments.map(({ version, python }) => {
      console.log(`\n> Python ${version}`);
      return run(python, ["-m", "pytest", ...options], ENVIRONMENT);
    });
    return Math.max(...codes);
  }
  mkdirSync(RESULTS, { recursive: true });
  const totals = environments.map(({ version, python }) => {
    console.log(`\n> Python ${version}`);
    return { version, ...test(version, python) };
  });
  console.log();
  for (const { version, ...total } of totals) {
    console.log(`Python ${version}: ${inWords(total)}`);
  }
  const total = sum(totals);
  console.log(`total: ${inWords(total)}`);
  return total.failed === 0 ? 0 : 1;
});

/**
 * @param {string} version
 * @param {string} python
 */
function test(version, python) {
  const results = join(RESULTS, `pytest-${version}.xml`);
  rmSync(results, { force: true });
  const sharing = ["--numprocesses", String(WORKERS), "--dist=worksteal"];
  const code = run(
    python,
    ["-m", "pytest", ...sharing, `--junit-xml=${results}`, ...TESTS],
    ENVIRONMENT,
  );
  return totalsOf(results, code);
}
