/**
 * `npm run build`: the extension as one file, extension/dist/extension.js.
 *
 * `npm run watch` builds it for debugging, with a source map, and again at each change.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { main, ROOT, setUp } from "./setup.mjs";

const FOLDER = join(ROOT, "extension", "dist");

const OPTIONS = /** @satisfies {import("esbuild").BuildOptions} */ ({
  entryPoints: [join(ROOT, "extension", "src", "extension.ts")],
  outfile: join(FOLDER, "extension.js"),
  bundle: true,
  external: ["vscode"],
  format: "cjs",
  platform: "node",
  target: "node20",
  keepNames: true,
  legalComments: "linked",
  absWorkingDir: ROOT,
});

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
  buildSync({ ...OPTIONS, minify: true, logLevel: "warning" });
}

/**
 * Builds it at each change until it is ended. The task in `.vscode` waits for these lines.
 *
 * @returns {Promise<never>}
 */
async function watch() {
  const { context } = await import("esbuild");
  rmSync(FOLDER, { recursive: true, force: true });
  const building = await context({
    ...OPTIONS,
    sourcemap: "linked",
    logLevel: "error",
    plugins: [
      {
        name: "progress",
        setup(build) {
          build.onStart(() => {
            console.log("build: began");
          });
          build.onEnd(({ errors }) => {
            console.log(`build: ended, ${errors.length} errors`);
          });
        },
      },
    ],
  });
  await building.watch();
  return new Promise(() => {
    // Ended by a signal.
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(async () => {
    setUp();
    if (process.argv.includes("--watch")) {
      const { fetchLibraries } = await import("./package.mjs");
      fetchLibraries();
      return watch();
    }
    await buildExtension();
    return 0;
  });
}
