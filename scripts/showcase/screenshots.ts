/** Takes the pictures of the README and docs/. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { eventually } from "../../tests/extension/e2e/support/waiting";
import type { Workbench } from "../../tests/extension/e2e/support/workbench";
import { BACKEND_ENVIRONMENT, Failure, main, PYTHON, ROOT } from "../setup.mjs";
import { onStage, opened } from "./stage";

const FOLDER = join(ROOT, "docs", "screenshots");
const EXAMPLE = "train_gpt.py";
/** The line in the middle of the attention. */
const SCORES = 47;
/** The line behind it. */
const MASKED = 48;
const PIPELINE = "video_pipeline.py";
/** Where a variable of it is given another value. */
const CROPPED = 28;
const SIZE = { width: 960, height: 640, scale: 1.5 } as const;
/** With a side bar that values and calls have room in. */
const WIDE = { ...SIZE, width: 1280 } as const;
const SIDE_BAR = 400;

async function showAttention(workbench: Workbench): Promise<void> {
  await workbench.code.goTo(SCORES);
  await eventually(
    "the attention has its hints",
    () => workbench.code.hints(),
    (hints) => hints[SCORES] !== undefined,
  );
}

/** Stands in the attention of the second block. */
async function stopInAttention(workbench: Workbench): Promise<void> {
  const { code, debug, page } = workbench;
  await code.goTo(SCORES);
  await code.toggleBreakpoint(MASKED);
  await workbench.run("Shapetrace: Trace Forward Pass");
  const stopped = `forward, line ${MASKED}, ${EXAMPLE}`;
  await debug.waitUntilStoppedIn(stopped, { seconds: 90 });
  await debug.continue();
  await eventually(
    "the second block has come so far",
    () => code.codeLenses(),
    (lenses) => lenses.some((lens) => lens.startsWith("blocks.1")),
  );
  await debug.waitUntilStoppedIn(stopped);
  if (await page.locator(".part.panel:visible").count()) {
    await page.keyboard.press("Control+J");
  }
}

/** Has the scores of all blocks captured in a forward pass, and opens those of the second one. */
async function captureScores(workbench: Workbench): Promise<void> {
  const { code, debug, trace } = workbench;
  await code.goTo(SCORES, 9);
  await workbench.run("Shapetrace: Capture Values...");
  await workbench.choose("**.forward.scores");
  await workbench.notification("is captured from the next run on");
  await workbench.pressInNotification("Trace Forward Pass");
  await debug.waitUntilRunning();
  await debug.waitUntilEnded({ seconds: 90 });
  await workbench.closeNotifications();
  await workbench.hideEverythingElse();
  await trace.show({ keepsCallStack: false });
  // It has gone to the call at the cursor.
  await trace.waitFor(/> /);
  await trace.scrollToStart();
  await trace.expand("**.forward.scores");
  await trace.expand("blocks.1.attention.forward.scores");
  await trace.waitFor(/iteration 1/);
}

/** Watches a variable of a pipeline while that runs. */
async function watchVideo(workbench: Workbench): Promise<void> {
  const { code, debug, trace } = workbench;
  await code.goTo(CROPPED, 5);
  await workbench.run("Shapetrace: Watch Variable");
  await workbench.notification(/video is watched/);
  await workbench.run("Shapetrace: Trace Forward Pass");
  await debug.waitUntilRunning();
  await debug.waitUntilEnded({ seconds: 90 });
  await workbench.closeNotifications();
  await workbench.hideEverythingElse();
  await trace.show({ keepsCallStack: false });
  await trace.waitFor(/video: \d+ changes/);
  await trace.expand("video");
  await trace.scrollToStart();
}

/** Two traces of an example, of which one has lost the scale of its attention. */
function recordTwice(folder: string): void {
  const text = readFileSync(join(ROOT, "examples", EXAMPLE), "utf8");
  const runs = { good: text, unscaled: text.replace(" / math.sqrt(width // self.heads)", "") };
  for (const [name, program] of Object.entries(runs)) {
    writeFileSync(join(folder, `${name}.py`), program);
    const output = ["--view", "none", "--fingerprint", "-o", `${name}.json`];
    const command = [`${name}.py`, "--epochs", "1"];
    execFileSync(PYTHON, ["-m", "shapetrace", "run", ...output, ...command], {
      cwd: folder,
      env: { ...process.env, ...BACKEND_ENVIRONMENT, OMP_NUM_THREADS: "1" },
      stdio: "ignore",
    });
  }
}

async function compareRuns(workbench: Workbench, folder: string): Promise<void> {
  recordTwice(folder);
  await workbench.run("Shapetrace: Compare Traces...");
  await workbench.openAs("Compare Traces: A", join(folder, "good.json"));
  await workbench.openAs("Compare Traces: B", join(folder, "unscaled.json"));
  await workbench.notification(/^First difference/);
  await eventually(
    "what differs is marked",
    () => workbench.diff.marked(),
    (marked) => marked > 0,
  );
  await workbench.closeNotifications();
}

async function widenSideBar({ page }: Workbench): Promise<void> {
  const box = await page.locator(".part.sidebar").boundingBox();
  const edge = (box?.x ?? 0) + (box?.width ?? 0);
  await page.mouse.move(edge, 300);
  await page.mouse.down();
  await page.mouse.move(SIDE_BAR, 300, { steps: 4 });
  await page.mouse.up();
  // Or the edge is highlighted.
  await page.mouse.move(SIDE_BAR * 2, 1);
}

main(async () => {
  mkdirSync(FOLDER, { recursive: true });
  await opened(EXAMPLE, { theme: "Default Dark Modern", ...WIDE }, async (workbench) => {
    await stopInAttention(workbench);
    await workbench.variables.show();
    await widenSideBar(workbench);
    await workbench.variables.open("scores");
    await workbench.variables.waitFor(/first values/);
    await workbench.code.goTo(MASKED);
    await workbench.screenshot(join(FOLDER, "stopped-dark.png"));
    await workbench.trace.show({ keepsCallStack: false });
    await workbench.trace.waitFor(/> attention/);
    await workbench.trace.press("attention", "Pin Call");
    await eventually(
      "the pin can be taken back above the function, too",
      () => workbench.code.codeLenses(),
      (lenses) => lenses.some((lens) => lens.includes("unpin")),
    );
    await workbench.trace.waitFor(/\(pinned\)/);
    await workbench.screenshot(join(FOLDER, "tree-dark.png"));
    await workbench.debug.stop();
    await workbench.debug.waitUntilEnded();
  });
  await opened(EXAMPLE, { theme: "Default Dark Modern", ...WIDE }, async (workbench) => {
    await captureScores(workbench);
    await widenSideBar(workbench);
    await showAttention(workbench);
    await workbench.trace.tooltip("blocks.1.attention.forward.scores");
    await workbench.screenshot(join(FOLDER, "captures-dark.png"));
  });
  await opened(PIPELINE, { theme: "Default Dark Modern", ...WIDE }, async (workbench) => {
    await watchVideo(workbench);
    await widenSideBar(workbench);
    await workbench.code.goTo(CROPPED);
    await workbench.screenshot(join(FOLDER, "watched-dark.png"));
  });
  await opened(EXAMPLE, { theme: "Default Dark Modern", ...WIDE }, async (workbench) => {
    const folder = mkdtempSync(join(tmpdir(), "shapetrace-"));
    try {
      await compareRuns(workbench, folder);
      await workbench.hideEverythingElse();
      await workbench.screenshot(join(FOLDER, "compared-dark.png"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
  await onStage(EXAMPLE, { theme: "Default Dark Modern", ...SIZE }, async (workbench) => {
    await showAttention(workbench);
    await workbench.screenshot(join(FOLDER, "hints-dark.png"));
  });
  await onStage(EXAMPLE, { theme: "Default Light Modern", ...SIZE }, async (workbench) => {
    await showAttention(workbench);
    const story = await workbench.code.hover({ line: SCORES, at: "@" });
    if (!story.includes("@")) {
      throw new Failure(`the hover says ${JSON.stringify(story)}`);
    }
    await workbench.screenshot(join(FOLDER, "hover-light.png"));
  });
  return 0;
});
