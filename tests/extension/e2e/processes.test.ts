/** Programs that run already, programs of many processes, and several debug sessions at once. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";

import { PYTHON } from "../../../scripts/setup.mjs";
import { launchConfigurations } from "./support/folder";
import { lineOf, sourceOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const SERVING = `\
import os
import time

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):«x f32[3,4]»
        hidden = self.up(x)«f32[3,8]»
        return hidden.relu()«f32[3,8]»


model = Model()
print("serving", flush=True)
while not os.path.exists("stop"):
    outputs = model(torch.ones(3, 4))«f32[3,8]»
    time.sleep(0.02)
print("unharmed", type(model).__call__.__code__.co_filename.endswith("module.py"), flush=True)
`;

const RANKS = `\
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(4, 8)
inputs = torch.ones(rank + 2, 4)«f32[2|3,4]»
outputs = model(inputs)«f32[2|3,8]»
total = outputs.sum()«f32[]»
dist.all_reduce(total)
dist.destroy_process_group()
`;

const LOADING = `\
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        sample = torch.arange(5) + index«i64[5]»
        return sample.float()«f32[5]»


if __name__ == "__main__":
    for batch in DataLoader(Squares(), batch_size=2, num_workers=1):«batch f32[2,5]»
        scaled = batch * 2«f32[2,5]»
    print("loaded")
`;

const WAITS = `\
import os
import time

import torch

WIDTH = int(os.environ["WIDTH"])
values = torch.ones(2, WIDTH)«f32[2,WIDTH]»
while not os.path.exists("stop"):
    time.sleep(0.05)
`;

/** A program that was started outside of the editor. */
class Program {
  readonly #process: ChildProcess;
  output = "";

  constructor(folder: string, options: readonly string[]) {
    const environment = { ...process.env, OMP_NUM_THREADS: "1", PYTHONPATH: "" };
    this.#process = spawn(PYTHON, ["-Xfrozen_modules=off", ...options], {
      cwd: folder,
      env: environment,
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.on("data", (data: Buffer) => (this.output += data.toString()));
    }
  }

  get id(): number {
    return this.#process.pid ?? 0;
  }

  async says(text: string): Promise<void> {
    await eventuallyMatches("its output", () => Promise.resolve(this.output), new RegExp(text));
  }

  end(): void {
    this.#process.kill("SIGKILL");
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" ? (address?.port ?? 0) : 0;
      server.close(() => {
        resolve(port);
      });
    });
  });
}

async function statusIs({ workbench }: Fixture, pattern: RegExp): Promise<void> {
  await eventuallyMatches("the status", () => workbench.status(), pattern);
}

inEditors("Processes", {}, (test) => {
  for (const type of ["shapetrace", "debugpy"]) {
    test(
      `attaching to a program that listens, with a configuration of type ${type}`,
      { files: { "serve.py": sourceOf(SERVING) } },
      async (fixture) => {
        const { workbench, folder } = fixture;
        const port = await freePort();
        folder.write(
          launchConfigurations({
            ...{ name: "Attach", type, request: "attach", connect: { host: "127.0.0.1", port } },
          }),
        );
        const listening = ["-m", "debugpy", "--listen", `127.0.0.1:${port}`];
        const program = new Program(folder.path, [...listening, folder.file("serve.py")]);
        try {
          await program.says("serving");
          await workbench.openFile(folder.file("serve.py"));
          await workbench.debug.start();
          await eventuallyEqual(() => workbench.code.text(), SERVING);
          await workbench.debug.disconnect();
          await workbench.debug.waitUntilEnded();
          // It goes on as without us, and can be attached to again.
          await workbench.run("Shapetrace: Clear Hints");
          await eventuallyEqual(() => workbench.code.text(), sourceOf(SERVING));
          await workbench.debug.start();
          await eventuallyEqual(() => workbench.code.text(), SERVING);
          await workbench.debug.disconnect();
          await workbench.debug.waitUntilEnded();
          await eventuallyEqual(() => Promise.resolve(program.output.includes("Error")), false);
          folder.write({ stop: "" });
          await program.says("unharmed");
        } finally {
          program.end();
        }
      },
    );
  }

  test(
    "attaching to a process that is picked from a list",
    {
      ownWindow: true, // Where it is forbidden the attempt goes on.
      files: {
        "serve.py": sourceOf(SERVING),
        ...launchConfigurations({
          ...{ name: "Attach", type: "debugpy", request: "attach" },
          processId: "${command:pickProcess}",
        }),
      },
    },
    async ({ workbench, folder }) => {
      const program = new Program(folder.path, [folder.file("serve.py")]);
      try {
        await program.says("serving");
        await workbench.openFile(folder.file("serve.py"));
        await workbench.debug.start();
        await workbench.choose(String(program.id));
        // Where the system forbids it, that is said, with what to do.
        await eventually(
          "shapes, or why there are none",
          async () => [await workbench.code.text(), ...(await workbench.notifications())],
          ([text, ...messages]) =>
            text === SERVING || messages.some((message) => /ptrace_scope|gdb/.test(message)),
          { seconds: 90 },
        );
      } finally {
        program.end();
      }
    },
  );

  test(
    "a program on another machine",
    {
      ownWindow: true, // It goes on looking for that machine.
      files: {
        "serve.py": sourceOf(SERVING),
        ...launchConfigurations({
          ...{ name: "Attach", type: "shapetrace", request: "attach" },
          connect: { host: "127.0.0.1.invalid", port: 5678 },
        }),
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("serve.py"));
      await workbench.debug.start();
      await workbench.notification("127.0.0.1.invalid is another one");
    },
  );

  test(
    "two ranks of torchrun",
    {
      files: {
        "ranks.py": sourceOf(RANKS),
        ...launchConfigurations({
          ...{ name: "Ranks", type: "shapetrace", request: "launch", console: "internalConsole" },
          module: "torch.distributed.run",
          args: ["--standalone", "--nproc-per-node=2", "${workspaceFolder}/ranks.py"],
        }),
      },
    },
    async (fixture) => {
      const { workbench, folder } = fixture;
      await workbench.openFile(folder.file("ranks.py"));
      await workbench.debug.start();
      await eventuallyEqual(() => workbench.code.text(), RANKS);
      await workbench.debug.waitUntilEnded();
      const story = await workbench.code.hover({
        line: lineOf(RANKS, "outputs = "),
        at: "outputs",
      });
      assert.match(story, /rank 0.*f32\[2,8\]|f32\[2,8\].*rank 0/s);
      assert.match(story, /rank 1.*f32\[3,8\]|f32\[3,8\].*rank 1/s);
      const { trace } = workbench;
      await trace.show();
      await trace.waitFor(/^rank 0: ranks\.py · process \d+$/);
      await eventuallyEqual(
        async () => (await trace.rows()).map((row) => row.split(":")[0]),
        ["rank 0", "rank 1"],
      );
      for (const [rank, rows] of [2, 3].entries()) {
        await trace.expand(`rank ${rank}`);
        await trace.waitFor(`Linear: f32[${rows},8] ← f32[${rows},4]`);
        await trace.collapse(`rank ${rank}`);
      }
    },
  );

  test(
    "a stop in a worker that loads data",
    {
      files: {
        "load.py": sourceOf(LOADING),
        ...launchConfigurations({
          ...{ name: "Load", type: "debugpy", request: "launch", console: "internalConsole" },
          program: "${workspaceFolder}/load.py",
        }),
      },
    },
    async (fixture) => {
      const { workbench, folder } = fixture;
      await workbench.openFile(folder.file("load.py"));
      const line = lineOf(LOADING, "return sample");
      await workbench.code.toggleBreakpoint(line);
      await workbench.debug.start();
      await eventuallyEqual(() => workbench.code.stoppedLine(), line, { seconds: 90 });
      await eventuallyMatches(
        "the text",
        () => workbench.code.text(),
        /torch\.arange\(5\) \+ index«i64\[5\]»/,
      );
      await workbench.code.toggleBreakpoint(line);
      await workbench.debug.continue();
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), LOADING);
    },
  );

  test(
    "two debug sessions at once",
    {
      files: {
        "one.py": sourceOf(WAITS),
        "two.py": sourceOf(WAITS),
        ...launchConfigurations(
          ...["one", "two"].map((name, index) => ({
            ...{ name, type: "debugpy", request: "launch", console: "internalConsole" },
            program: `\${workspaceFolder}/${name}.py`,
            env: { WIDTH: String(3 + index) },
          })),
        ),
      },
    },
    async (fixture) => {
      const { workbench, folder } = fixture;
      await workbench.openFile(folder.file("one.py"));
      await workbench.debug.startNamed("one");
      await eventuallyEqual(() => workbench.code.text(), WAITS.replace("2,WIDTH", "2,3"));
      await workbench.debug.startNamed("two");
      await workbench.openFile(folder.file("two.py"));
      await eventuallyEqual(() => workbench.code.text(), WAITS.replace("2,WIDTH", "2,4"));
      await statusIs(fixture, /2 processes/);
      await workbench.openFile(folder.file("one.py"));
      await eventuallyEqual(() => workbench.code.text(), WAITS.replace("2,WIDTH", "2,3"));
      folder.write({ stop: "" });
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), WAITS.replace("2,WIDTH", "2,3"));
    },
  );
});
