/** Folders that are not trusted, and several folders in one window. */
import assert from "node:assert/strict";

import { sourceOf, TRAINING } from "./support/programs";
import { inEditors } from "./support/suite";
import { eventuallyEqual } from "./support/waiting";

const TRACE = "Shapetrace: Trace Forward Pass";

const FINDS_DATA = `\
import pathlib

import torch

rows = len(pathlib.Path("rows.txt").read_text())
outputs = torch.nn.Linear(4, 2)(torch.randn(rows, 4))«f32[5,2]»
print(outputs.shape)
`;

inEditors("A workspace of several folders", {}, (test) => {
  test(
    "programs run in their own folders, and each file has its hints",
    {
      files: {
        "both.code-workspace": { folders: [{ path: "first" }, { path: "second folder" }] },
        "first/train.py": sourceOf(TRAINING),
        "second folder/data.py": sourceOf(FINDS_DATA),
        "second folder/rows.txt": "12345",
      },
      open: "both.code-workspace",
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("first/train.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
      await workbench.debug.waitUntilEnded();
      await workbench.openFile(folder.file("second folder/data.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), FINDS_DATA);
      await workbench.debug.waitUntilEnded();
      await workbench.openFile(folder.file("first/train.py"));
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
    },
  );
});

inEditors("A folder that is not trusted", { trust: false }, (test) => {
  test(
    "nothing is run in it until it is trusted",
    {
      files: { "train.py": sourceOf(TRAINING) },
      ownWindow: true,
    },
    async ({ workbench, folder, server }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      const message = await workbench.notification("is not trusted");
      assert.match(message, /\[Manage Workspace Trust\]/);
      assert.deepEqual(server.processes(/python/), []);
      await workbench.pressInNotification("Manage Workspace Trust");
      await workbench.trustFolder();
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
    },
  );
});
