import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Server } from "../../../../scripts/editor/serve.mjs";
import { ROOT } from "../../../../scripts/setup.mjs";
import type { Workbench } from "./workbench";

/** Writes what may tell why a test failed into build/e2e, and returns the folder. */
export async function keepEvidence(
  name: string,
  server: Server,
  workbench: Workbench | undefined,
): Promise<string> {
  const folder = join(ROOT, "build", "e2e", name.replaceAll(/[^\p{L}\p{N}]+/gu, "-"));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "server.txt"), server.output);
  // Each window has an extension host of its own, and the newest one's number is the highest.
  const logs = join(server.userData, "logs");
  if (existsSync(logs)) {
    cpSync(logs, join(folder, "logs"), { recursive: true });
  }
  if (workbench !== undefined && !workbench.page.isClosed()) {
    await workbench.screenshot(join(folder, "window.png"));
    writeFileSync(join(folder, "window.html"), await workbench.page.content());
    writeFileSync(join(folder, "console.txt"), workbench.consoleLines.join("\n"));
  }
  return folder;
}
