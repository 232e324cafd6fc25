/** `npm start`: a VS Code in the browser, with the extension and `examples/` open. */
import { join } from "node:path";

import { installEditor } from "./editor/install.mjs";
import { Server } from "./editor/serve.mjs";
import { packageExtension } from "./package.mjs";
import { main, PYTHON, ROOT, setUp } from "./setup.mjs";

main(async () => {
  setUp();
  const server = new Server(installEditor("newest"), {
    extensions: [await packageExtension()],
    settings: { "shapetrace.interpreter": PYTHON },
  });
  try {
    await server.start();
    console.log(`\nVS Code with Shapetrace: ${server.address(join(ROOT, "examples"))}`);
    console.log(
      "Open train_gpt.py there and run `Shapetrace: Trace Forward Pass`. Ctrl-C ends it.",
    );
    await new Promise((resolve) => {
      for (const signal of ["SIGINT", "SIGTERM"]) {
        process.once(signal, resolve);
      }
    });
  } finally {
    await server.stop();
  }
  return 0;
});
