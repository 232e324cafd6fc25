/** Variables that are watched: chosen at the cursor, shown on the lines and in the tree. */
import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { type Fixture, inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const PROGRAM = `\
import numpy as np


def resize(video, size):
    video = video[:, :size, :size]
    return video


class Dataset:
    def transform(self, sample):
        sample["video"] = resize(sample["video"], 4)
        video = sample["video"].astype(np.float32)
        video /= 255
        return video


if __name__ == "__main__":
    dataset = Dataset()
    for frames in (8, 16):
        video = np.ones((frames, 8, 8), dtype=np.uint8)
        result = dataset.transform({"video": video})
    print("over")
`;

const MODEL = `\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(4, 8)

    def forward(self, x):
        x = self.up(x)
        scores = x.softmax(-1)
        return scores


outputs = Model()(torch.ones(2, 4))
`;

const FILES = {
  "pipeline.py": PROGRAM,
  "model.py": MODEL,
  ...launchConfigurations(
    ...["pipeline", "model"].map((name) => ({
      name,
      type: "shapetrace",
      request: "launch",
      program: `\${workspaceFolder}/${name}.py`,
      console: "internalConsole",
    })),
  ),
};

const WATCH = "Shapetrace: Watch Variable";
const LATER = "from the next run on";

async function goTo({ workbench }: Fixture, text: string, line: string, at: string): Promise<void> {
  const number = lineOf(text, line);
  const found = text.split("\n")[number - 1] ?? "";
  await workbench.code.goTo(number, found.indexOf(at) + 1);
}

/** Watches what is at a fragment of a line. */
async function watch(fixture: Fixture, line: string, at: string, text = PROGRAM): Promise<void> {
  await goTo(fixture, text, line, at);
  await fixture.workbench.run(WATCH);
}

/** Starts a program that is over so soon that nothing but what it leaves can be waited for. */
async function start({ workbench }: Fixture, name = "pipeline"): Promise<void> {
  await workbench.debug.startNamed(name);
}

const STOPPED = `transform, line ${lineOf(PROGRAM, "video /= 255")}, pipeline.py`;

const at = (line: string) => lineOf(PROGRAM, line);

inEditors("Watched variables", {}, (test) => {
  test("of a pipeline without torch", { inOldest: true, files: FILES }, async (fixture) => {
    const { workbench, folder } = fixture;
    const { code, trace: tree } = workbench;
    await workbench.openFile(folder.file("pipeline.py"));
    await watch(fixture, "video = sample", "video");
    await workbench.notification("video is watched. Its changes are shown from the next run on.");
    await watch(fixture, "resize(sample", 'video"] =');
    await workbench.notification("sample['video'] is watched.");
    await tree.show({ keepsCallStack: false });
    await tree.waitFor(`video: ${LATER}`);
    await start(fixture);
    await eventuallyEqual(() => code.hints(), {
      [at("def resize")]: "video u8[8|16,8,8]",
      [at("video[:, :size")]: "video u8[8|16,8,8] → u8[8|16,4,4]",
      [at("def transform")]: "sample['video'] u8[8|16,8,8]",
      [at("= resize(sample")]: "sample['video'] u8[8|16,8,8] → u8[8|16,4,4]",
      [at("astype")]: "video f32[8|16,4,4]",
      [at("video /= 255")]: "video f32[8|16,4,4]",
      [at("np.ones")]: "video u8[8|16,8,8]",
    });
    await workbench.debug.waitUntilEnded();
    await eventuallyEqual(() => workbench.status(), "Shapetrace: 2 variables watched");
    await workbench.closeNotifications();
    await tree.waitFor(/^> ?Watched variables|^Watched variables: \d+ changes/);
    await tree.waitFor(/ video: 10 changes {2}u8\[8,8,8\] → f32\[16,4,4\]/);
    await tree.expand("video");
    const changed = `pipeline.py:${at("video[:, :size")}: u8[8,8,8] → u8[8,4,4]`;
    await tree.waitFor(`${changed}  resize, call 1`);
    await workbench.screenshot("build/e2e/watching.png");
    await tree.click(`pipeline.py:${at("astype")}`);
    await eventuallyEqual(() => code.cursorLine(), at("astype"));
    await eventuallyMatches(
      "the tooltip",
      () => tree.tooltip(`pipeline.py:${at("astype")}`),
      /f32/,
    );
    // The hints go along with their lines, and a line that is changed has none.
    await code.goTo(1);
    await code.type("# first\n");
    await eventuallyMatches(
      "the hint has moved",
      async () => (await code.hints())[at("astype") + 1] ?? "",
      /^video f32/,
    );
    await code.undoAll();
  });

  test("beside what is recorded of a model", { files: FILES }, async (fixture) => {
    const { workbench, folder } = fixture;
    const { code, trace: tree } = workbench;
    await workbench.openFile(folder.file("model.py"));
    await watch(fixture, "x = self.up", "x =", MODEL);
    await start(fixture, "model");
    const line = (fragment: string) => lineOf(MODEL, fragment);
    await eventually(
      "the watched line says what it was before, and its shape once",
      () => code.hints(),
      (hints) =>
        hints[line("x = self.up")] === "x f32[2,4] → f32[2,8]" &&
        hints[line("x.softmax")] === "f32[2,8]" &&
        hints[line("def forward")]?.startsWith("x f32[2,4]") === true,
    );
    await workbench.debug.waitUntilEnded();
    await tree.show({ keepsCallStack: false });
    await tree.waitFor(/ x: 2 changes/);
    await tree.waitFor(/^Model/);
  });

  test("from a stop on, and no longer", { files: FILES }, async (fixture) => {
    const { workbench, folder } = fixture;
    const { code, trace: tree } = workbench;
    await workbench.openFile(folder.file("pipeline.py"));
    await code.toggleBreakpoint(at("video /= 255"));
    await workbench.debug.startNamed("pipeline");
    await workbench.debug.waitUntilStoppedIn(STOPPED);
    await watch(fixture, "video = sample", "video");
    await workbench.notification(/Functions that assign it are watched from their next call on/);
    await tree.show();
    await tree.waitFor("video: nothing yet");
    await workbench.debug.continue();
    await eventuallyMatches(
      "the second call is watched",
      async () => (await code.hints())[at("astype")] ?? "",
      /^video f32\[16,4,4\]$/,
    );
    await workbench.debug.waitUntilStoppedIn(STOPPED);
    await code.toggleBreakpoint(at("video /= 255"));
    await workbench.debug.continue();
    await workbench.debug.waitUntilEnded();
    // VS Code goes on ending a session for a while, and passes over what is pressed meanwhile.
    await eventuallyMatches("the session is over", () => workbench.status(), /1 variable watched/);
    await tree.chooseInMenu("video", "Stop Watching Variable");
    await start(fixture);
    await eventually(
      "nothing is watched",
      () => tree.rows(),
      (rows) => rows.every((row) => !row.includes("Watched")),
    );
  });

  test("of which there is nothing", { files: FILES }, async (fixture) => {
    const { workbench, folder } = fixture;
    const { trace: tree } = workbench;
    await workbench.openFile(folder.file("pipeline.py"));
    await workbench.code.goTo(2);
    await workbench.run(WATCH);
    await workbench.answerBadly("f(x)", /more in it than names/);
    await workbench.answer("vidoe");
    await tree.show({ keepsCallStack: false });
    await start(fixture);
    await workbench.notification(/nothing that was loaded assigns 'vidoe'; did you mean video/);
    await workbench.debug.waitUntilEnded();
    await tree.waitFor(/vidoe: nothing that was loaded assigns 'vidoe'/);
    await workbench.run("Shapetrace: Stop Watching All Variables");
    await eventuallyEqual(() => workbench.trace.rows(), []);
  });
});
