/** `npm run demo`: Shapetrace's main job, in a real VS Code without a screen. */
import { installBrowser } from "./editor/browser.mjs";
import { checkMachine, installEditor } from "./editor/install.mjs";
import { BACKEND_ENVIRONMENT, Failure, main, PYTHON, run, setUp } from "./setup.mjs";
import { packageExtension } from "./package.mjs";

main(async () => {
  checkMachine(["newest"]);
  setUp();
  installBrowser();
  installEditor("newest");
  await packageExtension();
  console.log("\nTrace Forward Pass in VS Code, and what the editor then shows:\n");
  const code = run(process.execPath, ["--import", "tsx", "scripts/showcase/demo.ts"]);
  if (code !== 0) {
    return code;
  }
  console.log("\nThe same in the terminal, for a program that raises:\n");
  const options = ["-m", "shapetrace", "run", "examples/shape_error.py"];
  console.log(`$ python ${options.join(" ")}\n`);
  if (run(PYTHON, options, BACKEND_ENVIRONMENT) !== 1) {
    throw new Failure("the program did not end as it should");
  }
  return 0;
});
