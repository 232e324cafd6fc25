import { readFile } from "node:fs/promises";

import { type QuickPickItem, QuickPickItemKind, type Uri, window, workspace } from "vscode";

import type { Context } from "../context";
import { trace } from "../debug/trace";
import { configurationsOfWorkspace } from "../debug/workspaceConfigurations";
import { hasEntryPoint } from "../model/entryPoint";
import { describeTarget, isSameTarget, type Target } from "../model/target";

/** The most Python files of a folder that are searched for an entry point. */
const MOST_FILES = 300;

/** Folders whose Python files are not the user's own. */
const FOREIGN = "**/{.*,node_modules,site-packages,__pycache__,venv,env,build,dist}/**";

type Choice = Target | "askForModule" | "askForFile";

interface Item extends QuickPickItem {
  readonly choice?: Choice;
}

/** Asks what to run, remembers it, and traces it. */
export async function traceForwardPassOf(context: Context): Promise<void> {
  if (!workspace.isTrusted) {
    await context.messages.untrusted();
    return;
  }
  const chosen = await window.showQuickPick(itemsOf(context.memory.target), {
    title: "Trace Forward Pass of",
    placeHolder: "Which program runs the model?",
    matchOnDescription: true,
  });
  const target = await targetOf(chosen?.choice);
  if (target !== undefined) {
    await context.memory.rememberTarget(target);
    await trace(context, target);
  }
}

async function itemsOf(remembered: Target | undefined): Promise<Item[]> {
  const active = window.activeTextEditor?.document;
  const isPython = active?.languageId === "python" && active.uri.scheme === "file";
  const here: Item[] = isPython
    ? [{ ...fileItem(active.uri), description: "the file in the editor" }]
    : [];
  const configurations = configurationsOfWorkspace().map(({ configuration, folder }): Item => {
    const choice: Target = {
      kind: "configuration",
      name: configuration.name,
      folder: folder?.name ?? null,
    };
    return { label: `$(debug-alt) ${configuration.name}`, description: "launch.json", choice };
  });
  const scripts = (await scriptsOfWorkspace())
    .filter((uri) => !isPython || uri.fsPath !== active.uri.fsPath)
    .map(fileItem);
  const items = [
    ...group("launch configurations", configurations),
    ...group("programs", scripts),
    ...group("", here),
    ...group("", [
      { label: "$(package) Module...", description: "python -m", choice: "askForModule" },
      { label: "$(folder-opened) File...", choice: "askForFile" },
    ]),
  ];
  return remembered === undefined ? items : rememberedFirst(items, remembered);
}

function rememberedFirst(items: readonly Item[], remembered: Target): Item[] {
  const isIt = ({ choice }: Item) => typeof choice === "object" && isSameTarget(choice, remembered);
  const known = items.find(isIt);
  const first = known ?? { label: `$(history) ${describeTarget(remembered)}`, choice: remembered };
  return [{ ...first, detail: "last time" }, ...items.filter((item) => !isIt(item))];
}

function group(label: string, items: readonly Item[]): Item[] {
  return items.length === 0 ? [] : [{ label, kind: QuickPickItemKind.Separator }, ...items];
}

function fileItem(uri: Uri): Item {
  return {
    label: `$(file-code) ${workspace.asRelativePath(uri)}`,
    choice: { kind: "file", path: uri.fsPath },
  };
}

/** Python files that do something when they are run. */
async function scriptsOfWorkspace(): Promise<Uri[]> {
  const files = await workspace.findFiles("**/*.py", FOREIGN, MOST_FILES);
  const scripts = await Promise.all(
    files.map(async (uri) => {
      const source = await readFile(uri.fsPath, "utf8").catch(() => "");
      return hasEntryPoint(source) ? [uri] : [];
    }),
  );
  return scripts.flat().sort((one, other) => one.fsPath.localeCompare(other.fsPath));
}

async function targetOf(choice: Choice | undefined): Promise<Target | undefined> {
  switch (choice) {
    case undefined:
      return undefined;
    case "askForModule": {
      const module = await window.showInputBox({
        title: "Trace Forward Pass of a module",
        placeHolder: "package.train",
        validateInput: (text) =>
          /^\w+(\.\w+)*$/.test(text.trim())
            ? undefined
            : "The name of a module, as after python -m",
      });
      const folder = workspace.workspaceFolders?.[0]?.name ?? null;
      return module === undefined ? undefined : { kind: "module", module: module.trim(), folder };
    }
    case "askForFile": {
      const files = await window.showOpenDialog({
        title: "Trace Forward Pass of a file",
        filters: { Python: ["py"] },
      });
      const path = files?.[0]?.fsPath;
      return path === undefined ? undefined : { kind: "file", path };
    }
    default:
      return choice;
  }
}
