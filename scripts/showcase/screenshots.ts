/** Takes the pictures of the README. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { eventually } from "../../tests/extension/e2e/support/waiting";
import type { Workbench } from "../../tests/extension/e2e/support/workbench";
import { Failure, main, ROOT } from "../setup.mjs";
import { onStage } from "./stage";

const FOLDER = join(ROOT, "docs", "screenshots");
const EXAMPLE = "train_gpt.py";
/** The line in the middle of the attention. */
const SCORES = 47;
const SIZE = { width: 960, height: 640, scale: 1.5 } as const;

async function showAttention(workbench: Workbench): Promise<void> {
  await workbench.code.goTo(SCORES);
  await eventually(
    "the attention has its hints",
    () => workbench.code.hints(),
    (hints) => hints[SCORES] !== undefined,
  );
}

main(async () => {
  mkdirSync(FOLDER, { recursive: true });
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
