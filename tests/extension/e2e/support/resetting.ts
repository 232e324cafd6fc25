/** Windows that several tests use: each finds one as if it had just been opened. */
import { existsSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";

import { buildSync } from "esbuild";

import type { Server } from "../../../../scripts/editor/serve.mjs";
import { Failure, ROOT } from "../../../../scripts/setup.mjs";
import { type Files, type Folder, writeFiles } from "./folder";
import { type Answer, type Question, SOCKET } from "./resetProtocol";
import { arrangePanesAsFirst } from "./panes";
import { eventually, eventuallyEqual } from "./waiting";
import type { Workbench } from "./workbench";

const LAUNCH = ".vscode/launch.json";

/** Puts the extension that resets windows beside those that the server will have. */
export function installResetExtension(server: Server): void {
  const folder = join(server.extensions, "shapetrace-tests.reset-1.0.0");
  writeFiles(folder, {
    "package.json": {
      ...{ name: "reset", publisher: "shapetrace-tests", version: "1.0.0" },
      ...{ engines: { vscode: "^1.100.0" }, activationEvents: ["*"], main: "extension.js" },
    },
  });
  buildSync({
    entryPoints: [join(ROOT, "tests/extension/e2e/support/resetExtension.ts")],
    outfile: join(folder, "extension.js"),
    ...{ bundle: true, external: ["vscode"], format: "cjs", platform: "node", target: "node20" },
  });
}

/** Ends what runs in a window, closes what is open and, unless it is kept, forgets the trace. */
export async function reset(
  workbench: Workbench,
  folder: Folder,
  keepsTrace: boolean,
): Promise<void> {
  const { page } = workbench;
  await page.mouse.move(0, 0);
  await arrangePanesAsFirst(page);
  await ask(folder, { kind: "reset", keepsTrace });
  await eventuallyEqual(
    async () => ({
      tabs: await workbench.tabs(),
      messages: await workbench.notifications(),
      runs: await workbench.debug.isRunning(),
    }),
    { tabs: [], messages: [], runs: false },
  );
}

/** Waits until a window has taken up the settings and launch configurations that were written. */
export async function takesUp(server: Server, folder: Folder, files: Files): Promise<void> {
  const { configurations } = (files[LAUNCH] ?? {}) as { configurations?: unknown };
  const { settings } = server;
  await eventuallyEqual(() => ask(folder, { kind: "configuration", keys: Object.keys(settings) }), {
    // As JSON has it: what is not set is not there.
    ...(JSON.parse(JSON.stringify({ settings, launch: configurations })) as Answer),
  });
}

async function ask(folder: Folder, question: Question): Promise<Answer> {
  const socketPath = join(dirname(folder.path), SOCKET);
  await eventually(
    "the window can be reset",
    () => existsSync(socketPath),
    (exists) => exists,
  );
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, method: "POST" }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (data: string) => (text += data));
      response.on("end", () => {
        if (response.statusCode === 200) {
          resolve(JSON.parse(text) as Answer);
        } else {
          reject(new Failure(`the window cannot be reset: ${text}`));
        }
      });
    });
    asked.on("error", reject).end(JSON.stringify(question));
  });
}
