/** Values that are captured: chosen at the cursor or in the tree, and shown in it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../../scripts/setup.mjs";
import { launchConfigurations } from "./support/folder";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";
import { lineOf, makeEnvironment, shareTorch } from "./support/programs";

const PROGRAM = `\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):
        scores = self.up(x).relu()
        return scores[..., :4]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
model = Model()
for step in range(2):
    outputs = model(torch.randn(2, 8, 4))
`;

const FILES = {
  "model.py": PROGRAM,
  ...launchConfigurations({
    name: "Model",
    type: "shapetrace",
    request: "launch",
    program: "${workspaceFolder}/model.py",
    console: "internalConsole",
  }),
};

/** A program that captures values by itself, and saves them. */
const SAVES = `\
import torch
from model import Model
from shapetrace import H5PYSaverCallback, ModelTracer, Variable


def halved(name, value, iteration):
    return value / 2


torch.manual_seed(0)
net = Model()  # Another than model.py has, which is called as well.
saver = H5PYSaverCallback("run.h5")
values = Variable(
    ["layers.*.forward.scores", "forward"],
    pre_save_callbacks=[halved],
    post_gather_callbacks=[saver],
)
with ModelTracer(net, [values]) as tracer:
    for step in range(3):
        net(torch.randn(2, 8, 4))
saver.close()
print(sorted(tracer.results), tracer.problems)
`;

/** Prints all that is in a file of captured values. */
const TELLS = `\
import h5py

def tell(name, item):
    value = item[()].tolist() if isinstance(item, h5py.Dataset) else ""
    print(name, sorted((key, str(each)) for key, each in item.attrs.items()), value)

with h5py.File("run.h5") as file:
    file.visititems(tell)
`;

const CAPTURE = "Shapetrace: Capture Values...";
const LATER = "from the next run on";

async function open({ workbench, folder }: Fixture): Promise<void> {
  await workbench.openFile(folder.file("model.py"));
}

/** Puts the cursor into the first character of a fragment. */
async function goTo({ workbench }: Fixture, line: string, at: string): Promise<void> {
  const number = lineOf(PROGRAM, line);
  const text = PROGRAM.split("\n")[number - 1] ?? "";
  await workbench.code.goTo(number, text.indexOf(at) + 1);
}

/** Has paths offered, these before all others. */
async function offers({ workbench }: Fixture, ...first: string[]): Promise<void> {
  await workbench.run(CAPTURE);
  await eventuallyEqual(async () => (await workbench.choiceLabels()).slice(0, first.length), first);
}

async function type({ workbench }: Fixture, path: string): Promise<void> {
  await workbench.run(CAPTURE);
  await workbench.choose("Another Path");
  await workbench.answer(path);
}

/** Traces one forward pass. */
async function trace({ workbench }: Fixture): Promise<void> {
  await workbench.run("Shapetrace: Trace Forward Pass");
  await workbench.debug.waitUntilRunning();
  await workbench.debug.waitUntilEnded();
}

/** Runs the program to its end. */
async function debug({ workbench }: Fixture): Promise<void> {
  await workbench.debug.startNamed("Model");
  await workbench.debug.waitUntilRunning();
  await workbench.debug.waitUntilEnded();
}

inEditors("Captured values", {}, (test) => {
  test("of a variable at the cursor", { files: FILES }, async (fixture) => {
    const { workbench } = fixture;
    const { code, trace: tree } = workbench;
    await open(fixture);
    await goTo(fixture, "scores = self.up", "scores");
    await offers(fixture, "**.forward.scores", "Another Path...");
    await workbench.choose("**.forward.scores");
    await workbench.notification("**.forward.scores will be captured from the next run on.");
    await tree.show();
    await tree.waitFor(`**.forward.scores: ${LATER}`);
    await workbench.pressInNotification("Trace Forward Pass");
    await workbench.debug.waitUntilRunning();
    await workbench.debug.waitUntilEnded();
    await tree.waitFor("Captured values: 3 values");
    await tree.waitFor("**.forward.scores: 3 values of 3 names");
    await tree.expand("**.forward.scores");
    await tree.waitFor(
      /^ {4}layers\.1\.forward\.scores: ×1 {2}f32\[2,8,8\] {2}0 … .* mean .*[▁-█]/,
    );
    await eventuallyEqual(() => tree.icon("layers.1.forward.scores"), "data:image/svg+xml;base64");
    await tree.expand("layers.1.forward.scores");
    await tree.waitFor(/^ {6}iteration 1: f32\[2,8,8\] {2}0 … /);
    await tree.click("iteration 1");
    await eventuallyEqual(() => code.cursorLine(), lineOf(PROGRAM, "scores = self.up"));
    await tree.waitFor(/> iteration 1/);
    await eventuallyMatches(
      "the tooltip",
      () => tree.tooltip("iteration 1"),
      /layers\.1\.forward\.scores[^]*128 numbers[^]*\[256\]/,
    );
    // Where nothing stands that has a path, one is asked for.
    await code.goTo(1);
    await workbench.run(CAPTURE);
    await workbench.answer("forward");
    await tree.waitFor(`forward: ${LATER}`);
  });

  test("of a module, in a whole run", { files: FILES }, async (fixture) => {
    const { workbench } = fixture;
    const { trace: tree } = workbench;
    await open(fixture);
    await trace(fixture);
    await tree.show({ keepsCallStack: false });
    await tree.waitFor(/Model/);
    await goTo(fixture, "scores = self.up", "up(x)");
    await offers(fixture, "layers.*.up", "layers.0.up");
    await workbench.choose("layers.*.up");
    await tree.waitFor(`layers.*.up: ${LATER}`);
    await tree.waitFor(/ layers\.2/); // It goes along with the cursor.
    await tree.chooseInMenu("layers.2", "Capture Values...");
    await workbench.choose("layers.2");
    await tree.waitFor(`layers.2: ${LATER}`);
    await debug(fixture);
    await tree.waitFor("layers.*.up: 6 values of 3 names");
    await tree.waitFor(/layers\.2: ×2 {2}f32\[2,8,4\] {2}0 … /);
    await tree.waitFor("Captured values: 8 values");
  });

  test(
    "of a path that is no path, and of one that there is not",
    { files: FILES },
    async (fixture) => {
      const { workbench } = fixture;
      const { trace: tree } = workbench;
      await open(fixture);
      await goTo(fixture, "x = layer(x)", "x = layer");
      await workbench.run(CAPTURE);
      await workbench.choose("Another Path");
      await workbench.answerBadly("layers[0].up", /character 7: items are written as components/);
      await workbench.answer("forward.y");
      await tree.show({ keepsCallStack: false });
      await tree.waitFor(`forward.y: ${LATER}`);
      await type(fixture, "layers.*.forward.x");
      await debug(fixture);
      await workbench.notification(
        /Nothing is captured of forward\.y: matches nothing: function 'forward' has no 'y'; nearest there: .*x/,
      );
      await tree.waitFor(/forward\.y: matches nothing: .* has no 'y'/);
      await eventuallyEqual(() => tree.icon("forward.y"), "codicon-warning");
      await tree.waitFor("layers.*.forward.x: 6 values of 3 names");
    },
  );

  for (const { where, isInstalled } of [
    { where: "from the VSIX", isInstalled: false },
    { where: "of its own environment, in another version", isInstalled: true },
  ]) {
    test(
      `beside those that a program saves itself with the package ${where}`,
      {
        files: {
          "model.py": PROGRAM,
          "saves.py": SAVES,
          ...launchConfigurations({
            name: "Saves",
            type: "shapetrace",
            request: "launch",
            program: "${workspaceFolder}/saves.py",
            python: "${workspaceFolder}/environment/bin/python",
            console: "internalConsole",
          }),
        },
      },
      async (fixture) => {
        const { workbench, folder } = fixture;
        const environment = makeEnvironment(folder.file("environment"));
        shareTorch(environment);
        const own = join(environment.packages, "shapetrace");
        cpSync(join(ROOT, "python_backend", "shapetrace"), own, { recursive: true });
        const run = (...options: string[]) => {
          const result = spawnSync(environment.python, options, {
            cwd: folder.path,
            encoding: "utf8",
          });
          assert.equal(result.status, 0, result.stderr);
          return result.stdout;
        };
        const without = run("saves.py");
        const saved = run("-c", TELLS);
        assert.match(saved, /layers\.1\.forward\.scores_iterations .*\[1, 2, 3\]/);
        rmSync(folder.file("run.h5"));
        if (isInstalled) {
          writeFileSync(join(own, "capture", "__init__.py"), "raise ImportError('another')\n");
        } else {
          rmSync(own, { recursive: true });
        }
        await open(fixture);
        await goTo(fixture, "scores = self.up", "scores");
        await type(fixture, "layers.*.forward.scores");
        await workbench.debug.startNamed("Saves");
        await workbench.debug.waitUntilRunning();
        await workbench.debug.waitUntilEnded();
        await eventuallyEqual(() => workbench.debug.console(), without.trim());
        assert.equal(run("-c", TELLS), saved);
        await workbench.trace.show({ keepsCallStack: false });
        await workbench.trace.waitFor("layers.*.forward.scores: 15 values of 3 names");
      },
    );
  }

  test("are captured no longer", { files: FILES }, async (fixture) => {
    const { workbench } = fixture;
    const { trace: tree } = workbench;
    await open(fixture);
    await goTo(fixture, "scores = self.up", "scores");
    for (const path of ["layers.0", "layers.1", "layers.2"]) {
      await type(fixture, path);
      await workbench.notification(`${path} will be captured`);
    }
    await workbench.closeNotifications();
    await tree.show({ keepsCallStack: false });
    await tree.waitFor(`layers.2: ${LATER}`);
    await tree.press("layers.0", "Stop Capturing");
    await eventuallyEqual(
      () => tree.rows(),
      ["Captured values", `  layers.1: ${LATER}`, `  layers.2: ${LATER}`],
    );
    await workbench.run("Shapetrace: Captured Values...");
    await workbench.choose("layers.2");
    await workbench.accept();
    await eventuallyEqual(() => tree.rows(), ["Captured values", `  layers.1: ${LATER}`]);
    await trace(fixture);
    await tree.waitFor("Captured values: 1 value");
    await tree.press("Captured values", "Stop Capturing All Values");
    await trace(fixture);
    await eventually(
      "nothing is captured",
      () => tree.rows(),
      (rows) => rows.length > 0 && rows.every((row) => !row.includes("Captured")),
    );
    assert.deepEqual(await workbench.notifications(), []);
  });
});
