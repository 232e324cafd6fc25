import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

/** Files by their paths in a folder; what is not text is written as JSON. */
export type Files = Readonly<Record<string, unknown>>;

/** A new folder with these files. */
export class Folder {
  readonly path: string;
  readonly #parent: string;

  constructor(files: Files, name = "project") {
    this.#parent = realpathSync(mkdtempSync(join(tmpdir(), "shapetrace-folder-")));
    this.path = join(this.#parent, name);
    mkdirSync(this.path);
    this.write(files);
  }

  write(files: Files): void {
    writeFiles(this.path, files);
  }

  /** Removes all that is in it. */
  clear(): void {
    for (const name of readdirSync(this.path)) {
      rmSync(join(this.path, name), { recursive: true, force: true, maxRetries: 5 });
    }
  }

  file(name: string): string {
    return resolve(this.path, name);
  }

  remove(): void {
    rmSync(this.#parent, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A launch.json with these configurations. */
export function launchConfigurations(...configurations: readonly object[]): Files {
  return { ".vscode/launch.json": { version: "0.2.0", configurations } };
}

/** Writes files into a folder that exists. */
export function writeFiles(folder: string, files: Files): void {
  for (const [name, content] of Object.entries(files)) {
    const file = resolve(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    const isText = typeof content === "string";
    writeFileSync(file, isText ? content : JSON.stringify(content, undefined, 2));
  }
}
