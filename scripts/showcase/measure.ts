/** Measures the extension in a real editor, and prints the figures as JSON. */
import { readFileSync, statSync } from "node:fs";

import { Folder, launchConfigurations } from "../../tests/extension/e2e/support/folder";
import { launchBrowser, packagedExtension } from "../../tests/extension/e2e/support/suite";
import { eventually } from "../../tests/extension/e2e/support/waiting";
import { Workbench } from "../../tests/extension/e2e/support/workbench";
import { installEditor } from "../editor/install.mjs";
import { Server } from "../editor/serve.mjs";
import { Failure, main, PYTHON } from "../setup.mjs";
import { type TreeFigures, treeFigures } from "./treeFigures";

interface Figures {
  readonly tree: TreeFigures;
  /** Milliseconds from the call to the hint on the screen, for each of some lines. */
  readonly hints: readonly number[];
  /** Milliseconds of the extension's activation, for each of some windows. */
  readonly activations: readonly number[];
  readonly bytes: number;
}

const LINES = 24;
const WINDOWS = 5;

const PROGRAM = `\
import json, time
import torch

x, times = torch.ones(2, 3), []
${Array.from({ length: LINES }, (_, line) => `times.append(time.time()); y = x * ${line}; time.sleep(0.37)`).join("\n")}
with open("times.json", "w") as file:
    json.dump(times, file)
`;

/** The line of the first call that is timed. */
const FIRST = 5;

/** Notes in the window when each line first shows a hint, to some five milliseconds. */
function watchHints(): void {
  const seen: Record<string, number> = {};
  Object.assign(globalThis, { seen });
  setInterval(() => {
    const rows = [...document.querySelectorAll<HTMLElement>(".margin-view-overlays > div")];
    for (const line of document.querySelectorAll<HTMLElement>(".view-lines > .view-line")) {
      if (line.querySelector("[class*='dyn-rule']") !== null) {
        const row = rows.find((it) => it.style.top === line.style.top);
        const number = row?.querySelector(".line-numbers")?.textContent;
        if (number !== undefined) {
          seen[number] ??= Date.now();
        }
      }
    }
  }, 5);
}

async function hintDelays(workbench: Workbench, folder: Folder): Promise<number[]> {
  await workbench.page.evaluate(watchHints);
  await workbench.debug.start();
  await workbench.debug.waitUntilRunning();
  await workbench.debug.waitUntilEnded({ seconds: 90 });
  const seen = await eventually(
    "every line has its hint",
    () =>
      workbench.page.evaluate(
        () => (globalThis as unknown as { seen: Record<string, number> }).seen,
      ),
    (times) => Array.from({ length: LINES }, (_, line) => FIRST + line).every((it) => times[it]),
  );
  const called = JSON.parse(readFileSync(folder.file("times.json"), "utf8")) as number[];
  return called.map((seconds, line) => (seen[FIRST + line] ?? Number.NaN) - seconds * 1000);
}

async function activation(workbench: Workbench): Promise<number> {
  await workbench.run("Developer: Show Running Extensions");
  const shown = await eventually(
    "the list of running extensions tells how long ours took",
    () => workbench.page.locator(".runtime-extensions-editor .extension").allInnerTexts(),
    (entries) => entries.some((it) => it.includes("Shapetrace") && /\d+\s*ms/.test(it)),
  );
  const time = /(\d+)\s*ms/.exec(shown.find((it) => it.includes("Shapetrace")) ?? "")?.[1];
  if (time === undefined) {
    throw new Failure(`no time in ${JSON.stringify(shown)}`);
  }
  return Number(time);
}

main(async () => {
  const own = { name: "run", type: "shapetrace", request: "launch", program: "program.py" };
  const folder = new Folder({
    "program.py": PROGRAM,
    ...launchConfigurations({ ...own, cwd: "${workspaceFolder}", console: "internalConsole" }),
  });
  const server = new Server(installEditor("newest"), {
    extensions: [packagedExtension()],
    settings: { "editor.minimap.enabled": false, "shapetrace.interpreter": PYTHON },
    environment: { OMP_NUM_THREADS: "1" },
  });
  const [, browser] = await Promise.all([server.start(), launchBrowser()]);
  try {
    const activations: number[] = [];
    let hints: number[] = [];
    for (let window = 0; window < WINDOWS; window += 1) {
      const context = await browser.newContext({ viewport: { width: 1200, height: 1200 } });
      const workbench = await Workbench.open(context, server.address(folder.path));
      await workbench.openFile(folder.file("program.py"));
      await eventually(
        "the extension is there",
        () => workbench.status(),
        (status) => status !== "",
      );
      if (window === 0) {
        hints = await hintDelays(workbench, folder);
      }
      activations.push(await activation(workbench));
      await workbench.close();
      await context.close();
    }
    const tree = await treeFigures(server, browser);
    const bytes = statSync(packagedExtension()).size;
    const figures: Figures = { hints, activations, tree, bytes };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
  } finally {
    await browser.close();
    await server.stop();
    folder.remove();
  }
  return 0;
});
