/** Stops on conditions, texts that are written without a stop, and stops in threads. */
import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { inEditors } from "./support/suite";
import { eventually, eventuallyEqual } from "./support/waiting";

const PROGRAM = `\
import threading

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.fc(x)
        return hidden.relu()


model = Model()
probe = torch.ones(7, 4)


def work():
    for size in (2, 3, 4):
        inputs = torch.ones(size, 4)
        outputs = model(inputs)
        total = outputs.sum()


thread = threading.Thread(target=work)
thread.start()
thread.join()
`;
const [MODEL, TOTAL] = [lineOf(PROGRAM, "outputs = model"), lineOf(PROGRAM, "total = ")];
const FILES = {
  "work.py": PROGRAM,
  ...launchConfigurations({
    ...{ name: "Work", type: "debugpy", request: "launch", console: "internalConsole" },
    program: "${workspaceFolder}/work.py",
  }),
};

inEditors("Breakpoints", {}, (test) => {
  test(
    "what they call themselves leaves no trace, also in a thread",
    { files: FILES },
    async ({ workbench, folder }) => {
      const { code, debug } = workbench;
      await workbench.openFile(folder.file("work.py"));
      await code.addConditionalBreakpoint(MODEL, "model(probe).shape[0] == 7 and size == 3");
      await code.addLogpoint(TOTAL, "probed {model(probe).shape} at {size}");
      await debug.start();
      // Of several threads the call stack shows no frames before one is opened.
      await eventuallyEqual(() => code.stoppedLine(), MODEL);
      await eventuallyEqual(() => code.hints(), {
        [lineOf(PROGRAM, "def forward")]: "x f32[2,4]",
        [lineOf(PROGRAM, "hidden = self")]: "f32[2,4]",
        [lineOf(PROGRAM, "return hidden")]: "f32[2,4]",
        [lineOf(PROGRAM, "probe = ")]: "f32[7,4]",
        [MODEL - 1]: "f32[3,4]",
        [MODEL]: "~ f32[2,4]",
        [TOTAL]: "~ f32[]",
      });
      await debug.stepOver();
      await eventuallyEqual(() => code.stoppedLine(), TOTAL);
      await eventuallyEqual(async () => (await code.hints())[MODEL], "f32[3,4]");
      await debug.continue();
      await debug.waitUntilEnded();
      await eventuallyEqual(() => code.hints(), {
        [lineOf(PROGRAM, "def forward")]: "x f32[2|3|4,4]",
        [lineOf(PROGRAM, "hidden = self")]: "f32[2|3|4,4]",
        [lineOf(PROGRAM, "return hidden")]: "f32[2|3|4,4]",
        [lineOf(PROGRAM, "probe = ")]: "f32[7,4]",
        [MODEL - 1]: "f32[2|3|4,4]",
        [MODEL]: "f32[2|3|4,4]",
        [TOTAL]: "f32[]",
      });
      await eventually(
        "each text has been written",
        () => debug.console(),
        (text) => [2, 3, 4].every((size) => text.includes(`probed torch.Size([7, 4]) at ${size}`)),
      );
      await eventually(
        "three calls are counted",
        () => code.codeLenses(),
        (lenses) => lenses.some((it) => it.startsWith("3 calls · 20 parameters")),
      );
    },
  );
});
