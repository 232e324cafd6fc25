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
import type { Context } from "../context";
import { SECTION } from "../contributions";
import { type Asked, isSupported, OLDEST_PYTHON } from "../model/interpreters";

interface Item extends QuickPickItem {
  /** The setting's value; null to ask for a file, undefined for what cannot be chosen. */
  readonly value?: string | null;
}

/** Chooses the Python, and keeps the choice in the setting. */
export async function selectInterpreter({ interpreters, config }: Context): Promise<void> {
  const scope = window.activeTextEditor?.document.uri;
  const candidates = await interpreters.all(scope);
  const asked = await Promise.all(candidates.map((candidate) => interpreters.ask(candidate)));
  const setting = config.get("interpreter", scope);
  const chosen = await window.showQuickPick(itemsOf(asked, setting), {
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

function itemsOf(asked: readonly Asked[], setting: string): Item[] {
  const items = asked.flatMap((each) => ("version" in each ? [itemOf(each)] : []));
  const automatic: Item = {
    label: "$(sync) Choose automatically",
    detail: hasPythonExtension()
      ? "The one that is chosen in the Python extension"
      : "A .venv in the folder, otherwise python3 on the PATH",
    value: "",
  };
  return [
    ...items,
    { label: "", kind: QuickPickItemKind.Separator },
    ...(setting === "" ? [] : [automatic]),
    { label: "$(folder-opened) Browse...", detail: "Choose a Python executable", value: null },
  ];
}

function itemOf({ candidate, version }: Extract<Asked, { readonly version: unknown }>): Item {
  const [path, ...options] = candidate.command;
  const isOld = !isSupported(version);
  return {
    label: `$(${isOld ? "warning" : "symbol-namespace"}) Python ${version.join(".")}`,
    description: [path, ...options].join(" "),
    ...(isOld ? { detail: `Too old: ${OLDEST_PYTHON.join(".")} or newer is needed` } : {}),
    // A command with options of its own cannot be a setting: the launcher of Windows.
    ...(options.length === 0 ? { value: path } : {}),
  };
}

async function browse(): Promise<string | undefined> {
  const files = await window.showOpenDialog({ title: "Python", openLabel: "Use This Python" });
  return files?.map((file: Uri) => file.fsPath)[0];
}

function hasPythonExtension(): boolean {
  return extensions.getExtension("ms-python.python") !== undefined;
}
