/** Trace Forward Pass, read from the rendered editor. */
import assert from "node:assert/strict";
import { join } from "node:path";

import { lineOf, makeEnvironment, shareTorch, sourceOf, TRAINING } from "./support/programs";
import { inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const TRACE = "Shapetrace: Trace Forward Pass";

const MODEL_ALONE = `\
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):«x f32[3,4]»
        return self.up(x).relu()«f32[3,8]»
`;

const TRAINS_MODEL_ALONE = `\
import torch
from model import Model


def main():
    outputs = Model()(torch.randn(3, 4))«f32[3,8]»
    print(outputs.shape)


if __name__ == "__main__":
    main()
`;

const TRANSFORM_AND_LOSS = `\
import torch
from torch import nn


class Normalize(nn.Module):
    def forward(self, image):«image f32[3,4]»
        return (image - image.mean()) / image.std()«f32[3,4]»


class HingeLoss(nn.Module):
    def forward(self, scores, targets):«scores,targets f32[3,1]»
        return (1 - scores * targets).clamp(min=0).mean()«f32[]»


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, image):«image f32[3,4]»
        return self.linear(image)«f32[3,1]»


normalize, classifier, criterion = Normalize(), Classifier(), HingeLoss()
optimizer = torch.optim.SGD(classifier.parameters(), lr=0.1)
for step in range(1_000_000_000):
    images = normalize(torch.rand(3, 4))«f32[3,4]»
    targets = torch.ones(3, 1)«f32[3,1]»
    scores = classifier(images)«f32[3,1]»
    loss = criterion(scores, targets)«f32[]»
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
`;

const RAISES = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):«x f32[3,4]»
        hidden = self.up(x)«f32[3,8]»
        assert hidden.shape[1] == 9, "not nine"
        return hidden.relu()


print(Model()(torch.randn(3, 4)))«✗ not nine»
`;

const USES_PACKAGE = `\
import torch
from tiny.layers import Scale

outputs = Scale(4)(torch.randn(3, 4))«f32[3,4]»
print(outputs.shape)
`;

const PACKAGE = `\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):«x f32[3,4]»
        return self.weight * x«f32[3,4]»
`;

const UNICODE = `\
import torch

# The columns of bytes, of UTF-16 and of characters differ here.
größe = torch.ones(2, 3); naïveté = "𝒳𝒴"; 形 = größe.T«größe f32[2,3]; 形 f32[3,2]»
ergebnis = torch.nn.Linear(2, 5)(形)«f32[3,5]»
print(ergebnis.shape)
`;

inEditors("Trace Forward Pass", {}, (test) => {
  test(
    "of a script",
    { files: { "train.py": sourceOf(TRAINING) } },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(
        () => workbench.code.codeLenses(),
        ["1 call · 58 parameters · (f32[3,4]) → f32[3,2]"],
      );
      await eventuallyMatches("the status", () => workbench.status(), /^Shapetrace: \d+ calls$/);
      assert.deepEqual(await workbench.notifications(), []);
    },
  );

  test(
    "of a model without an entry point asks what to run, and remembers it",
    {
      files: { "model.py": sourceOf(MODEL_ALONE), "run.py": sourceOf(TRAINS_MODEL_ALONE) },
      ownWindow: true, // What is remembered is so until the folder is closed.
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("model.py"));
      await workbench.run(TRACE);
      await eventually(
        "run.py is offered",
        () => workbench.choices(),
        (choices) => choices.some((choice) => choice.includes("run.py")),
      );
      await workbench.choose("run.py");
      await eventuallyEqual(() => workbench.code.text(), MODEL_ALONE);
      await workbench.debug.waitUntilEnded();
      await workbench.run("Shapetrace: Clear Hints");
      await eventuallyEqual(() => workbench.code.text(), sourceOf(MODEL_ALONE));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), MODEL_ALONE);
      await workbench.openFile(folder.file("run.py"));
      await eventuallyEqual(() => workbench.code.text(), TRAINS_MODEL_ALONE);
    },
  );

  test(
    "of a file in which no module runs says so",
    { files: { "model.py": `${sourceOf(MODEL_ALONE)}\nprint("nothing runs")\n` } },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("model.py"));
      await workbench.run(TRACE);
      const message = await workbench.notification("without a forward pass");
      assert.match(message, /model\.py.*\[Run Another Program...\]/);
      await workbench.debug.waitUntilEnded();
    },
  );

  test(
    "ends a training after the model's pass, with a module before it and another behind",
    { files: { "train.py": sourceOf(TRANSFORM_AND_LOSS) } },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      await workbench.debug.waitUntilRunning();
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), TRANSFORM_AND_LOSS);
      assert.deepEqual(await workbench.notifications(), []);
    },
  );

  test(
    "lets the program go on if the settings say so",
    {
      files: { "train.py": `${sourceOf(TRAINING)}print("reached", "the end")\n` },
      settings: {
        "shapetrace.trace.afterPass": "continue",
        "shapetrace.trace.console": "internalConsole",
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      await eventuallyMatches("the console", () => workbench.debug.console(), /reached the end/);
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(
        () => workbench.code.text(),
        `${TRAINING}print("reached", "the end")\n`,
      );
    },
  );

  test(
    "of a program that raises in forward",
    { files: { "train.py": sourceOf(RAISES) } },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      const line = lineOf(RAISES, "assert");
      await workbench.debug.waitUntilStoppedIn(`forward, line ${line}, train.py`);
      await eventuallyMatches(
        "the exception",
        () => workbench.debug.exception(),
        /AssertionError\s*not nine/,
      );
      await workbench.debug.continue();
      await workbench.debug.waitUntilEnded();
      await eventuallyEqual(() => workbench.code.text(), RAISES);
    },
  );

  test(
    "of a model in site-packages",
    { files: { "train.py": sourceOf(USES_PACKAGE) } },
    async ({ workbench, folder, server }) => {
      const environment = makeEnvironment(folder.file(".venv"));
      shareTorch(environment);
      const file = join(environment.packages, "tiny", "layers.py");
      folder.write({ [file]: sourceOf(PACKAGE) });
      server.writeSettings({ "shapetrace.interpreter": environment.python });
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), USES_PACKAGE);
      await workbench.openFile(file);
      await eventuallyEqual(() => workbench.code.text(), PACKAGE);
    },
  );

  test(
    "in a folder and a file whose names have spaces and letters of other scripts",
    { folder: "mein Gewölbe 模型", files: { "größen rechnen.py": sourceOf(UNICODE) } },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("größen rechnen.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), UNICODE);
    },
  );
});
