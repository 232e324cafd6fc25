/** How values look in the Variables pane at a stop. */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../../scripts/setup.mjs";
import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { VariablesView } from "./support/variablesView";
import { eventuallyEqual } from "./support/waiting";

const SCRIPT = `\
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Batch:
    ids: torch.Tensor
    note: str = "train"

    @property
    def loss(self):
        raise RuntimeError("a property was run")


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
x = torch.arange(8.0).reshape(2, 4)
batch = Batch(x)
print(model(batch.ids).shape)
`;

const CONFIGURATION = {
  ...{ name: "Script", type: "shapetrace", request: "launch", console: "internalConsole" },
  program: "${workspaceFolder}/script.py",
};
const FILES = { "script.py": SCRIPT, ...launchConfigurations(CONFIGURATION) };
const MADE = lineOf(SCRIPT, "x = torch");
const STOP = lineOf(SCRIPT, "print(");

async function stopped({ workbench, folder }: Fixture): Promise<VariablesView> {
  const { code, debug, page } = workbench;
  await workbench.openFile(folder.file("script.py"));
  await code.toggleBreakpoint(STOP);
  await debug.startNamed("Script");
  await debug.waitUntilStoppedIn(`<module>, line ${STOP}, script.py`);
  const variables = new VariablesView(page);
  await variables.show();
  return variables;
}

inEditors("The Variables pane", {}, (test) => {
  test("shows shapes, and what is below a value", { files: FILES }, async (it) => {
    const { code, debug, page } = it.workbench;
    const variables = await stopped(it);
    const shown = await variables.waitFor("x = f32[2,4]");
    assert.ok(shown.includes("batch = Batch(ids: f32[2,4], note: 'train')"), shown.join("\n"));
    assert.ok(shown.includes("model = Sequential(Linear, ReLU) 40 params"), shown.join("\n"));

    const below = await variables.open("x", "more");
    const at = below.indexOf("x = f32[2,4]");
    assert.deepEqual(below.slice(at + 1, at + 12), [
      "  shape = (2, 4)",
      "  dtype = torch.float32",
      "  device = cpu",
      "  memory = 32 B",
      "  strides = (4, 1) · contiguous",
      "  requires_grad = False",
      "  statistics = min 0 · max 7 · mean 3.5 · no nan",
      "  first values = 0, 1, 2, 3, 4, 5, 6, 7",
      `  assigned at = ./script.py:${MADE}`,
      "  items = 2",
      "  more",
    ]);
    const fields = await variables.open("batch", "raw view");
    const first = fields.indexOf("batch = Batch(ids: f32[2,4], note: 'train')");
    assert.deepEqual(fields.slice(first + 1, first + 4), [
      "  ids = f32[2,4]",
      "  note = 'train'",
      "  raw view",
    ]);
    const evidence = join(ROOT, "build", "e2e");
    mkdirSync(evidence, { recursive: true });
    await page.screenshot({ path: join(evidence, "variables.png") });

    await variables.follow("assigned at");
    await eventuallyEqual(() => code.cursorLine(), MADE);
    await debug.stop();
    await debug.waitUntilEnded();
  });

  test(
    "is as the debugger has it where a setting says so",
    { files: FILES, settings: { "shapetrace.variables.enabled": false } },
    async (it) => {
      const { code, debug } = it.workbench;
      const variables = await stopped(it);
      const shown = await variables.waitFor(
        "x = tensor([[0., 1., 2., 3.],\n        [4., 5., 6., 7.]])",
      );
      assert.ok(shown.some((row) => row.startsWith("batch = Batch(ids=tensor(")));
      await eventuallyEqual(async () => (await code.hints())[MADE], "f32[2,4]");
      await debug.stop();
      await debug.waitUntilEnded();
    },
  );
});
