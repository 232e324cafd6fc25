/** Shapes beside the debugger: launch configurations, stepping, stops, terminals. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";

import { launchConfigurations } from "./support/folder";
import { lineOf, sourceOf, TRAINING } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

/** What an existing launch.json has for the file that is open. */
const FOR_OPEN_FILE = {
  name: "Open file",
  request: "launch",
  program: "${file}",
  console: "internalConsole",
};

const OWN_CONFIGURATION = {
  name: "Ours",
  type: "shapetrace",
  request: "launch",
  program: "${workspaceFolder}/train.py",
  args: ["--epochs", "3"],
  cwd: "${workspaceFolder}/data",
  env: { GREETING: "hello" },
  envFile: "${workspaceFolder}/.env",
  console: "internalConsole",
};

const TELLS_SURROUNDINGS = `\
import os
import sys

import torch

linear = torch.nn.Linear(4, 8)
outputs = linear(torch.randn(3, 4))«f32[3,8]»
print(sys.argv[1:], os.path.basename(os.getcwd()))
print(os.environ["GREETING"], os.environ["FROM_FILE"], os.environ["PYTHONPATH"].split(":")[1:])
`;

const STEPS = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def double(self, x):
        return x * 2

    def forward(self, x):
        scaled = x * 2
        hidden = self.up(scaled)
        doubled = self.double(hidden)
        return doubled.relu()


outputs = Model()(torch.randn(3, 4))
print("done", outputs.shape)
`;

const SHAPE_ERROR = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(9, 2)

    def forward(self, x):«x f32[3,4]»
        hidden = self.up(x)«f32[3,8]»
        return self.down(hidden.relu())«✗ mat1 and mat2 shapes … (3x8 and 9x2)»


print(Model()(torch.randn(3, 4)))«✗ mat1 and mat2 shapes … (3x8 and 9x2)»
`;

const NEVER_ENDS = `\
import time

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):«x f32[3,4]»
        y = x + 1«f32[3,4]»
        while True:
            y = y * 2«f32[3,4]»
            time.sleep(0.01)


Model()(torch.randn(3, 4))
`;

const OWN_IMPORTS = `\
import sys

import torch
from mine import WIDTH

outputs = torch.nn.Linear(4, WIDTH)(torch.randn(3, 4))«f32[3,7]»
print("site:", sys.customized, "end")
`;

/** Runs on until there is a file of that name; long before, its shapes have settled. */
const RUNS_ON = `\
import os
import time

import torch
from torch import nn

torch.ones(5)«f32[5]»
model = nn.Linear(4, 8)
inputs = torch.randn(3, 4)«f32[3,4]»
while not os.path.exists("enough"):
    outputs = model(inputs)«f32[3,8]»
    time.sleep(0.02)
`;

/** Where the program stands after each of these steps. */
async function walk({ workbench }: Fixture, steps: readonly ("into" | "over")[]) {
  const { debug } = workbench;
  const places = [await debug.waitUntilStoppedElsewhere("")];
  for (const step of steps) {
    await (step === "into" ? debug.stepInto() : debug.stepOver());
    places.push(await debug.waitUntilStoppedElsewhere(places.at(-1) ?? ""));
  }
  return places;
}

inEditors("Debugging", {}, (test) => {
  test(
    "with an existing configuration of type debugpy",
    {
      inOldest: true,
      files: {
        "train.py": sourceOf(TRAINING),
        ...launchConfigurations({ ...FOR_OPEN_FILE, type: "debugpy" }),
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
    },
  );

  test(
    "with a configuration of our own type, and all that it says of the program",
    {
      files: {
        "train.py": sourceOf(TELLS_SURROUNDINGS),
        "data/empty.txt": "",
        ".env": 'FROM_FILE="a file"\nGREETING=bye\nPYTHONPATH=/from/file\n',
        ...launchConfigurations(OWN_CONFIGURATION),
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.startNamed("Ours");
      await eventuallyEqual(() => workbench.code.text(), TELLS_SURROUNDINGS);
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(
        () => workbench.debug.console(),
        "['--epochs', '3'] data\nhello a file ['/from/file']",
      );
    },
  );

  test(
    "shows what runs on after hints were cleared",
    {
      files: {
        "train.py": sourceOf(RUNS_ON),
        ...launchConfigurations({ ...FOR_OPEN_FILE, type: "shapetrace" }),
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await eventuallyEqual(() => workbench.code.text(), RUNS_ON);
      await workbench.run("Shapetrace: Clear Hints");
      const since = RUNS_ON.replace("«f32[5]»", "");
      await eventuallyEqual(() => workbench.code.text(), since);
      folder.write({ enough: "" });
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), since);
    },
  );

  test(
    "of a file without any launch.json",
    { files: { "train.py": sourceOf(TRAINING) }, ownWindow: true },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await eventually(
        "hints are there, perhaps after a choice of what to debug",
        async () => {
          const [choice] = await workbench.choices();
          if (choice?.includes("Python") === true) {
            await workbench.choose(choice);
          }
          return workbench.code.text();
        },
        (text) => text === TRAINING,
      );
    },
  );

  test(
    "shows hints while stepping",
    {
      inOldest: true,
      files: {
        "train.py": STEPS,
        ...launchConfigurations({ ...FOR_OPEN_FILE, type: "debugpy" }),
      },
    },
    async (fixture) => {
      const { workbench, folder } = fixture;
      const { code, debug } = workbench;
      await workbench.openFile(folder.file("train.py"));
      await code.toggleBreakpoint(lineOf(STEPS, "scaled ="));
      await debug.start();
      await debug.waitUntilStoppedIn("forward, line 14, train.py");
      await debug.stepOver();
      await debug.waitUntilStoppedIn("forward, line 15, train.py");
      await eventuallyEqual(() => code.hints(), { 13: "x f32[3,4]", 14: "f32[3,4]" });
      await debug.stepOver();
      await debug.waitUntilStoppedIn("forward, line 16, train.py");
      const before = { 13: "x f32[3,4]", 14: "f32[3,4]", 15: "f32[3,8]" };
      await eventuallyEqual(() => code.hints(), before);
      await debug.stepInto();
      await debug.waitUntilStoppedIn("double, line 11, train.py");
      // What it was called with is known by the frame, before it has called anything.
      await eventuallyEqual(() => code.hints(), { ...before, 10: "x f32[3,8]" });
      await debug.continue();
      await debug.waitUntilEnded();
      await eventuallyEqual(() => code.hints(), {
        ...before,
        10: "x f32[3,8]",
        11: "f32[3,8]",
        16: "f32[3,8]",
        17: "f32[3,8]",
        20: "f32[3,8]",
      });
    },
  );

  for (const justMyCode of [true, false]) {
    test(
      `steps where it would without us, justMyCode ${justMyCode ? "on" : "off"}`,
      {
        files: {
          "train.py": STEPS,
          ...launchConfigurations({ ...FOR_OPEN_FILE, type: "debugpy", justMyCode }),
        },
      },
      async (fixture) => {
        const { workbench, folder, server } = fixture;
        const { code, debug } = workbench;
        await workbench.openFile(folder.file("train.py"));
        await code.toggleBreakpoint(lineOf(STEPS, "scaled ="));
        const walks: string[][] = [];
        for (const watched of [false, true]) {
          server.writeSettings({ "shapetrace.debug.traceDebugpySessions": watched });
          await workbench.openFile(folder.file("train.py"));
          await debug.start();
          walks.push(await walk(fixture, ["into", "into", "over", "into"]));
          await debug.continue();
          await debug.waitUntilEnded();
        }
        assert.deepEqual(walks[1], walks[0]);
        await workbench.openFile(folder.file("train.py"));
        await eventually(
          "the second run was watched",
          () => code.hints(),
          (hints) => hints[14] === "f32[3,4]",
        );
      },
    );
  }

  test(
    "stops at an uncaught shape error in the frame of the program",
    {
      inOldest: true,
      files: {
        "model.py": sourceOf(SHAPE_ERROR),
        ...launchConfigurations({ ...FOR_OPEN_FILE, type: "debugpy" }),
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("model.py"));
      await workbench.debug.start();
      const line = lineOf(SHAPE_ERROR, "self.down(");
      await workbench.debug.waitUntilStoppedIn(`forward, line ${line}, model.py`);
      assert.deepEqual(
        (await workbench.debug.callStack()).filter(
          (frame) => !/model\.py|module\.py|linear\.py/.test(frame),
        ),
        [],
      );
      await eventuallyMatches(
        "the exception",
        () => workbench.debug.exception(),
        /mat1 and mat2 shapes cannot be multiplied/,
      );
      await workbench.debug.continue();
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), SHAPE_ERROR);
    },
  );

  test(
    "is stopped in the middle of a forward pass",
    {
      files: {
        "train.py": sourceOf(NEVER_ENDS),
        ...launchConfigurations({ ...FOR_OPEN_FILE, type: "shapetrace" }),
      },
    },
    async ({ workbench, folder, server }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await eventuallyEqual(() => workbench.code.text(), NEVER_ENDS);
      await eventuallyMatches("the status", () => workbench.status(), /Shapetrace: \d+ calls/);
      await workbench.debug.stop();
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => server.processes(/train\.py/), []);
      assert.equal(await workbench.code.text(), NEVER_ENDS);
      assert.deepEqual(await workbench.notifications(), []);
    },
  );

  test(
    "in a terminal whose shell sets a PYTHONPATH, with a sitecustomize of the user's own",
    {
      files: {
        "train.py": sourceOf(OWN_IMPORTS),
        "libraries/mine.py": "WIDTH = 7\n",
        "libraries/sitecustomize.py": "import sys\n\nsys.customized = 'mine'\n",
        ...launchConfigurations({
          ...FOR_OPEN_FILE,
          type: "debugpy",
          console: "integratedTerminal",
        }),
      },
    },
    async ({ workbench, folder, server }) => {
      const libraries = folder.file("libraries");
      const shellStart = join(server.home, ".bashrc");
      folder.write({ [shellStart]: `export PYTHONPATH='${libraries}'\n` });
      try {
        await workbench.openFile(folder.file("train.py"));
        await workbench.debug.start();
        await eventuallyEqual(() => workbench.code.text(), OWN_IMPORTS);
        await workbench.debug.waitUntilEnded();
        await workbench.showTerminal();
        await eventuallyMatches("the terminal", () => workbench.terminal(), /site: mine end/);
      } finally {
        rmSync(shellStart);
      }
    },
  );
});
