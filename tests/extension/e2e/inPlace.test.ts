/** Trace Forward Pass while a program stands still: an expression is run there, and recorded. */
import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventuallyEqual, eventuallyMatches } from "./support/waiting";

const COMMAND = "Shapetrace: Trace Forward Pass";

const TRAIN = {
  ...{ type: "debugpy", request: "launch", console: "internalConsole" },
  ...{ name: "Train", program: "${workspaceFolder}/train.py" },
};

const MODEL = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.up(x).relu()
        return self.down(hidden)


def slow(x, seconds):
    import time

    for _ in range(20 * seconds):
        x = x + 1
        time.sleep(0.05)
    return x
`;

const PROGRAM = `\
import torch
from model import Model, slow

model = Model()
inputs = torch.randn(3, 4)
loss = model(inputs).sum()
loss.backward()
print("ended")
`;

const TWICE = `\
import torch
from model import Model

model = Model()
for size in (3, 5):
    model(torch.randn(size, 4))
`;

const LINE = lineOf(PROGRAM, "loss = model");

const FILES = {
  ...{ "train.py": PROGRAM, "twice.py": TWICE, "model.py": MODEL },
  ...launchConfigurations(TRAIN, {
    ...TRAIN,
    name: "Twice",
    program: "${workspaceFolder}/twice.py",
  }),
};

async function stopBeforeModel({ workbench, folder }: Fixture): Promise<void> {
  await workbench.openFile(folder.file("train.py"));
  await workbench.code.toggleBreakpoint(LINE);
  await workbench.debug.startNamed("Train");
  await workbench.debug.waitUntilStoppedIn(`<module>, line ${LINE}, train.py`);
  await eventuallyMatches("it is recorded", () => workbench.status(), / calls$/);
}

/** What the status bar says came of an expression. */
async function told({ workbench }: Fixture): Promise<string> {
  const items = await workbench.statusBar();
  return items.find((text) => text.startsWith("Shapetrace: ")) ?? "";
}

inEditors("Trace Forward Pass at a stop", {}, (test) => {
  test("runs a call of the line and shows its shapes", { files: FILES }, async (it) => {
    const { workbench, folder } = it;
    const { code, debug } = workbench;
    await stopBeforeModel(it);
    await workbench.run(COMMAND);
    await eventuallyEqual(
      async () => (await workbench.choices()).map((text) => text.split("An extra call")[0]?.trim()),
      [
        "Evaluate model(inputs).sum()",
        "Evaluate model(inputs)",
        `Evaluate Another Expression...in <module>, train.py:${LINE}`,
        "Continue, and Record the Next Forward Passdoes not evaluate anything",
      ],
    );
    await workbench.choose("Evaluate model(inputs)An extra call");
    await eventuallyEqual(
      () => told(it),
      "Shapetrace: model(inputs) → f32[3,2] · requires grad, 3 calls recorded",
    );
    await eventuallyMatches(
      "the console",
      () => debug.console(),
      /model\(inputs\) → f32\[3,2\] · requires grad, 3 calls recorded/,
    );
    // The line itself has not run.
    await eventuallyEqual(() => code.hints(), { [LINE - 1]: "f32[3,4]" });
    await workbench.openFile(folder.file("model.py"));
    const forward = lineOf(MODEL, "def forward");
    await eventuallyEqual(() => code.hints(), {
      [forward]: "x f32[3,4]",
      [forward + 1]: "f32[3,8]",
      [forward + 2]: "f32[3,2]",
    });
    await debug.continue();
    await debug.waitUntilEnded();
    await workbench.openFile(folder.file("train.py"));
    await eventuallyEqual(() => code.hints(), { [LINE - 1]: "f32[3,4]", [LINE]: "f32[]" });
  });

  test("leaves this call's shapes as they are", { files: FILES }, async (it) => {
    const { workbench, folder } = it;
    const { code, debug } = workbench;
    const down = lineOf(MODEL, "self.down(hidden)");
    const frame = `forward, line ${down}, model.py`;
    await workbench.openFile(folder.file("model.py"));
    await code.toggleBreakpoint(down);
    await debug.startNamed("Twice");
    await debug.waitUntilStoppedIn(frame);
    await debug.continue();
    const hints = { [down - 2]: "x f32[5,4]", [down - 1]: "f32[5,8]", [down]: "~ f32[3,2]" };
    await eventuallyEqual(() => code.hints(), hints);
    await debug.waitUntilStoppedIn(frame);
    await workbench.run(COMMAND);
    await workbench.choose("Evaluate self.down(hidden)");
    await eventuallyMatches("what is told", () => told(it), /f32\[5,2\].*, 1 call recorded$/);
    await eventuallyEqual(() => code.hints(), hints);
    await debug.stop();
    await debug.waitUntilEnded();
  });

  test("tells of an error, and of what takes long", { files: FILES }, async (it) => {
    const { workbench } = it;
    const { debug } = workbench;
    const evaluate = async (expression: string): Promise<void> => {
      await workbench.run(COMMAND);
      await workbench.choose("Evaluate Another Expression...");
      await workbench.answer(expression);
    };
    await stopBeforeModel(it);
    await evaluate("model(inputs.T)");
    const error =
      /^model\(inputs\.T\) raised RuntimeError: mat1 and mat2 .*\(\d calls recorded up to/;
    await workbench.notification(error);
    await eventuallyMatches(
      "the error",
      async () => (await workbench.notifications())[0] ?? "",
      /Show/,
    );
    await workbench.pressInNotification("Show Line");
    await eventuallyEqual(() => workbench.code.fileName(), "model.py");
    await eventuallyEqual(() => workbench.code.cursorLine(), lineOf(MODEL, "self.up(x)"));

    await evaluate("slow(inputs, 60)");
    await workbench.notification("Shapetrace: evaluating slow(inputs, 60)");
    await workbench.pressInNotification("Cancel");
    await eventuallyEqual(() => told(it), "Shapetrace: slow(inputs, 60) was cancelled");

    await workbench.run(COMMAND);
    await workbench.choose("Continue, and Record the Next Forward Pass");
    await debug.waitUntilEnded();
    await eventuallyMatches("the program ended", () => debug.console(), /ended/);
  });
});
