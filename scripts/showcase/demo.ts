/** Prints the hints as the editor shows them, and takes a picture. */
import { mkdirSync } from "node:fs";
import { join, relative } from "node:path";

import { eventually } from "../../tests/extension/e2e/support/waiting";
import { main, ROOT } from "../setup.mjs";
import { onStage } from "./stage";

const EXAMPLE = "train_gpt.py";
/** As tall as the file: an editor renders only the lines that it has room for. */
const WHOLE_FILE = 2800;
const PICTURE = join(ROOT, "build", "demo", "hints.png");

main(async () => {
  await onStage(
    EXAMPLE,
    { theme: "Default Dark Modern", width: 1200, height: WHOLE_FILE },
    async (workbench) => {
      const lines = await eventually(
        "the lines of the training loop have hints",
        () => workbench.code.hintedLines(),
        (hinted) => Object.values(hinted).some((line) => line.startsWith("loss = ")),
      );
      for (const [number, line] of Object.entries(lines)) {
        console.log(`${number.padStart(4)}  ${line}`);
      }
      for (const lens of await workbench.code.codeLenses()) {
        console.log(`      ${lens}`);
      }
      await workbench.page.setViewportSize({ width: 1200, height: 900 });
      mkdirSync(join(PICTURE, ".."), { recursive: true });
      await workbench.code.goTo(47);
      await workbench.screenshot(PICTURE);
      console.log(`\nA picture of it: ${relative(ROOT, PICTURE)}`);
    },
  );
  return 0;
});
