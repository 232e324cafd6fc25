/** The launch configurations that Trace Forward Pass can run. */
import { type DebugConfiguration, workspace, type WorkspaceFolder } from "vscode";

import { isTraceable } from "../model/target";

/** A launch configuration, and the folder whose launch.json has it. */
export interface FoundConfiguration {
  readonly configuration: DebugConfiguration;
  readonly folder: WorkspaceFolder | undefined;
}

/** Every launch configuration that starts a Python program. */
export function configurationsOfWorkspace(): FoundConfiguration[] {
  const folders: readonly (WorkspaceFolder | undefined)[] = workspace.workspaceFolders ?? [
    undefined,
  ];
  return folders.flatMap((folder) => {
    const found: unknown = workspace
      .getConfiguration("launch", folder?.uri ?? null)
      .get("configurations");
    const configurations: readonly unknown[] = Array.isArray(found) ? found : [];
    return configurations
      .filter((each): each is DebugConfiguration => typeof each === "object" && each !== null)
      .filter(isTraceable)
      .map((configuration) => ({ configuration, folder }));
  });
}
