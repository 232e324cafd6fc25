/** What a program that stands still shows of its values: in the side bar, in the console, on hover. */
import assert from "node:assert/strict";

import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const PROGRAM = `\
import dataclasses

import numpy
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput


@dataclasses.dataclass
class Record:
    x: torch.Tensor
    size: int


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x, batch):
        y = x * self.scale
        z = y + batch["ids"].sum()
        array = numpy.ones((2, 3))
        held = [x, y]
        output = BaseModelOutput(last_hidden_state=y)
        record = Record(x, 2)
        scale = self.scale
        matrix = self.blocks[2].weight
        out = self.blocks(z)
        return out.sum()


net = Net()
batch = {"ids": torch.ones(2, 7).long(), "step": 3}
total = net(torch.arange(8.0).reshape(2, 4), batch)
print("the sum has", total.dim(), "dimensions")
`;
const STOP = lineOf(PROGRAM, "out = self.blocks(z)");
const MADE = lineOf(PROGRAM, "y = x * self.scale");
const FILES = {
  "values.py": PROGRAM,
  "other.txt": "",
  ...launchConfigurations({
    ...{ name: "Values", type: "debugpy", request: "launch", console: "internalConsole" },
    program: "${workspaceFolder}/values.py",
  }),
};

async function stopped({ workbench, folder }: Fixture): Promise<void> {
  await workbench.openFile(folder.file("values.py"));
  await workbench.code.toggleBreakpoint(STOP);
  await workbench.debug.start();
  await workbench.debug.waitUntilStoppedIn(`forward, line ${STOP}, values.py`);
}

inEditors("Values", {}, (test) => {
  test("shapes stand in place of numbers, and open", { files: FILES }, async (it) => {
    const { workbench, folder } = it;
    const { code, debug, variables, watch } = workbench;
    await stopped(it);
    await variables.show();
    await variables.waitFor("Locals");
    await variables.open("Locals");
    await eventuallyEqual(
      () => variables.rows(),
      [
        "Locals",
        "  array = ndarray f64[2,3]",
        "  batch = {ids: i64[2,7], step: 3}",
        "  held = [f32[2,4], f32[2,4]]",
        "  matrix = f32[4,8] · Parameter · requires grad",
        "  output = BaseModelOutput(last_hidden_state: f32[2,4])",
        "  record = Record(x: f32[2,4], size: 2)",
        "  scale = f32[4] · Parameter · requires grad",
        "  self = Net 80 params",
        "  x = f32[2,4]",
        "  y = f32[2,4] · requires grad",
        "  z = f32[2,4] · requires grad",
        "Globals",
      ],
    );
    await variables.open("y");
    await eventuallyEqual(
      async () => (await variables.rows()).filter((row) => row.startsWith("    ")),
      [
        "    shape = (2, 4)",
        "    dtype = torch.float32",
        "    device = cpu",
        "    memory = 32 B",
        "    strides = (4, 1) · contiguous",
        "    requires_grad = True",
        "    grad_fn = MulBackward0",
        "    statistics = min 0 · max 7 · mean 3.5 · no nan",
        "    first values = 0, 1, 2, 3, 4, 5, 6, 7",
        `    assigned at = ./values.py:${MADE}`,
        "    items = 2",
        "    more",
      ],
    );
    await variables.open("self");
    await variables.waitFor("blocks = Sequential(Linear, ReLU, Linear) 76 params");
    await variables.open("record");
    await variables.waitFor("raw view");

    assert.match(await variables.copyValue("y"), /^tensor\(\[\[0\., 1\., 2\., 3\.\],\s+\[4/);
    await workbench.openFile(folder.file("other.txt"));
    await variables.open("y");
    await variables.follow("assigned at");
    await eventuallyEqual(() => code.fileName(), "values.py");
    await eventuallyEqual(() => code.cursorLine(), MADE);

    await watch.show();
    await watch.add("self.blocks[2].weight.T");
    await watch.waitFor("self.blocks[2].weight.T = f32[8,4] · requires grad");
    await debug.evaluate("batch");
    await debug.evaluate("print(y.shape, repr(scale))");
    await eventuallyMatches(
      "the console",
      () => debug.console(),
      /\{ids: i64\[2,7\], step: 3\}[^]*torch\.Size\(\[2, 4\]\) Parameter containing:\s+tensor\(/,
    );
    await debug.stop();
    await debug.waitUntilEnded();
  });

  test("the hover evaluates no call", { files: FILES }, async (it) => {
    const { code, debug } = it.workbench;
    await stopped(it);
    for (const [fragment, at, expected] of [
      ["matrix = self", "weight", /^f32\[4,8\] · Parameter/],
      ["matrix = self", "blocks", /^Sequential\(Linear, ReLU, Linear\) 76 params/],
      ["matrix = self", "2]", /^Linear\(8 → 4\) 36 params/],
      ["z = y", "ids", /^i64\[2,7\]/],
      ["z = y", "sum()", /^sum\(i64\[2,7\]\) → i64\[\]/],
      ["held = ", "x,", /^f32\[2,4\]/],
    ] as const) {
      const line = lineOf(PROGRAM, fragment);
      const hover = () => code.hover({ line, at }, { seconds: 8 });
      await eventuallyMatches(`the hover over ${at}`, hover, expected);
    }
    await debug.stop();
    await debug.waitUntilEnded();
  });

  test("a variable is given another value", { files: FILES }, async (it) => {
    const { workbench } = it;
    const { code, debug, variables } = workbench;
    await stopped(it);
    await variables.show();
    await variables.waitFor("Locals");
    await variables.open("Locals");
    await variables.setValue("z", "torch.ones(5, 3, 4)");
    await variables.waitFor("z = f32[5,3,4]");
    await debug.stepOver();
    await eventuallyEqual(() => code.stoppedLine(), STOP + 1);
    await variables.waitFor("out = f32[5,3,4] · requires grad");
    const hints = async () => {
      const shown = await code.hints();
      return [lineOf(PROGRAM, "z = y"), STOP, STOP + 1].map((line) => shown[line] ?? "");
    };
    await eventuallyEqual(hints, ["f32[2,4]", "f32[5,3,4]", ""]);
    await debug.continue();
    await debug.waitUntilEnded();
    await eventuallyEqual(hints, ["f32[2,4]", "f32[5,3,4]", "f32[]"]);
    await eventually(
      "the program went on",
      () => debug.console(),
      (text) => text.includes("the sum has 0 dimensions"),
    );
  });

  test(
    "they are as the debugger has them where a setting says so",
    { files: FILES, settings: { "shapetrace.variables.enabled": false } },
    async (it) => {
      const { code, debug, variables } = it.workbench;
      await stopped(it);
      await variables.show();
      await variables.waitFor("Locals");
      await variables.open("Locals");
      await variables.waitFor(/scale = Parameter containing:\s+tensor\(\[1/);
      await eventuallyEqual(async () => (await code.hints())[MADE], "f32[2,4]");
      await debug.stop();
      await debug.waitUntilEnded();
    },
  );
});
