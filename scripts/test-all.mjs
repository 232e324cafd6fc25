/**
 * `npm run test:all`: all tests of `npm test`, every editor suite in the oldest editor too, and
 * properties with examples that no run has drawn before; then all that depends on Python or on torch,
 * on every version. For hours; nothing is tested here alone.
 */
import { join } from "node:path";

import { PYTHONS, testOn, TORCHES } from "./matrix.mjs";
import { main, ROOT, run } from "./setup.mjs";

main(async () => {
  const code = run(process.execPath, [join(ROOT, "scripts", "test.mjs")], {
    ...process.env,
    SHAPETRACE_EDITOR: "both",
    SHAPETRACE_EXAMPLES: "new",
    SHAPETRACE_ORDER: "random",
    SHAPETRACE_OUTCOMES: "new",
  });
  return Math.max(code, await testOn([...PYTHONS, ...TORCHES], { all: true }));
});
