import { join } from "node:path";

import { commands, type QuickPickItem, Uri, window, workspace } from "vscode";

import type { Context } from "../context";
import { Command } from "../contributions";
import { EXPORT, type ExportFormat } from "../protocol.generated";

interface Form extends QuickPickItem {
  readonly format: ExportFormat;
  readonly extension: string;
}

const FORMS: readonly Form[] = [
  {
    format: "json",
    extension: "json",
    label: "JSON",
    detail: "The trace file: everything, for `shapetrace show` and programs",
  },
  {
    format: "markdown",
    extension: "md",
    label: "Markdown",
    detail: "A report to paste into an issue",
  },
  {
    format: "tree",
    extension: "txt",
    label: "Tree",
    detail: "Nested modules with their calls",
  },
  {
    format: "listing",
    extension: "txt",
    label: "Listing",
    detail: "The source lines, each with its calls",
  },
];

/** Writes the newest trace to a file. */
export async function exportTrace({ messages, server, sessions }: Context): Promise<void> {
  if (!sessions.hasTrace) {
    await offerTrace();
    return;
  }
  const form = await window.showQuickPick(FORMS, { title: "Export Trace", placeHolder: "Format" });
  const target = form && (await askWhere(form));
  if (form === undefined || target === undefined) {
    return;
  }
  const result = await server.request(EXPORT, {
    path: target.fsPath,
    session: null,
    format: form.format,
  });
  if (result.ops === 0 && result.modules === 0) {
    await messages.warn("Nothing was exported: the trace is empty.");
    return;
  }
  const open = "Open";
  const text = `Exported ${result.ops} calls of ${result.modules} modules.`;
  if ((await window.showInformationMessage(text, open)) === open) {
    await window.showTextDocument(Uri.file(result.path));
  }
}

async function askWhere({ extension, label }: Form): Promise<Uri | undefined> {
  const folder = workspace.workspaceFolders?.[0]?.uri;
  return window.showSaveDialog({
    title: `Export Trace as ${label}`,
    filters: { [label]: [extension] },
    ...(folder && { defaultUri: Uri.file(join(folder.fsPath, `trace.${extension}`)) }),
  });
}

async function offerTrace(): Promise<void> {
  const trace = "Trace Forward Pass";
  const text = "There is no trace to export yet.";
  if ((await window.showInformationMessage(text, trace)) === trace) {
    await commands.executeCommand(Command.traceForwardPass);
  }
}
