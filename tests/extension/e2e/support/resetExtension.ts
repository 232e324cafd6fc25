/**
 * Runs in the editor's extension host, beside Shapetrace: puts a window back to how it was when it was
 * opened, and tells of its settings. Tests ask over a socket beside the folder that is open.
 */
import { createServer } from "node:http";
import { dirname, join } from "node:path";

import {
  commands,
  debug,
  type DebugSession,
  type ExtensionContext,
  extensions,
  window,
  workspace,
} from "vscode";

import { type Answer, type Question, SOCKET } from "./resetProtocol";

/**
 * Has Shapetrace forget what it has recorded and what the user has chosen. VS Code goes on to know
 * which rows of the tree were open and selected.
 */
const FORGET = [
  "shapetrace.stopCapturingAll",
  "shapetrace.stopWatchingAll",
  "shapetrace.clearHints",
];

/** Has it show again all of what it has recorded. */
const SHOW_ALL = ["shapetrace.unpinCall", "shapetrace.clearFilter", "shapetrace.followCursor"];

const TIDY = [
  "workbench.debug.viewlet.action.removeAllWatchExpressions",
  "workbench.debug.panel.action.clearReplAction",
  "workbench.action.closePanel",
  "workbench.view.explorer",
  "notifications.clearAll",
];

const sessions = new Set<DebugSession>();

export function activate({ subscriptions }: ExtensionContext): void {
  const [folder, ...others] = workspace.workspaceFolders ?? [];
  if (folder === undefined || others.length > 0) {
    return; // Such windows are not shared.
  }
  subscriptions.push(
    debug.onDidStartDebugSession((session) => sessions.add(session)),
    debug.onDidTerminateDebugSession((session) => sessions.delete(session)),
  );
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (data: string) => (text += data));
    request.on("end", () => {
      answer(JSON.parse(text) as Question).then(
        (found) => response.end(JSON.stringify(found)),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  });
  server.listen(join(dirname(folder.uri.fsPath), SOCKET));
  subscriptions.push({ dispose: () => server.close() });
}

async function answer(question: Question): Promise<Answer> {
  switch (question.kind) {
    case "reset":
      await reset(question.keepsTrace);
      return {};
    case "configuration": {
      const { keys } = question;
      const launch = workspace.getConfiguration("launch").inspect("configurations");
      return {
        settings: Object.fromEntries(
          keys.map((key) => [key, workspace.getConfiguration().inspect(key)?.globalValue]),
        ),
        launch: launch?.workspaceValue,
      };
    }
  }
}

async function reset(keepsTrace: boolean): Promise<void> {
  await endSessions();
  debug.removeBreakpoints(debug.breakpoints);
  while (window.tabGroups.all.some(({ tabs }) => tabs.length > 0)) {
    // Closing alone would ask what to do with changes.
    await commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
  }
  for (const terminal of window.terminals) {
    terminal.dispose();
  }
  const isActive = extensions.getExtension("shapetrace.shapetrace")?.isActive === true;
  const ours = isActive ? [...SHOW_ALL, ...(keepsTrace ? [] : FORGET)] : [];
  for (const command of [...ours, ...TIDY]) {
    await commands.executeCommand(command);
  }
}

async function endSessions(): Promise<void> {
  if (sessions.size === 0) {
    return;
  }
  const ended = new Promise<void>((resolve) => {
    const subscription = debug.onDidTerminateDebugSession(() => {
      if (sessions.size === 0) {
        subscription.dispose();
        resolve();
      }
    });
  });
  await debug.stopDebugging();
  await ended;
}
