import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

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
  keepLogs(join(server.userData, "logs"), join(folder, "logs"));
  if (workbench !== undefined && !workbench.page.isClosed()) {
    await workbench.screenshot(join(folder, "window.png"));
    writeFileSync(join(folder, "window.html"), await workbench.page.content());
    writeFileSync(join(folder, "console.txt"), workbench.consoleLines.join("\n"));
  }
  return folder;
}

/** The logs of the newest window: each has an extension host of its own. */
function keepLogs(from: string, to: string): void {
  if (!existsSync(from)) {
    return;
  }
  const hosts = readdirSync(from, { recursive: true, encoding: "utf8" }).filter((path) =>
    /exthost\d+$/.test(path),
  );
  const numberOf = (path: string): number => Number(/\d+$/.exec(path)?.[0]);
  const newest = hosts.sort((one, other) => numberOf(one) - numberOf(other)).at(-1);
  if (newest !== undefined) {
    cpSync(join(from, newest), join(to, basename(newest)), { recursive: true });
    for (const name of readdirSync(join(from, dirname(newest)))) {
      if (name.endsWith(".log")) {
        cpSync(join(from, dirname(newest), name), join(to, name));
      }
    }
  }
}
