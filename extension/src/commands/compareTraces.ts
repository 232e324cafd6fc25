import { ProgressLocation, type QuickPickItem, type Uri, window, workspace } from "vscode";

import { COMPARE } from "../protocol.generated";
import type { Context } from "../context";
import { sideNames } from "../model/comparison";

interface Source extends QuickPickItem {
  readonly isRecorded: boolean;
}

const RECORDED: Source = {
  label: "$(pulse) This Session's Trace and a File...",
  detail: "The last recording of this window is A",
  isRecorded: true,
};

const FILES: Source = {
  label: "$(files) Two Trace Files...",
  detail: "Written by `shapetrace run -o FILE` or Export Trace",
  isRecorded: false,
};

/** Asks for two traces, and opens them side by side at the first difference. */
export async function compareTraces(context: Context): Promise<void> {
  if (!workspace.isTrusted) {
    await context.messages.untrusted();
    return;
  }
  const pair = await askForTraces(context);
  if (pair === undefined) {
    return;
  }
  const [a, b] = pair;
  const compared = await window.withProgress(
    { location: ProgressLocation.Notification, title: "Comparing the traces" },
    () => context.server.request(COMPARE, { a, b }),
  );
  await context.comparisons.show(compared, sideNames(a, b));
  void context.messages.compared(compared.summary, compared.differences.length > 0);
}

async function askForTraces({
  sessions,
}: Context): Promise<readonly [string | null, string | null] | undefined> {
  const source = sessions.hasTrace
    ? await window.showQuickPick([RECORDED, FILES], { title: "Compare Traces" })
    : FILES;
  if (source === undefined) {
    return undefined;
  }
  if (source.isRecorded) {
    const [file] = (await askForFiles("Compare This Session's Trace with", false)) ?? [];
    return file === undefined ? undefined : [null, file.fsPath];
  }
  const [first, second] = (await askForFiles("Compare Traces: A", true)) ?? [];
  if (first === undefined || second !== undefined) {
    return first && second && [first.fsPath, second.fsPath];
  }
  const [other] = (await askForFiles("Compare Traces: B", false)) ?? [];
  return other === undefined ? undefined : [first.fsPath, other.fsPath];
}

async function askForFiles(title: string, canSelectMany: boolean): Promise<Uri[] | undefined> {
  const folder = workspace.workspaceFolders?.[0]?.uri;
  return window.showOpenDialog({
    title,
    openLabel: "Compare",
    canSelectMany,
    filters: { "Trace Files": ["json"], "All Files": ["*"] },
    ...(folder && { defaultUri: folder }),
  });
}
