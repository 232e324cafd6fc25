/** Paths as settings have them. */

/** Replaces `${workspaceFolder}`, `${userHome}`, `${env:NAME}` and a leading `~`. */
export function expandVariables(
  path: string,
  folder: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const home = environment["HOME"] ?? environment["USERPROFILE"] ?? "~";
  return path
    .replace(/^~(?=$|[\\/])/, home)
    .replaceAll("${userHome}", home)
    .replaceAll("${workspaceFolder}", folder ?? "${workspaceFolder}")
    .replace(/\$\{env:([^}]+)\}/g, (_, name: string) => environment[name] ?? "");
}

/** The last part of a path of either kind. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}
