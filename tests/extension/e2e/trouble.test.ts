/** What is said, and what still works, where something is missing or breaks. */
import assert from "node:assert/strict";

import { launchConfigurations } from "./support/folder";
import { makeEnvironment, sourceOf, TRAINING } from "./support/programs";
import { inEditors } from "./support/suite";
import { eventually, eventuallyEqual, eventuallyMatches } from "./support/waiting";

const TRACE = "Shapetrace: Trace Forward Pass";
const FILES = { "train.py": sourceOf(TRAINING) };
const SERVER = /shapetrace\.server.*--stdio/;

const RUNS_ON = `\
import time

import torch

linear = torch.nn.Linear(4, 8)
while True:
    outputs = linear(torch.randn(3, 4))«f32[3,8]»
    time.sleep(0.05)
`;

inEditors("In trouble", {}, (test) => {
  const firstUse = { files: FILES, ownWindow: true };
  test("a Python without torch", firstUse, async ({ workbench, folder, server }) => {
    const { python } = makeEnvironment(folder.file("bare"));
    server.writeSettings({ "shapetrace.interpreter": python });
    await workbench.openFile(folder.file("train.py"));
    await workbench.run(TRACE);
    const message = await workbench.notification("PyTorch is not installed");
    assert.ok(message.includes(python), message);
    assert.match(message, /\[Select Interpreter\]/);
    assert.equal(await workbench.debug.isRunning(), false);
  });

  test(
    "a setting that names no Python",
    { ...firstUse, settings: { "shapetrace.interpreter": "/nowhere/python" } },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      const message = await workbench.notification("/nowhere/python");
      assert.match(message, /from the setting shapetrace\.interpreter\) does not run/);
      assert.match(message, /\[Select Interpreter\]/);
    },
  );

  test(
    "a program whose Python leaves the agent out",
    {
      files: {
        ...FILES,
        ...launchConfigurations({
          name: "Isolated",
          type: "shapetrace",
          request: "launch",
          program: "${file}",
          pythonArgs: ["-E"],
          console: "internalConsole",
        }),
      },
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await workbench.notification(/No shapes from Isolated: Python runs with -E/);
    },
  );

  test(
    "a server that is killed comes back, with the hints of a finished run",
    {
      files: FILES,
    },
    async ({ workbench, folder, server }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      await eventuallyEqual(() => workbench.code.text(), TRAINING);
      await workbench.debug.waitUntilEnded();
      const killed = killServer(server.processes(SERVER));
      await eventually(
        "another server runs",
        () => server.processes(SERVER),
        (ids) => ids.length === 1 && !ids.includes(killed),
      );
      // Only a server that lives can move hints.
      await workbench.code.goTo(1);
      await workbench.code.press("Enter");
      await eventuallyEqual(() => workbench.code.text(), `\n${TRAINING}`);
      assert.deepEqual(await workbench.notifications(), []);
    },
  );

  test(
    "a server that is killed while a program runs hears of it again",
    {
      files: {
        "train.py": sourceOf(RUNS_ON),
        ...launchConfigurations({
          name: "Runs on",
          type: "shapetrace",
          request: "launch",
          program: "${file}",
          console: "internalConsole",
        }),
      },
    },
    async ({ workbench, folder, server }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.debug.start();
      await eventuallyEqual(() => workbench.code.text(), RUNS_ON);
      const killed = killServer(server.processes(SERVER));
      await eventually(
        "another server runs",
        () => server.processes(SERVER),
        (ids) => ids.length === 1 && !ids.includes(killed),
      );
      await workbench.code.goTo(1);
      await workbench.code.press("Enter");
      await eventuallyEqual(() => workbench.code.text(), `\n${RUNS_ON}`);
      assert.equal(await workbench.debug.isRunning(), true);
      await workbench.debug.stop();
      await workbench.debug.waitUntilEnded();
    },
  );

  test("a server that is restarted by hand", { files: FILES }, async ({ workbench, folder }) => {
    await workbench.openFile(folder.file("train.py"));
    await workbench.run(TRACE);
    await eventuallyEqual(() => workbench.code.text(), TRAINING);
    await workbench.debug.waitUntilEnded();
    await workbench.run("Shapetrace: Restart Language Server");
    await workbench.notification("has been restarted");
    await workbench.code.goTo(1);
    await workbench.code.press("Enter");
    await eventuallyEqual(() => workbench.code.text(), `\n${TRAINING}`);
  });
});

/** What a login shell adds to the PATH counts as well. */
const WITHOUT_PATH = {
  environment: { PATH: "/nowhere", SHELL: "/bin/bash" },
  home: { ".bash_profile": "PATH=/nowhere\n" },
};

inEditors("On a machine without Python", WITHOUT_PATH, (test) => {
  test(
    "Trace Forward Pass and F5 say what is missing",
    {
      files: {
        ...FILES,
        ...launchConfigurations({
          name: "Train",
          type: "debugpy",
          request: "launch",
          program: "${file}",
        }),
      },
      settings: { "shapetrace.interpreter": "" },
      ownWindow: true,
    },
    async ({ workbench, folder }) => {
      await workbench.openFile(folder.file("train.py"));
      await workbench.run(TRACE);
      assert.match(await workbench.notification("No Python was found"), /\[Select Interpreter\]/);
      await workbench.closeNotifications();
      await workbench.debug.start();
      await eventuallyMatches(
        "what is shown",
        async () => [...(await workbench.notifications()), await workbench.dialog()].join("\n"),
        /No Python was found/,
      );
    },
  );
});

function killServer(ids: readonly number[]): number {
  const [id] = ids;
  assert.ok(id !== undefined && ids.length === 1, `one server runs, not ${ids.length}`);
  process.kill(id, "SIGKILL");
  return id;
}
