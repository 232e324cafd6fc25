/**
 * `npm run test:pythons`: on the other Pythons, the tests that may turn out otherwise there.
 * `npm run test:pythons -- OPTIONS` hands the options to pytest on each of them, and runs nothing else.
 * SHAPETRACE_PYTHONS="3.14" chooses the Pythons, and "3.12-torch-2.8.0" a torch as well.
 */
import { PYTHONS, runPytestOn, testOn } from "./matrix.mjs";
import { main } from "./setup.mjs";

main(async () => {
  const chosen = process.env["SHAPETRACE_PYTHONS"]?.split(/\s+/).filter(Boolean) ?? PYTHONS;
  const options = process.argv.slice(2);
  return options.length > 0 ? runPytestOn(chosen, options) : testOn(chosen);
});
