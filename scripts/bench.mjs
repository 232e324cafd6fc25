/** `npm run bench`: the measurements of docs/benchmarks.md; options go to tests/bench/run.py. */
import { BACKEND_ENVIRONMENT, main, PYTHON, run, setUp } from "./setup.mjs";

main(() => {
  setUp();
  return run(PYTHON, ["tests/bench/run.py", ...process.argv.slice(2)], BACKEND_ENVIRONMENT);
});
