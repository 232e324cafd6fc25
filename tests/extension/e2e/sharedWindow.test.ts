/** The window that tests share: what one has done is gone when the next begins. */
import assert from "node:assert/strict";

import { launchConfigurations } from "./support/folder";
import { lineOf } from "./support/programs";
import { reset } from "./support/resetting";
import { inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const PROGRAM = `\
import torch

inputs = torch.ones(3, 4)
outputs = inputs @ inputs.T
print(outputs.shape)
`;
const STOP = lineOf(PROGRAM, "print");
const FILES = {
  "train.py": PROGRAM,
  ...launchConfigurations({
    ...{ name: "Train", type: "shapetrace", request: "launch", console: "internalConsole" },
    program: "${workspaceFolder}/train.py",
  }),
};

inEditors("A window that tests share", {}, (test) => {
  test("is as new after a reset", { inOldest: true, files: FILES }, async (fixture) => {
    const { workbench, folder } = fixture;
    const { code, debug, trace, watch } = workbench;
    await workbench.openFile(folder.file("train.py"));
    await code.toggleBreakpoint(STOP);
    await debug.start();
    await debug.waitUntilStoppedIn(`<module>, line ${STOP}, train.py`);
    await eventuallyEqual(() => code.hints(), { [STOP - 2]: "f32[3,4]", [STOP - 1]: "f32[3,3]" });
    await watch.show();
    await watch.add("inputs.shape");
    await watch.waitFor(/^inputs\.shape = /);
    await code.goTo(STOP - 2);
    await workbench.run("Shapetrace: Watch Variable");
    await workbench.notification("is watched");
    await workbench.run("Shapetrace: Filter Trace...");
    await workbench.answer("nothing");
    await code.goTo(1);
    await code.type("# changed\n");
    await workbench.run("View: Split Editor");
    await eventually(
      "there are two editors",
      () => workbench.tabs(),
      (tabs) => tabs.length === 2,
    );

    await reset(workbench, folder, false);

    await workbench.openFile(folder.file("train.py"));
    await eventuallyEqual(() => code.text(), PROGRAM);
    assert.equal(await code.hasBreakpoint(STOP), false);
    await trace.show();
    await eventuallyMatches("the view", () => trace.welcome(), /No trace yet/);
    await watch.show();
    assert.deepEqual(await watch.rows(), []);
    await debug.start();
    await debug.waitUntilRunning();
    await debug.waitUntilEnded();
    await trace.show();
    await trace.waitFor(/ones/);
    assert.ok((await trace.rows()).every((row) => !row.includes("Watched")));
    await eventuallyEqual(() => debug.console(), "torch.Size([3, 3])");
  });
});
