/** `npm run check`: everything that can be said about the source without running it. */
import { main, setUp } from "./setup.mjs";
import { node, python, runAll } from "./steps.mjs";

main(() => {
  setUp();
  const failed = runAll([
    python("ruff", "check", "."),
    python("ruff", "format", "--check", "."),
    python("mypy"),
    node("typescript/bin/tsc", "--noEmit"),
    node("typescript/bin/tsc", "--noEmit", "--project", "tests/extension/e2e"),
    node("eslint/bin/eslint.js", "--max-warnings=0", "."),
    node("prettier/bin/prettier.cjs", "--check", "."),
  ]);
  return failed === 0 ? 0 : 1;
});
