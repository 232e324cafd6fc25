/** `npm run demo`: what Shapetrace does, on the programs in examples/. */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

import { BACKEND_ENVIRONMENT, Failure, main, PYTHON, ROOT, run, setUp } from "./setup.mjs";

const TRACE_FILE = "build/demo/train_gpt.json";

/** What is said, what is run, and the exit code that it ends with. */
const TOUR = /** @type {const} */ ([
  ["The forward pass of a program, as it ran:", ["run", "examples/train_gpt.py"], 0],
  [
    "Another one as its own lines, with the calls between them:",
    ["run", "--view", "listing", "examples/encoder_decoder.py"],
    0,
  ],
  ["One that raises:", ["run", "examples/shape_error.py"], 1],
  [
    "A trace is kept in a file, ...",
    ["run", "--view", "none", "-o", TRACE_FILE, "examples/train_gpt.py"],
    0,
  ],
  ["... and looked at later, or elsewhere:", ["show", "--view", "table", TRACE_FILE], 0],
]);

main(() => {
  setUp();
  mkdirSync(dirname(join(ROOT, TRACE_FILE)), { recursive: true });
  for (const [says, options, expected] of TOUR) {
    const command = `python -m shapetrace ${options.join(" ")}`;
    console.log(`\n${says}\n\n$ ${command}\n`);
    const code = run(PYTHON, ["-m", "shapetrace", ...options], BACKEND_ENVIRONMENT);
    if (code !== expected) {
      throw new Failure(`\`${command}\` ended with exit code ${code}, not ${expected}`);
    }
  }
  return 0;
});
