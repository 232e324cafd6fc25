import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as passed } from "node:timers/promises";

import { type Browser, chromium } from "playwright-core";

import { BROWSER_OPTIONS, installBrowser } from "../../../../scripts/editor/browser.mjs";
import { installEditor } from "../../../../scripts/editor/install.mjs";
import { Server } from "../../../../scripts/editor/serve.mjs";
import { Failure, PYTHON, ROOT } from "../../../../scripts/setup.mjs";
import { keepEvidence } from "./evidence";
import { type Files, writeFiles } from "./folder";
import { inOrder, ORDER } from "./order";
import { installResetExtension } from "./resetting";
import { type Fixture, type WindowOptions, Windows } from "./windows";

export type { Fixture } from "./windows";

const EDITORS = ["newest", "oldest"] as const;
type EditorName = (typeof EDITORS)[number];
type Settings = Readonly<Record<string, unknown>>;

export interface SuiteOptions {
  readonly trust?: boolean;
  readonly environment?: NodeJS.ProcessEnv;
  /** What is in the editor's home folder. */
  readonly home?: Files;
}

export interface TestOptions extends WindowOptions {
  /**
   * Whether it also runs in the oldest editor if none is named: one test for each part of VS Code
   * that is used. The compiler knows nothing but the oldest one's interface.
   */
  readonly inOldest?: boolean;
}

type TestBody = (fixture: Fixture) => Promise<void>;
export type EditorTest = (title: string, options: TestOptions, body: TestBody) => void;

const TEST_SECONDS = 180;

/** What makes the editor predictable to type into and to read. */
const TEST_SETTINGS: Settings = {
  // As the first one of a window does by itself.
  "debug.internalConsoleOptions": "openOnSessionStart",
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
  "security.workspace.trust.startupPrompt": "never",
  "shapetrace.interpreter": PYTHON,
  "terminal.integrated.gpuAcceleration": "off",
  "window.confirmBeforeClose": "never",
  // A file has its cursor where it has it in a new window.
  "workbench.editor.restoreViewState": false,
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
    const chosen = inOrder(tests.filter((test) => runsIn(name, test.options)));
    if (chosen.length === 0) {
      continue;
    }
    const order = ORDER === undefined ? "" : `, order ${ORDER}`;
    describe(`${title} (${name} editor${order})`, () => {
      let windows: Windows | undefined;
      before(async () => {
        windows = await editor(name, options);
      });
      for (const { title, options: testOptions, body } of chosen) {
        test(title, async (context) => {
          assert.ok(windows, "the editor is there");
          const fixture = windows.take(testOptions, (text) => {
            context.diagnostic(text);
          });
          await inWindow(windows, `${name} ${title}`, fixture.then(body));
        });
      }
    });
  }
}

/** What runs, by what it was started with. All suites of a process share it. */
const running = new Map<string, Running>();

interface Running {
  readonly browser: Browser;
  readonly server: Server;
  readonly windows: Windows;
}

after(async () => {
  for (const { browser, server, windows } of running.values()) {
    await windows.close();
    await browser.close();
    await server.stop();
  }
});

async function editor(name: EditorName, options: SuiteOptions): Promise<Windows> {
  const key = JSON.stringify([name, options]);
  const found = running.get(key);
  if (found !== undefined) {
    return found.windows;
  }
  const browser = await launchBrowser();
  const server = new Server(installEditor(name), {
    extensions: [packagedExtension()],
    settings: TEST_SETTINGS,
    ...(options.trust !== undefined && { trust: options.trust }),
    environment: { OMP_NUM_THREADS: "1", ...options.environment },
  });
  const windows = new Windows(server, browser);
  running.set(key, { browser, server, windows });
  writeFiles(server.home, options.home ?? {});
  installResetExtension(server);
  await server.start();
  return windows;
}

/** Waits for a test that runs in a window, and keeps what may tell why it failed. */
async function inWindow(windows: Windows, title: string, ended: Promise<void>): Promise<void> {
  const timer = new AbortController();
  let hasFailed = false;
  try {
    await Promise.race([
      ended,
      passed(TEST_SECONDS * 1000, undefined, { signal: timer.signal }).then(() => {
        throw new Failure(`the test has not ended within ${TEST_SECONDS} s`);
      }),
    ]);
  } catch (error) {
    hasFailed = true;
    const evidence = await keepEvidence(title, windows.server, windows.workbench);
    if (error instanceof Error) {
      error.message += `\n(see ${evidence})`;
    }
    throw error;
  } finally {
    timer.abort();
    await windows.release(hasFailed);
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
