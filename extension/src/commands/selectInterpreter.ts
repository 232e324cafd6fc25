import {
  ConfigurationTarget,
  extensions,
  type QuickPickItem,
  QuickPickItemKind,
  Uri,
  window,
  workspace,
} from "vscode";

import { folderOf } from "../client/interpreters";
import { hasTorch } from "../client/python";
import type { Context } from "../context";
import { SECTION } from "../contributions";
import { type Asked, isSupported, OLDEST_PYTHON } from "../model/interpreters";

interface Item extends QuickPickItem {
  /** The setting's value; null to ask for a file, undefined for what cannot be chosen. */
  readonly value?: string | null;
}

/** Chooses the Python, and keeps the choice in the setting. */
export async function selectInterpreter(context: Context): Promise<void> {
  if (!workspace.isTrusted) {
    await context.messages.untrusted();
    return;
  }
  const scope = window.activeTextEditor?.document.uri;
  const chosen = await window.showQuickPick(itemsOf(context, scope), {
    title: "Python for Shapetrace",
    placeHolder: `Python ${OLDEST_PYTHON.join(".")} or newer, with the packages of your program`,
    matchOnDescription: true,
  });
  const value = chosen?.value === null ? await browse() : chosen?.value;
  if (value === undefined) {
    return;
  }
  const target =
    folderOf(scope) === undefined ? ConfigurationTarget.Global : ConfigurationTarget.Workspace;
  const stored = value === "" ? undefined : value;
  await workspace.getConfiguration(SECTION, scope ?? null).update("interpreter", stored, target);
}

async function itemsOf({ config, interpreters }: Context, scope: Uri | undefined): Promise<Item[]> {
  const candidates = await interpreters.all(scope);
  const items = await Promise.all(
    candidates.map(async (candidate) => {
      const asked = await interpreters.ask(candidate);
      return "version" in asked ? [await itemOf(asked)] : [];
    }),
  );
  const automatic: Item = {
    label: "$(sync) Choose automatically",
    detail: hasPythonExtension()
      ? "The interpreter chosen in the Python extension"
      : "A .venv in the folder, otherwise python3 on the PATH",
    value: "",
  };
  return [
    ...items.flat(),
    { label: "", kind: QuickPickItemKind.Separator },
    ...(config.get("interpreter", scope) === "" ? [] : [automatic]),
    { label: "$(folder-opened) Browse...", detail: "Choose a Python executable", value: null },
  ];
}

async function itemOf({ candidate, version }: Extract<Asked, { readonly version: unknown }>) {
  const [path, ...options] = candidate.command;
  const oldest = OLDEST_PYTHON.join(".");
  const isOld = !isSupported(version);
  const lacksTorch = !isOld && !(await hasTorch(candidate.command, {}));
  const lack = isOld ? `too old: ${oldest} or newer is needed` : lacksTorch ? "no PyTorch" : "";
  const icon = lack === "" ? "$(symbol-namespace)" : "$(warning)";
  const item: Item = {
    label: `${icon} Python ${version.join(".")}`,
    description: [[path, ...options].join(" "), lack].filter(Boolean).join(" — "),
    // A command with options of its own cannot be a setting: the launcher of Windows.
    ...(options.length === 0 ? { value: path } : {}),
  };
  return item;
}

async function browse(): Promise<string | undefined> {
  const files = await window.showOpenDialog({ title: "Python", openLabel: "Use This Python" });
  return files?.map((file: Uri) => file.fsPath)[0];
}

function hasPythonExtension(): boolean {
  return extensions.getExtension("ms-python.python") !== undefined;
}
