/** Where the parts of the extension are, and where this window keeps its files. No `vscode`. */
import { join } from "node:path";

export interface Folders {
  /** What programs get on their PYTHONPATH. */
  readonly backend: string;
  /** What the language server needs besides. */
  readonly serverLibraries: string;
  /** The bundled debugger. */
  readonly debugpy: string;
  /** The stand-in for the debugger's launcher, and what is run in programs that are attached to. */
  readonly launcher: string;
  /** Byte code of the server, for all windows. */
  readonly bytecode: string;
  /** What this window keeps until it closes. */
  readonly storage: string;
  /** What all windows keep. */
  readonly windows: string;
}

/** The folders of an installed extension, for one window. */
export function foldersOf(extension: string, storage: string, window: string): Folders {
  return {
    backend: join(extension, "python_backend"),
    serverLibraries: join(extension, "python_libraries", "server"),
    debugpy: join(extension, "python_libraries", "debugpy", "debugpy"),
    launcher: join(extension, "extension", "launcher"),
    bytecode: join(storage, "bytecode"),
    storage: join(storage, "windows", window),
    windows: join(storage, "windows"),
  };
}
