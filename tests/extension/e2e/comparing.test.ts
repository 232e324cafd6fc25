/** Two traces, side by side at the first difference. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { BACKEND_ENVIRONMENT, PYTHON } from "../../../scripts/setup.mjs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyMatches } from "./support/waiting";

const MODEL = `\
import math
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(16, 16)
        self.key = nn.Linear(16, 16)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) / math.sqrt(16)
        return scores.softmax(dim=-1) @ x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


torch.manual_seed(0)
Model()(torch.randn(2, 6, 16))
`;

const FILES = {
  "good.py": MODEL,
  "bad.py": `# Without the scale.\n${MODEL.replace(" / math.sqrt(16)", "")}`,
  "broken.json": '{"format":"shapetrace/1","run":',
};

const RECORDED = { files: FILES, recorded: record };
const CHANGED = { ...RECORDED, changesTrace: true };

const COMPARE = "Shapetrace: Compare Traces...";

/** Records the traces that are compared, as a user does in a terminal. */
async function record({ folder }: Fixture): Promise<void> {
  for (const name of ["good", "bad"]) {
    const output = ["--view", "none", "--fingerprint", "-o", `${name}.json`];
    await promisify(execFile)(PYTHON, ["-m", "shapetrace", "run", ...output, `${name}.py`], {
      cwd: folder.path,
      env: { ...process.env, ...BACKEND_ENVIRONMENT, OMP_NUM_THREADS: "1" },
    });
  }
}

async function compare({ workbench, folder }: Fixture, a: string, b: string): Promise<void> {
  await workbench.run(COMPARE);
  await workbench.openAs("Compare Traces: A", folder.file(a));
  await workbench.openAs("Compare Traces: B", folder.file(b));
}

inEditors("Compared traces", {}, (test) => {
  test(
    "stand side by side at the first difference",
    { inOldest: true, ...RECORDED },
    async (fixture) => {
      const { workbench } = fixture;
      await workbench.openFile("good.py");
      await compare(fixture, "good.json", "bad.json");
      const said = await workbench.notification(/^First difference, after \d+ ops that are alike/);
      assert.match(said, /only in A\. .*Only in A: 3 ops\./);
      const { diff } = workbench;
      await eventuallyMatches(
        "the left side",
        () => diff.left(),
        /^ *layers\.0 [^]*^ *\/ {2}\(f32/m,
      );
      await eventuallyMatches(
        "the right side",
        () => diff.right(),
        /softmax\(dim=-1\) {2}≠ [\d.e-]+ apart/,
      );
      assert.doesNotMatch(await diff.right(), /^ *\/ /m, "only A divides");
      await eventually(
        "what differs is marked",
        () => diff.marked(),
        (marked) => marked > 0,
      );
      if (process.env["SHAPETRACE_PICTURE"] !== undefined) {
        await workbench.screenshot(process.env["SHAPETRACE_PICTURE"]);
      }

      await workbench.run("Shapetrace: Differences...");
      await eventually(
        "the differences are listed",
        () => workbench.choiceLabels(),
        (labels) => labels.length > 5 && /layers\.0 {2}\//.test(labels[0] ?? ""),
      );
      await workbench.choose("layers.1  /");
      await eventually(
        "the status says which it is",
        () => workbench.statusBar(),
        (items) => items.some((item) => /^\d+ of \d+: layers\.1 {2}\/: only in A$/.test(item)),
      );
      await workbench.run("Shapetrace: Next Difference");
      await eventually(
        "the status says which comes next",
        () => workbench.statusBar(),
        (items) => items.some((item) => /^\d+ of \d+: layers\.1 {2}softmax/.test(item)),
      );
      await workbench.run("Shapetrace: Open Sources of the Difference");
      await eventually(
        "both sources are open",
        () => workbench.tabs(),
        (tabs) => tabs.includes("good.py") && tabs.includes("bad.py"),
      );
    },
  );

  test("that cannot be read are told of", RECORDED, async (fixture) => {
    const { workbench } = fixture;
    await workbench.openFile("good.py");
    await compare(fixture, "good.json", "broken.json");
    await workbench.notification(/broken\.json: this file is cut short or damaged at line 1/);
  });

  test("may be this session's and a file", CHANGED, async (fixture) => {
    const { workbench, folder } = fixture;
    await workbench.openFile(folder.file("bad.py"));
    await workbench.run("Shapetrace: Trace Forward Pass");
    await workbench.debug.waitUntilRunning();
    await workbench.debug.waitUntilEnded();
    await workbench.run(COMPARE);
    await workbench.choose("This Session's Trace");
    await workbench.openAs("Compare This Session's Trace with", folder.file("good.json"));
    const said = await workbench.notification("First difference, after");
    assert.match(
      said,
      /only in B\. .*values are not compared: record one of them with --fingerprint/,
    );
    await eventuallyMatches("the right side", () => workbench.diff.right(), /^ *\/ {2}\(f32/m);
  });
});

inEditors("Compared traces in a folder that is not trusted", { trust: false }, (test) => {
  test("are not compared", { files: FILES, ownWindow: true }, async ({ workbench }) => {
    await workbench.run(COMPARE);
    await workbench.notification("this folder is not trusted");
  });
});
