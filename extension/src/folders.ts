/** Where the parts of the extension are, and where this window keeps its files. No `vscode`. */
import { join } from "node:path";

export interface Folders {
  /** The folder for the PYTHONPATH of programs. */
  readonly backend: string;
  /** The libraries of the language server. */
  readonly serverLibraries: string;
  /** The bundled debugger. */
  readonly debugpy: string;
  /** The stand-in for the debugger's launcher, and the code for programs that are attached to. */
  readonly launcher: string;
  /** Byte code of the server, for all windows. */
  readonly bytecode: string;
  /** The storage of this window, until it closes. */
  readonly storage: string;
  /** The storage of all windows. */
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
