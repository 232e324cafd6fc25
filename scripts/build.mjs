/** `npm run build`: the extension as one file, extension/dist/extension.js. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { main, ROOT, setUp } from "./setup.mjs";

const FOLDER = join(ROOT, "extension", "dist");

/** Bundles the extension with everything it needs, except what VS Code itself provides. */
export async function buildExtension() {
  // Not before now: the set-up may have installed it a moment ago.
  bundle(await import("esbuild"));
}

/**
 * The same, once esbuild is there.
 *
 * @param {typeof import("esbuild")} esbuild
 */
export function bundle({ buildSync }) {
  rmSync(FOLDER, { recursive: true, force: true });
  buildSync({
    entryPoints: [join(ROOT, "extension", "src", "extension.ts")],
    outfile: join(FOLDER, "extension.js"),
    bundle: true,
    external: ["vscode"],
    format: "cjs",
    platform: "node",
    target: "node20",
    minify: true,
    keepNames: true,
    legalComments: "linked",
    logLevel: "warning",
    absWorkingDir: ROOT,
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(async () => {
    setUp();
    await buildExtension();
    return 0;
  });
}
