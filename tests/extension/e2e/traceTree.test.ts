/** The trace tree, and the shapes of one call of several. */
import assert from "node:assert/strict";

import { lineOf, sourceOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

/** Three layers in a loop, each of which gets one row less. */
const LAYERS = `\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):«x f32[2,5|6|7,4]»
        hidden = self.up(x).relu()«f32[2,5|6|7,8]»
        return hidden[..., :4]«f32[2,5|6|7,4]»


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x[:, 1:])«f32[2,5|6|7,4]»
        return x


model = Model()
outputs = model(torch.randn(2, 8, 4))«f32[2,5,4]»
`;

/** The same where only the second layer is shown. */
const SECOND = LAYERS.replaceAll("5|6|7,", "6,");

const FILES = { "model.py": sourceOf(LAYERS) };
const TRACED = { files: FILES, recorded: traced };
const RUN_AGAIN = { ...TRACED, changesTrace: true };

async function traced({ workbench, folder }: Fixture): Promise<void> {
  await workbench.openFile(folder.file("model.py"));
  await workbench.run("Shapetrace: Trace Forward Pass");
  await workbench.debug.waitUntilRunning();
  await workbench.debug.waitUntilEnded();
  await shows(workbench, LAYERS);
}

/** Opens the program of which a trace is there. */
async function open({ workbench, folder }: Fixture): Promise<void> {
  await workbench.openFile(folder.file("model.py"));
  await shows(workbench, LAYERS);
}

/** Waits for the hints of a program. Its first lines may have been scrolled away. */
async function shows({ code }: Fixture["workbench"], program: string): Promise<void> {
  const hints = program.split("\n").flatMap((line, index): [number, string][] => {
    const found = [...line.matchAll(/«([^»]*)»/g)].map(([, hint]) => hint).join("");
    return found === "" ? [] : [[index + 1, found]];
  });
  await eventuallyEqual(() => code.hints(), Object.fromEntries(hints));
}

inEditors("The trace tree", {}, (test) => {
  test("says what to do while there is no trace", { files: FILES }, async (fixture) => {
    const { workbench, folder } = fixture;
    await workbench.openFile(folder.file("model.py"));
    await workbench.trace.show();
    await eventuallyMatches("the view", () => workbench.trace.welcome(), /No trace yet/);
    await workbench.trace.pressInWelcome("Trace Forward Pass");
    await shows(workbench, LAYERS);
    await workbench.trace.waitFor("Model: f32[2,5,4] ← f32[2,8,4]");
  });

  const firstUse = { files: FILES, ownWindow: true };
  test("shows modules and ops, and goes to their lines", firstUse, async (fixture) => {
    const { workbench } = fixture;
    const { trace, code } = workbench;
    await traced(fixture);
    // Until it has been opened once, the status bar shows the way.
    await workbench.pressInStatusBar("Show Trace");
    await trace.waitFor("Model: f32[2,5,4] ← f32[2,8,4]");
    await eventually(
      "the status bar says no more of it",
      () => workbench.statusBar(),
      (entries) => !entries.includes("Show Trace"),
    );
    await trace.show(); // with more room
    await trace.expand("Model");
    await trace.waitFor("layers.1: f32[2,6,4] ← f32[2,6,4]  Block");
    await trace.expand("layers.1");
    await eventually(
      "the layer's calls are below it",
      () => trace.rows(),
      (rows) => rows.join("\n").includes("relu()"),
    );
    assert.deepEqual(
      (await trace.rows()).filter((row) => row.startsWith("    ")),
      [
        "    up: f32[2,6,8] ← f32[2,6,4]  Linear",
        "    relu(): f32[2,6,8] ← f32[2,6,8]",
        "    [..., :4]: f32[2,6,4] ← f32[2,6,8]",
      ],
    );
    await trace.click("relu()");
    await eventuallyEqual(() => code.cursorLine(), lineOf(LAYERS, "hidden = self.up"));
    await trace.click("layers.2");
    await eventuallyEqual(() => code.cursorLine(), lineOf(LAYERS, "x = layer"));
  });

  // Of several calls the tree goes to the one that was selected last, if any was.
  test("follows the cursor", { ...TRACED, ownWindow: true }, async (fixture) => {
    const { workbench } = fixture;
    const { trace, code } = workbench;
    await open(fixture);
    await trace.show();
    await trace.waitFor(/Model/);
    await code.goTo(lineOf(LAYERS, "hidden = self.up"), 24);
    await trace.waitFor(/> up: .*← f32\[2,7,4\]/);
    await trace.expand("layers.2");
    await trace.waitFor(/ up: .*← f32\[2,5,4\]/);
    await trace.click("layers.2");
    await eventuallyEqual(() => code.cursorLine(), lineOf(LAYERS, "x = layer"));
    await code.goTo(lineOf(LAYERS, "return hidden"), 24);
    await trace.waitFor(/> \[\.\.\., :4\]: .*← f32\[2,5,8\]/);
    await trace.pressAbove("Stop Following Cursor");
    await code.goTo(lineOf(LAYERS, "model = Model()"), 1);
    await code.goTo(lineOf(LAYERS, "hidden = self.up"), 24);
    await trace.pressAbove("Follow Cursor");
    await trace.waitFor(/> up: .*← f32\[2,5,4\]/);
  });

  test("is filtered", TRACED, async (fixture) => {
    const { workbench } = fixture;
    const { trace } = workbench;
    await open(fixture);
    await trace.show();
    await trace.waitFor(/Model/);
    await trace.pressAbove("Filter Trace...");
    await workbench.answer("f32[2,6,8] relu");
    await eventuallyMatches("the view", () => trace.welcome(), /No call matches/);
    await workbench.run("Shapetrace: Filter Trace...");
    await workbench.answer("relu");
    await eventuallyEqual(
      async () => (await trace.rows()).map((row) => row.replace("> ", "").split(":")[0]),
      ["Model", ...[0, 1, 2].flatMap((layer) => [`  layers.${layer}`, "    relu()"])],
    );
    await trace.pressAbove("Clear Filter");
    await trace.waitFor(/randn/);
  });

  test("pins one call, whose shapes alone are shown", TRACED, async (fixture) => {
    const { workbench } = fixture;
    const { trace, code } = workbench;
    await open(fixture);
    await trace.show();
    await trace.waitFor(/Model/);
    await trace.expand("Model");
    await trace.waitFor(/layers\.1/);
    await trace.press("layers.1", "Pin Call");
    await shows(workbench, SECOND);
    await trace.waitFor(/layers\.1 \(pinned\)/);
    await eventuallyMatches(
      "the status bar",
      async () => (await workbench.statusBar()).join("\n"),
      /layers\.1/,
    );
    const line = lineOf(LAYERS, "hidden = self.up");
    await eventuallyMatches(
      "the hover on up",
      () => code.hover({ line, at: "up(x)" }),
      /▸ Linear\(x f32\[2,6,4\]\)[^]*≠ Linear\(x f32\[2,7,4\]\)[^]*layers\.0/,
    );
    await trace.press("layers.1", "Unpin Call");
    await shows(workbench, LAYERS);
  });

  test("code lenses and commands go from call to call", TRACED, async (fixture) => {
    const { workbench } = fixture;
    const { code } = workbench;
    await open(fixture);
    await eventually(
      "there is a lens",
      () => code.codeLenses(),
      (lenses) => lenses.some((it) => it.includes("3 calls") && it.includes("pin a call")),
    );
    await code.pressCodeLens("pin a call");
    await workbench.choose("layers.1");
    await shows(workbench, SECOND);
    await eventually(
      "the lens names the call",
      () => code.codeLenses(),
      (lenses) => lenses.some((it) => it.includes("layers.1 · 2 of 3")),
    );
    await code.pressCodeLens("next");
    await shows(workbench, LAYERS.replaceAll("5|6|7,", "5,"));
    await code.goTo(lineOf(LAYERS, "x = layer"));
    await workbench.run("Shapetrace: Previous Call");
    await shows(workbench, SECOND);
    await workbench.run("Shapetrace: Previous Call");
    await shows(workbench, LAYERS.replaceAll("5|6|7,", "7,"));
    await workbench.run("Shapetrace: Next Call");
    await shows(workbench, SECOND);
    await code.pressCodeLens("unpin");
    await shows(workbench, LAYERS);
  });

  test("is as it was after the next run", RUN_AGAIN, async (fixture) => {
    const { workbench, folder } = fixture;
    const { trace, code } = workbench;
    await open(fixture);
    await trace.show();
    await trace.waitFor(/Model/);
    await trace.pressAbove("Stop Following Cursor");
    await trace.expand("Model");
    await trace.waitFor(/layers\.1/);
    await trace.expand("layers.1");
    await trace.waitFor("up: f32[2,6,8] ← f32[2,6,4]  Linear");
    await trace.press("layers.1", "Pin Call");
    await shows(workbench, SECOND);
    await trace.waitFor(/layers\.1 \(pinned\)/);
    await trace.click("relu()");
    const before = await trace.waitFor(/> relu/);
    const edit = (text: string): string => text.replace("randn(2, 8, 4)", "randn(3, 8, 4)");
    folder.write({ "model.py": sourceOf(edit(LAYERS)) });
    await eventually(
      "the editor has read the file anew",
      () => code.sourceText(),
      (text) => text.includes("randn(3, 8, 4)"),
    );
    await workbench.run("Shapetrace: Trace Forward Pass");
    await workbench.debug.waitUntilRunning();
    await workbench.debug.waitUntilEnded();
    await shows(workbench, edit(SECOND).replaceAll("f32[2,", "f32[3,"));
    await eventuallyEqual(
      () => trace.rows(),
      before.map((row) => row.replaceAll(/(?<=f32\[|randn\()2,/g, "3,")),
    );
    await eventuallyMatches(
      "the status bar",
      async () => (await workbench.statusBar()).join("\n"),
      /layers\.1/,
    );
    assert.deepEqual(await workbench.notifications(), []);
  });

  test("says that a pinned call is not in the next run", RUN_AGAIN, async (fixture) => {
    const { workbench, folder } = fixture;
    const { trace, code } = workbench;
    await open(fixture);
    await trace.show();
    await trace.waitFor(/Model/);
    await trace.expand("Model");
    await trace.waitFor(/layers\.2/);
    await trace.press("layers.2", "Pin Call");
    await shows(workbench, LAYERS.replaceAll("5|6|7,", "5,"));
    folder.write({ "model.py": sourceOf(LAYERS).replace("range(3)", "range(2)") });
    await eventually(
      "the editor has read the file anew",
      () => code.sourceText(),
      (text) => text.includes("range(2)"),
    );
    await workbench.run("Shapetrace: Trace Forward Pass");
    await workbench.notification("layers.2 was pinned but is not in the new run");
    const shorter = LAYERS.replace("range(3)", "range(2)").replaceAll("5|6|7,", "6|7,");
    await shows(workbench, shorter.replace("«f32[2,5,4]»", "«f32[2,6,4]»"));
  });
});
