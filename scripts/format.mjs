/** `npm run format`: mends what the tools can mend by themselves. */
import { main, setUp } from "./setup.mjs";
import { node, python, runAll } from "./steps.mjs";

main(() => {
  setUp();
  const failed = runAll([
    python("ruff", "check", "--fix", "."),
    python("ruff", "format", "."),
    node("eslint/bin/eslint.js", "--fix", "."),
    node("prettier/bin/prettier.cjs", "--write", "--log-level=warn", "."),
  ]);
  return failed === 0 ? 0 : 1;
});
