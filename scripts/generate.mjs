/** `npm run generate`: writes `extension/src/protocol.generated.ts` from the server's messages. */
import { join } from "node:path";

import { BACKEND_ENVIRONMENT, main, PYTHON, ROOT, run, setUp } from "./setup.mjs";

main(() => {
  setUp();
  return run(PYTHON, [join(ROOT, "scripts", "generate_protocol.py")], BACKEND_ENVIRONMENT);
});
