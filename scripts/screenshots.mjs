/** `npm run screenshots`: the pictures of the README and docs/, taken again. */
import { checkMachine } from "./editor/install.mjs";
import { packageExtension } from "./package.mjs";
import { main, run, setUp } from "./setup.mjs";

main(async () => {
  checkMachine(["newest"]);
  setUp();
  await packageExtension();
  return run(process.execPath, ["--import", "tsx", "scripts/showcase/screenshots.ts"]);
});
