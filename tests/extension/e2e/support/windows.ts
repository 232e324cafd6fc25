import { isDeepStrictEqual } from "node:util";

import type { Browser, BrowserContext } from "playwright-core";

import type { Server } from "../../../../scripts/editor/serve.mjs";
import { type Files, Folder } from "./folder";
import { reset, takesUp } from "./resetting";
import { Workbench } from "./workbench";

export interface Fixture {
  readonly workbench: Workbench;
  readonly folder: Folder;
  readonly server: Server;
}

export interface WindowOptions {
  readonly files: Files;
  readonly settings?: Readonly<Record<string, unknown>>;
  /**
   * Records a trace for tests that look at it. It is done once for all those that follow each other,
   * name it here and have equal files.
   */
  readonly recorded?: (fixture: Fixture) => Promise<void>;
  /** Whether the test adds to that trace or clears it, so that the next one needs another. */
  readonly changesTrace?: boolean;
  /** Whether the test needs a window in which nothing has been done. */
  readonly ownWindow?: boolean;
  /** The folder's name, and what of it is opened if not the folder itself: in a window of its own. */
  readonly folder?: string;
  readonly open?: string;
}

interface Open extends Fixture {
  readonly context: BrowserContext;
  /** Those of the test that uses it, or has used it last. */
  options: WindowOptions;
}

/** The window in which tests run one after another until one fails, and those for a single test. */
export class Windows {
  readonly server: Server;
  readonly #browser: Browser;
  #shared: Open | undefined;
  #current: Open | undefined;

  constructor(server: Server, browser: Browser) {
    this.server = server;
    this.#browser = browser;
  }

  /** The window that a test uses. */
  get workbench(): Workbench | undefined {
    return this.#current?.workbench;
  }

  /** A window for a test, as new with its files and settings. */
  async take(options: WindowOptions, report: (text: string) => void): Promise<Fixture> {
    if (!isShared(options)) {
      this.#current = await this.#open(options);
      await options.recorded?.(this.#current);
      return this.#current;
    }
    const former = this.#shared;
    const keepsTrace = former !== undefined && canKeepTrace(former.options, options);
    const shared = (this.#shared ??= await this.#open(options));
    this.#current = shared;
    const { server, folder } = shared;
    const { files, settings = {}, recorded } = options;
    if (former !== undefined) {
      try {
        await reset(shared.workbench, folder, keepsTrace);
      } catch (error) {
        // What one test leaves behind is no failure of the next.
        report(`a new window is opened, as this one cannot be reset: ${String(error)}`);
        await this.close();
        return this.take(options, report);
      }
      if (!keepsTrace) {
        folder.clear();
      }
      folder.write(files);
    }
    shared.options = options;
    server.writeSettings(settings);
    await takesUp(server, folder, files);
    if (!keepsTrace) {
      await recorded?.(shared);
    }
    return shared;
  }

  /** Takes a window back after a test. One in which a test has failed is not used again. */
  async release(hasFailed: boolean): Promise<void> {
    const current = this.#current;
    this.#current = undefined;
    if (current !== undefined && (hasFailed || current !== this.#shared)) {
      this.#shared = current === this.#shared ? undefined : this.#shared;
      await close(current);
    }
  }

  /** Closes the window that tests share. */
  async close(): Promise<void> {
    const shared = this.#shared;
    this.#shared = undefined;
    if (shared !== undefined) {
      await close(shared);
    }
  }

  async #open(options: WindowOptions): Promise<Open> {
    const { server } = this;
    const folder = new Folder(options.files, options.folder);
    server.writeUserSettings();
    server.writeSettings(options.settings ?? {});
    const context = await this.#browser.newContext({ viewport: { width: 1300, height: 1400 } });
    const address = server.address(folder.file(options.open ?? "."));
    const workbench = await Workbench.open(context, address);
    return { workbench, folder, server, context, options };
  }
}

async function close({ workbench, context, folder }: Open): Promise<void> {
  await workbench.close();
  await context.close();
  folder.remove();
}

function isShared({ ownWindow = false, folder, open }: WindowOptions): boolean {
  return !ownWindow && folder === undefined && open === undefined;
}

/** Whether a test can go on with the trace that the one before it has had. */
function canKeepTrace(before: WindowOptions, after: WindowOptions): boolean {
  return (
    after.recorded !== undefined &&
    after.recorded === before.recorded &&
    before.changesTrace !== true &&
    isDeepStrictEqual(after.files, before.files)
  );
}
