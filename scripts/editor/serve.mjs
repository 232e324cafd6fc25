/** Runs an installed editor: a server on a free port of this machine, with folders of its own. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { ENDING_SIGNALS, exitCodeAfter, processesWith, readProcess } from "../processes.mjs";
import { Failure } from "../setup.mjs";

/** In the environment of all that a server starts, so that nothing of it is left behind. */
const MARK = "SHAPETRACE_EDITOR_RUN";

const START_SECONDS = 60;
const STOP_SECONDS = 5;

/** Settings that keep the editor from talking about itself. */
const CALM_SETTINGS = {
  "chat.disableAIFeatures": true,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "git.openRepositoryInParentFolders": "never",
  "security.workspace.trust.enabled": false,
  "remote.autoForwardPorts": false,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
};

/**
 * @typedef {Record<string, unknown>} Settings
 * @typedef {object} Options
 * @property {readonly string[]} [extensions] VSIX files to install
 * @property {Settings} [settings] the user's settings, on top of those that calm the editor
 * @property {NodeJS.ProcessEnv} [environment] what the editor's own environment has more
 * @property {boolean} [trust] whether folders are trusted without asking (the default)
 */

/** A running editor. */
export class Server {
  /** @type {import("node:child_process").ChildProcess | undefined} */
  #process;
  #address = "";
  #output = "";
  #mark = randomUUID();
  /** @type {Settings} */
  #settings = {};
  #removeAtExit = () => {
    this.#remove();
  };

  /**
   * @param {import("./install.mjs").Editor} editor
   * @param {Options} options
   */
  constructor(editor, options) {
    this.editor = editor;
    this.options = options;
    /** Where the editor keeps what is its own; also its home folder. */
    this.home = mkdtempSync(join(tmpdir(), "shapetrace-editor-"));
    this.userData = join(this.home, "data");
    this.extensions = join(this.home, "extensions");
    process.on("exit", this.#removeAtExit);
    for (const signal of ENDING_SIGNALS) {
      process.off(signal, exitAfter).on(signal, exitAfter);
    }
    this.writeUserSettings();
    this.writeSettings({});
  }

  /** The output of the server and its extension host. */
  get output() {
    return this.#output;
  }

  /**
   * The settings as they are now. One that was taken back is undefined.
   *
   * @returns {Settings}
   */
  get settings() {
    return this.#settings;
  }

  /** Installs the extensions, starts, and returns once the editor answers. */
  async start() {
    try {
      await this.#start();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  async #start() {
    if (this.options.extensions?.length) {
      const install = this.options.extensions.flatMap((file) => ["--install-extension", file]);
      const code = await this.#ended(this.#spawn([...install, "--force"]));
      if (code !== 0) {
        throw new Failure(`the editor could not install the extension:\n${this.#output}`);
      }
    }
    const server = this.#spawn([
      ...["--auth", "none", "--bind-addr", "127.0.0.1:0"],
      ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
      ...(this.options.trust === false ? [] : ["--disable-workspace-trust"]),
    ]);
    this.#process = server;
    this.#address = await new Promise((resolve, reject) => {
      const giveUp = (/** @type {string} */ why) => {
        reject(new Failure(`the editor did not start: ${why}\n${this.#output}`));
      };
      const deadline = setTimeout(giveUp, START_SECONDS * 1000, `${START_SECONDS} s have passed`);
      server.once("exit", (code) => {
        clearTimeout(deadline);
        giveUp(`it ended with exit code ${code}`);
      });
      server.stdout.on("data", () => {
        const address = /HTTP server listening on (http:\S+)/.exec(this.#output)?.[1];
        if (address !== undefined) {
          clearTimeout(deadline);
          resolve(address.replace(/\/$/, ""));
        }
      });
    });
  }

  /**
   * The address that opens a folder or, if its name ends so, a `.code-workspace` file.
   *
   * @param {string} path
   */
  address(path) {
    const kind = path.endsWith(".code-workspace") ? "workspace" : "folder";
    return `${this.#address}/?${kind}=${encodeURIComponent(path).replaceAll("%2F", "/")}`;
  }

  /** Writes the settings of the user, which a window reads when it is opened. */
  writeUserSettings() {
    this.#write("User", this.#first);
  }

  /**
   * Replaces the settings of the machine, which stand above the user's; a running editor takes them
   * up by itself.
   *
   * @param {Settings} settings
   */
  writeSettings(settings) {
    const all = { ...this.#first, ...settings };
    const former = Object.keys(this.#settings).map((key) => [key, undefined]);
    this.#settings = { ...Object.fromEntries(former), ...all };
    this.#write("Machine", all);
  }

  /** Those that are never taken back. */
  get #first() {
    const trust = this.options.trust === false && { "security.workspace.trust.enabled": true };
    return { ...CALM_SETTINGS, ...trust, ...this.options.settings };
  }

  /**
   * @param {"User" | "Machine"} kind
   * @param {Settings} settings
   */
  #write(kind, settings) {
    const file = join(this.userData, kind, "settings.json");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify(settings, undefined, 2));
  }

  /**
   * The processes that the editor has started and whose command line matches.
   *
   * @param {RegExp} pattern
   * @returns {number[]}
   */
  processes(pattern) {
    return this.#all().filter((id) => pattern.test(commandLine(id)));
  }

  /**
   * Fails once the server ends by itself.
   *
   * @returns {Promise<never>}
   */
  async ended() {
    const code = this.#process && (await this.#ended(this.#process));
    throw new Failure(`the editor ended with exit code ${code}:\n${this.#output}`);
  }

  /** Ends the server and all that it started, and removes its folders. */
  async stop() {
    const server = this.#process;
    if (server?.exitCode === null && server.signalCode === null) {
      server.kill();
      const force = setTimeout(() => server.kill("SIGKILL"), STOP_SECONDS * 1000);
      await this.#ended(server);
      clearTimeout(force);
    }
    this.#remove();
  }

  /** Kills what is left of the server, and removes its folders. */
  #remove() {
    for (const id of this.#all()) {
      try {
        process.kill(id, "SIGKILL");
      } catch {
        // It has ended by itself.
      }
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
    process.off("exit", this.#removeAtExit);
  }

  #all() {
    return processesWith({ [MARK]: this.#mark });
  }

  /** @param {readonly string[]} options */
  #spawn(options) {
    const folders = ["--user-data-dir", this.userData, "--extensions-dir", this.extensions];
    const own = Object.entries(process.env).filter(([key]) => !/^(npm_|VSCODE_)/.test(key));
    const child = spawn(this.editor.node, [this.editor.entry, ...folders, ...options], {
      cwd: this.home,
      env: {
        ...Object.fromEntries(own),
        HOME: this.home,
        XDG_CACHE_HOME: join(this.home, ".cache"),
        XDG_CONFIG_HOME: join(this.home, ".config"),
        XDG_DATA_HOME: join(this.home, ".local", "share"),
        ...this.options.environment,
        [MARK]: this.#mark,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (/** @type {string} */ text) => (this.#output += text));
    }
    return child;
  }

  /**
   * @param {import("node:child_process").ChildProcess} child
   * @returns {Promise<number | null>}
   */
  #ended(child) {
    return new Promise((resolve, reject) => {
      child.once("close", resolve);
      child.once("error", (error) => {
        reject(new Failure(`cannot run the editor: ${error.message}`));
      });
    });
  }
}

/** @param {number} id */
function commandLine(id) {
  return readProcess(id, "cmdline").replaceAll("\0", " ").trim();
}

/** @param {NodeJS.Signals} signal */
function exitAfter(signal) {
  process.exit(exitCodeAfter(signal));
}
