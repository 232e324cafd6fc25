/** `npm run bench`: the measurements of docs/benchmarks.md; options go to tests/bench/run.py. */
import { packageExtension } from "./package.mjs";
import { BACKEND_ENVIRONMENT, main, PYTHON, run, setUp } from "./setup.mjs";

main(async () => {
  setUp();
  await packageExtension();
  return run(PYTHON, ["tests/bench/run.py", ...process.argv.slice(2)], BACKEND_ENVIRONMENT);
});
