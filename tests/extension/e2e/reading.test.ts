/** What is done with the shapes of a run that is over: read, edited around, hidden, exported. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { lineOf, sourceOf, TRAINING } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const FILES = { "train.py": sourceOf(TRAINING) };

/** Two layers in one line, called with batches of two sizes. */
const ONE_LINE = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):«x f32[3|5,4]»
        return torch.cat([self.up(x).relu(), x], dim=1)«f32[3|5,12]»


model = Model()
for batch in (3, 5):
    outputs = model(torch.randn(batch, 4))«f32[3|5,12]»
`;

const TRACED = { files: FILES, recorded: traced };
const CHANGED = { ...TRACED, changesTrace: true };

async function traced(fixture: Fixture): Promise<void> {
  const { workbench, folder } = fixture;
  await workbench.openFile(folder.file("train.py"));
  await workbench.run("Shapetrace: Trace Forward Pass");
  await workbench.debug.waitUntilRunning();
  await workbench.debug.waitUntilEnded();
  await open(fixture);
}

/** Opens the program of which a trace is there. */
async function open({ workbench, folder }: Fixture): Promise<void> {
  await workbench.openFile(folder.file("train.py"));
  await eventuallyEqual(() => workbench.code.text(), TRAINING);
}

inEditors("After a run", {}, (test) => {
  test(
    "a hover tells the story of the expression under the mouse",
    {
      files: { "train.py": sourceOf(ONE_LINE) },
      settings: { "shapetrace.trace.afterPass": "continue" },
    },
    async (fixture) => {
      const { workbench, folder } = fixture;
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await eventually(
        "what is debugged is chosen, if there is a choice",
        async () => {
          const [choice] = await workbench.choices();
          if (choice?.includes("Python") === true) {
            await workbench.choose(choice);
          }
          return workbench.code.text();
        },
        (text) => text === ONE_LINE,
      );
      await workbench.debug.waitUntilEnded();
      const line = lineOf(ONE_LINE, "torch.cat");
      const hover = (at: string) => () => workbench.code.hover({ line, at });
      await eventuallyMatches(
        "the hover on cat",
        hover("cat"),
        /cat\(\[f32\[3,8\], x f32\[3,4\]\], dim=1\) → f32\[3,12\][^]*Model · 2 calls/,
      );
      await eventuallyMatches("the hover on relu", hover("relu"), /relu[^]*→ f32\[5,8\]/);
      await eventuallyMatches(
        "the hover on up",
        hover("up(x)"),
        /Linear\(x f32\[5,4\]\) → f32\[5,8\]/,
      );
      await eventuallyMatches(
        "the hover on x",
        hover("x).relu"),
        /^x: f32\[3\|5,4\][^]*parameter of forward/,
      );
    },
  );

  test("hints move with their lines, and changed lines lose theirs", TRACED, async (fixture) => {
    const { code } = fixture.workbench;
    await open(fixture);
    await code.goTo(1);
    await code.press("Enter", "Enter");
    await eventuallyEqual(() => code.text(), `\n\n${TRAINING}`);
    await code.goToEndOf(lineOf(TRAINING, "hidden = self.up") + 2);
    await code.type(".exp()");
    const changed = TRAINING.replace("relu()«f32[3,8]»", "relu().exp()");
    await eventuallyEqual(() => code.text(), `\n\n${changed}`);
    await code.undoAll();
    await eventuallyEqual(() => code.text(), TRAINING);
  });

  test("settings change where hints are", TRACED, async (fixture) => {
    const { workbench, server } = fixture;
    await open(fixture);
    server.writeSettings({ "shapetrace.hints.position": "afterName" });
    const line = lineOf(TRAINING, "hidden = self.up");
    await eventually(
      "the hint is behind the name",
      () => workbench.code.hintedLines(),
      (lines) => lines[line] === "hidden«f32[3,8]» = self.up(x).relu()",
    );
    server.writeSettings({ "shapetrace.hints.position": "off" });
    await eventuallyEqual(() => workbench.code.text(), sourceOf(TRAINING));
    server.writeSettings({ "shapetrace.codeLens.enabled": false });
    await eventuallyEqual(() => workbench.code.text(), TRAINING);
    await eventuallyEqual(() => workbench.code.codeLenses(), []);
  });

  test("the trace is exported", TRACED, async (fixture) => {
    const { workbench, folder } = fixture;
    await open(fixture);
    await workbench.run("Shapetrace: Export Trace...");
    await workbench.choose("Listing");
    await workbench.saveAs("Export Trace as Listing", folder.file("listing.txt"));
    await workbench.notification(/^Exported \d+ calls of \d+ modules\. \[Open\]$/);
    assert.match(readFileSync(folder.file("listing.txt"), "utf8"), /self\.up\(x\)[^]*f32\[3,8\]/);
  });

  test(
    "a file that changed on disk shows no hint that is not of its text",
    CHANGED,
    async (fixture) => {
      await open(fixture);
      const changed = `# A new first line.\n${TRAINING.replace(
        "torch.randn(3, 4)«f32[3,4]»",
        "torch.randn(7, 4)",
      )}`;
      fixture.folder.write({ "train.py": sourceOf(changed) });
      await eventuallyEqual(() => fixture.workbench.code.text(), changed);
    },
  );

  test("hints are hidden, shown again, and cleared", CHANGED, async (fixture) => {
    const { workbench } = fixture;
    await open(fixture);
    await workbench.run("Shapetrace: Toggle Hints");
    await eventuallyEqual(() => workbench.code.text(), sourceOf(TRAINING));
    await workbench.run("Shapetrace: Toggle Hints");
    await eventuallyEqual(() => workbench.code.text(), TRAINING);
    await workbench.run("Shapetrace: Clear Hints");
    await eventuallyEqual(() => workbench.code.text(), sourceOf(TRAINING));
    await eventuallyEqual(() => workbench.code.codeLenses(), []);
    await workbench.run("Shapetrace: Toggle Hints");
    await workbench.run("Shapetrace: Toggle Hints");
    assert.equal(await workbench.code.text(), sourceOf(TRAINING));
  });

  test(
    "inlay hints that are switched off are reported once",
    { files: FILES, settings: { "editor.inlayHints.enabled": "off" }, ownWindow: true },
    async (fixture) => {
      const { workbench, folder, server } = fixture;
      await workbench.openFile(folder.file("train.py"));
      await workbench.run("Shapetrace: Trace Forward Pass");
      const message = await workbench.notification("inlay hints are off");
      assert.match(message, /\[Show Hints in Python\]/);
      await workbench.debug.waitUntilEnded();
      assert.equal(await workbench.code.text(), sourceOf(TRAINING));
      const line = lineOf(TRAINING, "hidden = self.up");
      await eventuallyMatches(
        "the hover on up",
        () => workbench.code.hover({ line, at: "up" }),
        /f32\[3,8\]/,
      );
      await workbench.pressInNotification("Show Hints in Python");
      await eventuallyEqual(() => workbench.code.text(), TRAINING);

      server.writeSettings({ "[python]": { "editor.inlayHints.enabled": "off" } });
      await eventuallyEqual(() => workbench.code.text(), sourceOf(TRAINING));
      await workbench.run("Shapetrace: Trace Forward Pass");
      await workbench.debug.waitUntilRunning();
      await workbench.debug.waitUntilEnded();
      await eventuallyMatches("the status", () => workbench.status(), /\d+ calls/);
      assert.deepEqual(await workbench.notifications(), []);
    },
  );
});
