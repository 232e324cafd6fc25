import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { type Browser, chromium } from "playwright-core";

import { BROWSER_OPTIONS, installBrowser } from "../../../../scripts/editor/browser.mjs";
import { installEditor } from "../../../../scripts/editor/install.mjs";
import { Server } from "../../../../scripts/editor/serve.mjs";
import { Failure, PYTHON, ROOT } from "../../../../scripts/setup.mjs";
import { keepEvidence } from "./evidence";
import { type Files, Folder, writeFiles } from "./folder";
import { Workbench } from "./workbench";

const EDITORS = ["newest", "oldest"] as const;
type EditorName = (typeof EDITORS)[number];
type Settings = Readonly<Record<string, unknown>>;

export interface SuiteOptions {
  readonly trust?: boolean;
  readonly environment?: NodeJS.ProcessEnv;
  /** What is in the editor's home folder. */
  readonly home?: Files;
}

export interface TestOptions {
  /**
   * Whether it also runs in the oldest editor if none is named: one test for each part of VS Code
   * that is used. The compiler knows nothing but the oldest one's interface.
   */
  readonly inOldest?: boolean;
  readonly files: Files;
  /** The folder's name, and what of it is opened if not the folder itself. */
  readonly folder?: string;
  readonly open?: string;
  readonly settings?: Settings;
}

export interface Fixture {
  readonly workbench: Workbench;
  readonly folder: Folder;
  readonly server: Server;
}

type TestBody = (fixture: Fixture) => Promise<void>;
export type EditorTest = (title: string, options: TestOptions, body: TestBody) => void;

const TEST_MILLISECONDS = 180_000;

/** What makes the editor predictable to type into and to read. */
const TEST_SETTINGS: Settings = {
  "debug.toolBarLocation": "floating",
  "editor.autoClosingBrackets": "never",
  "editor.autoIndent": "none",
  "editor.minimap.enabled": false,
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
  "editor.stickyScroll.enabled": false,
  // What it keeps at the top lies over rows that are scrolled to, and no mouse gets there.
  "workbench.tree.enableStickyScroll": false,
  "editor.suggestOnTriggerCharacters": false,
  "files.autoSave": "off",
  "shapetrace.interpreter": PYTHON,
  "terminal.integrated.gpuAcceleration": "off",
  "window.confirmBeforeClose": "never",
};

/** The extension as `npm run package` makes it. */
export function packagedExtension(): string {
  const text = readFileSync(join(ROOT, "package.json"), "utf8");
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  const file = join(ROOT, `${name}-${version}.vsix`);
  if (!existsSync(file)) {
    throw new Failure(`${file} does not exist: run \`npm run package\` first`);
  }
  return file;
}

/** A browser that shows editors. */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({ ...installBrowser(), args: BROWSER_OPTIONS });
}

/**
 * Defines tests that run in the newest editor, and some in the oldest, or in those that
 * SHAPETRACE_EDITOR names: newest, oldest, both.
 */
export function inEditors(
  title: string,
  options: SuiteOptions,
  define: (test: EditorTest) => void,
): void {
  const tests: { title: string; options: TestOptions; body: TestBody }[] = [];
  define((title, testOptions, body) => {
    tests.push({ title, options: testOptions, body });
  });
  for (const name of EDITORS) {
    const chosen = tests.filter((test) => runsIn(name, test.options));
    if (chosen.length === 0) {
      continue;
    }
    describe(`${title} (${name} editor)`, () => {
      let browser: Browser | undefined;
      let server: Server | undefined;
      before(async () => {
        browser = await launchBrowser();
        server = new Server(installEditor(name), {
          extensions: [packagedExtension()],
          settings: TEST_SETTINGS,
          ...(options.trust !== undefined && { trust: options.trust }),
          environment: { OMP_NUM_THREADS: "1", ...options.environment },
        });
        writeFiles(server.home, options.home ?? {});
        await server.start();
      });
      after(async () => {
        await browser?.close();
        await server?.stop();
      });
      for (const { title, options: testOptions, body } of chosen) {
        test(title, { timeout: TEST_MILLISECONDS }, async () => {
          assert.ok(server && browser, "the editor is there");
          await inWindow(`${name} ${title}`, { server, browser, ...testOptions }, body);
        });
      }
    });
  }
}

async function inWindow(
  title: string,
  options: TestOptions & { server: Server; browser: Browser },
  body: (fixture: Fixture) => Promise<void>,
): Promise<void> {
  const { server, browser, files, open, settings = {} } = options;
  const folder = new Folder(files, options.folder);
  const context = await browser.newContext({ viewport: { width: 1300, height: 1400 } });
  let workbench: Workbench | undefined;
  try {
    server.writeSettings(settings);
    const address = server.address(open === undefined ? folder.path : folder.file(open));
    workbench = await Workbench.open(context, address);
    await body({ workbench, folder, server });
  } catch (error) {
    const evidence = await keepEvidence(title, server, workbench);
    if (error instanceof Error) {
      error.message += `\n(see ${evidence})`;
    }
    throw error;
  } finally {
    await workbench?.close();
    await context.close();
    folder.remove();
  }
}

function runsIn(name: EditorName, { inOldest = false }: TestOptions): boolean {
  const chosen = process.env["SHAPETRACE_EDITOR"];
  switch (chosen) {
    case undefined:
      return name === "newest" || inOldest;
    case "newest":
    case "oldest":
      return name === chosen;
    case "both":
      return true;
    default:
      throw new Failure(`SHAPETRACE_EDITOR=${chosen} is none of newest, oldest, both`);
  }
}
