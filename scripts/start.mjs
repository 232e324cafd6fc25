/** `npm start`: a VS Code in the browser, with the extension and `examples/` open. */
import { join } from "node:path";

import { checkMachine, installEditor } from "./editor/install.mjs";
import { Server } from "./editor/serve.mjs";
import { packageExtension } from "./package.mjs";
import { main, PYTHON, ROOT, setUp } from "./setup.mjs";

main(async () => {
  checkMachine(["newest"], { browser: false });
  setUp();
  const server = new Server(installEditor("newest"), {
    extensions: [await packageExtension()],
    settings: { "shapetrace.interpreter": PYTHON },
  });
  await server.start();
  console.log(`\nVS Code with Shapetrace: ${server.address(join(ROOT, "examples"))}`);
  console.log("Open train_gpt.py there and run `Shapetrace: Trace Forward Pass`. Ctrl-C ends it.");
  return server.ended();
});
