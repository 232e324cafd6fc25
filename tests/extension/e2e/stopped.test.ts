/** A program that stands still: the shapes of the call that is looked at, and of no other. */
import assert from "node:assert/strict";

import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const BASE = { type: "debugpy", request: "launch", console: "internalConsole" };
const OF_LAYERS = { ...BASE, name: "Layers", program: "${workspaceFolder}/train.py" };
const OF_OTHER = { ...BASE, name: "Other", program: "${workspaceFolder}/other.py" };

const LAYERS = `\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.fc(x)
        hidden = hidden.relu()
        return x + hidden


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, batch, scales):
        x = batch["ids"] * scales[0]
        for layer in self.layers:
            x = layer(x)
        if (x > 0).any():
            x = x + torch.cat(
                [x[:, :2],
                 x[:, 2:]],
                dim=1,
            )
        return x.sum()


model = Model()
for size in (2, 3):
    batch = {"ids": torch.ones(size, 4)}
    outputs = model(batch, [torch.ones(4)])
`;

const OTHER = `\
import torch

x = torch.ones(7, 2)
y = x * 2
print("end")
`;

const [RELU, CALL] = [lineOf(LAYERS, "hidden.relu()"), lineOf(LAYERS, "x = layer(x)")];
const [ANY, END] = [lineOf(LAYERS, ".any()"), lineOf(LAYERS, "return x.sum()")];

/** The hints of one function: of its first line and those behind. */
async function hintsOf({ workbench }: Fixture, first: string, count: number): Promise<string[]> {
  const hints = await workbench.code.hints();
  const start = lineOf(LAYERS, first);
  return Array.from({ length: count }, (_, index) => hints[start + index] ?? "");
}

async function stopAt(fixture: Fixture, line: number): Promise<void> {
  const { workbench, folder } = fixture;
  await workbench.openFile(folder.file("train.py"));
  await workbench.code.toggleBreakpoint(line);
  await workbench.debug.startNamed("Layers");
}

const FILES = { "train.py": LAYERS, ...launchConfigurations(OF_LAYERS, OF_OTHER) };

inEditors("A program that stands still", {}, (test) => {
  test(
    "shows this call's shapes, in the frame that is looked at",
    { inOldest: true, files: FILES },
    async (it) => {
      const { code, debug } = it.workbench;
      const layer = () => hintsOf(it, "hidden = self.fc(x)", 3);
      const next = async (from = RELU) => {
        // The hints may be there before the editor takes keys for the program.
        await debug.waitUntilStoppedIn(`forward, line ${from}, train.py`);
        await debug.continue();
      };
      await stopAt(it, RELU);
      // The first time there is nothing that it could be taken for.
      await eventuallyEqual(layer, ["f32[2,4]", "", ""]);
      await next();
      await eventuallyEqual(layer, ["f32[2,4]", "~ f32[2,4]", "~ f32[2,4]"]);
      await next();
      await eventuallyEqual(layer, ["f32[3,4]", "~ f32[2,4]", "~ f32[2,4]"]);
      await debug.waitUntilStoppedIn(`forward, line ${RELU}, train.py`);
      await debug.stepOver();
      await eventuallyEqual(layer, ["f32[3,4]", "f32[3,4]", "~ f32[2,4]"]);

      const model = () => hintsOf(it, 'x = batch["ids"]', 3);
      await next(RELU + 1);
      await eventuallyEqual(layer, ["f32[3,4]", "~ f32[2|3,4]", "~ f32[2|3,4]"]);
      await debug.chooseFrame(`forward, line ${CALL}, train.py`);
      // What the layer before returned is not what this one will.
      await eventuallyEqual(model, ["f32[3,4]", "", "~ f32[3,4]"]);
      await debug.chooseFrame(`forward, line ${RELU}, train.py`);
      await eventuallyEqual(layer, ["f32[3,4]", "~ f32[2|3,4]", "~ f32[2|3,4]"]);

      await code.toggleBreakpoint(RELU);
      await debug.continue();
      await debug.waitUntilEnded();
      await eventuallyEqual(layer, ["f32[2|3,4]", "f32[2|3,4]", "f32[2|3,4]"]);
    },
  );

  test("a pin is shown until another frame is looked at", { files: FILES }, async (it) => {
    const { workbench } = it;
    const { code, debug, trace } = workbench;
    const layer = () => hintsOf(it, "hidden = self.fc(x)", 3);
    const lensIs = (text: string) =>
      eventually(
        `a lens says ${text}`,
        () => code.codeLenses(),
        (lenses) => lenses.some((lens) => lens.startsWith(text)),
      );
    const next = async () => {
      await debug.waitUntilStoppedIn(`forward, line ${RELU}, train.py`);
      await debug.continue();
    };
    await stopAt(it, RELU);
    await lensIs("1 call · 20 parameters · (f32[2,4])");
    await next();
    await lensIs("layers.1 · 2 of 2 · 20 parameters · (f32[2,4])");
    await next();
    const here = ["f32[3,4]", "~ f32[2,4]", "~ f32[2,4]"];
    await eventuallyEqual(layer, here);
    await lensIs("layers.0 call 2 · 3 of 3 · 20 parameters · (f32[3,4])");

    await code.pressCodeLens("previous");
    const former = ["f32[2,4]", "f32[2,4]", "f32[2,4]"];
    await eventuallyEqual(layer, former);
    await lensIs("layers.1 · 2 of 3 · 20 parameters · (f32[2,4]) → f32[2,4]");
    await debug.stepOver();
    await eventuallyEqual(layer, ["f32[3,4]", "f32[3,4]", "~ f32[2,4]"]);
    await lensIs("layers.0 call 2 · 3 of 3 · 20 parameters · (f32[3,4])");
    await workbench.run("Shapetrace: Unpin Call");

    await trace.show({ keepsCallStack: false });
    // The tree has opened itself where the program stands: in the second call of the model.
    await trace.waitFor(/> layers\.0: ← f32\[3,4\]/);
    await trace.expand("Model");
    await trace.waitFor(/layers\.1: f32\[2,4\]/);
    await trace.press("layers.1", "Pin Call");
    await eventuallyEqual(layer, former);
    await debug.continue();
    await eventuallyEqual(layer, here.with(1, "~ f32[2|3,4]").with(2, "~ f32[2|3,4]"));
    await debug.continue();
    await debug.waitUntilEnded();
    await eventuallyEqual(layer, former);
    await code.pressCodeLens("unpin");
    await eventuallyEqual(layer, ["f32[2|3,4]", "f32[2|3,4]", "f32[2|3,4]"]);
  });

  test("the trace tree goes to this call", { inOldest: true, files: FILES }, async (it) => {
    const { debug, trace } = it.workbench;
    await stopAt(it, RELU);
    await debug.waitUntilStoppedIn(`forward, line ${RELU}, train.py`);
    await trace.show();
    await trace.waitFor(/> layers\.0: /);
    await debug.continue();
    // The line has been run by the other layer alone.
    await trace.waitFor(/> layers\.1: ← f32\[2,4\]/);
    await debug.stepOver();
    await debug.waitUntilStoppedIn(`forward, line ${RELU + 1}, train.py`);
    await debug.stepOver();
    await debug.waitUntilStoppedIn(`forward, line ${CALL}, train.py`);
    // Of both layers it is the one that has returned just now.
    await trace.waitFor(/> layers\.1: f32\[2,4\] ← f32\[2,4\]/);
    await debug.stop();
    await debug.waitUntilEnded();
  });

  test("the hover takes the smallest expression", { inOldest: true, files: FILES }, async (it) => {
    const { code, debug } = it.workbench;
    await stopAt(it, CALL);
    await debug.waitUntilStoppedIn(`forward, line ${CALL}, train.py`);
    const first = lineOf(LAYERS, 'x = batch["ids"]');
    for (const [line, at, expected] of [
      [first, 'ids"', /^f32\[2,4\]/],
      [first, "0]", /^f32\[4\]/],
      [CALL - 1, "layers", /^ModuleList\(2 × Layer\)|^ModuleList/],
      [CALL, "x)", /^f32\[2,4\]/],
    ] as const) {
      const hover = () => code.hover({ line, at }, { seconds: 8 });
      await eventuallyMatches(`the hover over ${at}`, hover, expected);
    }
    await debug.stop();
    await debug.waitUntilEnded();
  });

  test("inline values stand where no hint does", { inOldest: true, files: FILES }, async (it) => {
    const { code, debug } = it.workbench;
    await stopAt(it, END);
    await debug.waitUntilStoppedIn(`forward, line ${END}, train.py`);
    await eventuallyEqual(() => code.inlineValues(), {
      [ANY]: "(x > 0).any() bool[]",
      [ANY + 2]: "x[:, :2] f32[2,2]",
      [ANY + 3]: "x[:, 2:] f32[2,2]",
    });
    await debug.stop();
    await debug.waitUntilEnded();
    await eventuallyEqual(() => code.inlineValues(), {});
  });

  test(
    "inline values tell it all where hints are off",
    { files: FILES, settings: { "shapetrace.hints.position": "off" } },
    async (it) => {
      const { code, debug } = it.workbench;
      await stopAt(it, RELU);
      await debug.waitUntilStoppedIn(`forward, line ${RELU}, train.py`);
      const head = lineOf(LAYERS, "def forward(self, x)");
      await eventuallyEqual(() => code.inlineValues(), {
        [head]: "x f32[2,4]",
        [head + 1]: "f32[2,4]",
      });
      assert.deepEqual(await code.hints(), {});
      await debug.stop();
      await debug.waitUntilEnded();
    },
  );

  test(
    "of two programs it is the one that is looked at",
    { files: { ...FILES, "other.py": OTHER } },
    async (it) => {
      const { workbench, folder } = it;
      const { code, debug } = workbench;
      await workbench.openFile(folder.file("other.py"));
      await code.toggleBreakpoint(lineOf(OTHER, "print"));
      await debug.startNamed("Other");
      await debug.waitUntilStoppedIn("<module>, line 5, other.py");
      await eventuallyEqual(() => code.hints(), { 3: "f32[7,2]", 4: "f32[7,2]" });
      await stopAt(it, RELU);
      const layer = () => hintsOf(it, "hidden = self.fc(x)", 3);
      // The editor goes on looking at the program that it looked at when this one stops.
      await eventuallyEqual(() => code.stoppedLine(), RELU);
      await debug.chooseSession("Layers");
      await eventuallyEqual(layer, ["f32[2,4]", "", ""]);
      await debug.continue();
      await eventuallyEqual(layer, ["f32[2,4]", "~ f32[2,4]", "~ f32[2,4]"]);
      await debug.chooseSession("Other");
      await eventually(
        "the other program is looked at",
        () => code.fileName(),
        (name) => name === "other.py",
      );
      await workbench.openFile(folder.file("train.py"));
      await eventuallyEqual(layer, ["f32[2,4]", "f32[2,4]", "f32[2,4]"]);
      await eventually(
        "both have been stopped",
        async () => {
          await workbench.page.keyboard.press("Shift+F5");
          return debug.isRunning();
        },
        (runs) => !runs,
      );
    },
  );
});
