/**
 * The browser that shows an editor: a Chromium of this machine, or else one from npm, which needs
 * no installation. It draws with fonts from npm, with which every machine's pictures look alike and
 * without which one that has no fonts shows no text.
 */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";

import { Failure } from "../setup.mjs";
import { EDITORS, installed, isGnuLinux, npmInstall } from "./folders.mjs";

/**
 * @typedef {{ executablePath: string, env: Record<string, string> }} Browser what Playwright starts
 */

const CHROMIUM = { package: "@sparticuz/chromium", version: "153.0.0" };
const FONTS = { package: "dejavu-fonts-ttf", version: "2.37.3" };

/** Which of the fonts stands for a kind. */
const FAMILIES = {
  monospace: "DejaVu Sans Mono",
  "sans-serif": "DejaVu Sans",
  serif: "DejaVu Serif",
  "system-ui": "DejaVu Sans",
};

/** The names of Chromium and its relatives on PATH. */
const NAMES = [
  ...["chromium", "chromium-browser", "chrome"],
  ...["google-chrome", "google-chrome-stable", "google-chrome-beta", "google-chrome-unstable"],
  ...["chromium-headless-shell", "chrome-headless-shell", "headless_shell", "ungoogled-chromium"],
  ...["microsoft-edge", "microsoft-edge-stable", "brave-browser", "brave", "vivaldi"],
];

/** Where programs are that PATH may not name. */
const FOLDERS = [
  ...["/usr/local/bin", "/usr/bin", "/bin", "/snap/bin"],
  ...["/usr/lib/chromium", "/usr/lib64/chromium-browser", "/opt/google/chrome"],
  ...["/opt/chromium.org/chromium", "/opt/microsoft/msedge", "/opt/brave.com/brave"],
];

/** Flatpak's names are those of the applications. */
const FLATPAKS = ["org.chromium.Chromium", "com.google.Chrome", "com.brave.Browser"].flatMap(
  (name) =>
    ["/var/lib/flatpak", join(homedir(), ".local", "share", "flatpak")].map((folder) =>
      join(folder, "exports", "bin", name),
    ),
);

/** The arguments of browsers that show editors. */
export const BROWSER_OPTIONS = [
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-quic",
  "--disable-sync",
  "--no-first-run",
  "--no-sandbox",
];

const TRIAL_SECONDS = 60;

/** Where it is remembered that a browser has shown a page. */
const TRIED = join(EDITORS, "browsers-that-run.json");

/** Whether a browser can be had here: one of this machine's, or the one from npm. */
export function canHaveBrowser() {
  return candidates().length > 0 || hasPackage();
}

/**
 * A browser that shows pages, installed now if there is none yet.
 *
 * @returns {Browser}
 */
export function installBrowser() {
  const chosen = process.env["SHAPETRACE_CHROMIUM"];
  const fonts = installFonts();
  const refused = [];
  for (const file of candidates()) {
    const browser = { executablePath: file, env: { ...environment(), ...fonts } };
    const problem = problemWith(browser);
    if (problem === undefined) {
      return browser;
    }
    refused.push(`${file} shows no page: ${problem}`);
  }
  const reasons = refused.length === 0 ? "" : ` (${refused.join("; ")})`;
  if (chosen) {
    throw new Failure(
      `SHAPETRACE_CHROMIUM=${chosen} is no Chromium that runs here${reasons}; name another, or unset it`,
    );
  }
  if (!hasPackage()) {
    throw new Failure(
      `no Chromium that runs here was found${reasons}; install one (Debian: apt-get install chromium), or name it in SHAPETRACE_CHROMIUM`,
    );
  }
  const folder = installPackage();
  const browser = {
    executablePath: join(folder, "chromium"),
    env: {
      ...environment(),
      ...fonts,
      LD_LIBRARY_PATH: [process.env["LD_LIBRARY_PATH"], join(folder, "lib")]
        .filter(Boolean)
        .join(delimiter),
    },
  };
  const problem = problemWith(browser);
  if (problem !== undefined) {
    throw new Failure(
      `the Chromium of npm's ${CHROMIUM.package} does not run here (${problem}); install one (Debian: apt-get install chromium), or name it in SHAPETRACE_CHROMIUM`,
    );
  }
  return browser;
}

/** The browsers of this machine, or the one that SHAPETRACE_CHROMIUM names. */
function candidates() {
  const chosen = process.env["SHAPETRACE_CHROMIUM"];
  if (chosen) {
    if (!existsSync(chosen)) {
      throw new Failure(`SHAPETRACE_CHROMIUM=${chosen} does not exist; name another, or unset it`);
    }
    return [chosen];
  }
  const folders = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...FOLDERS];
  const files = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return [...new Set([...files, ...FLATPAKS])].filter(isFile);
}

/** The package has one for these machines only. */
function hasPackage() {
  return isGnuLinux() && process.arch === "x64";
}

/** @returns {string} its folder */
function installPackage() {
  return installed(`chromium-${CHROMIUM.version}`, (folder) => {
    console.log(`browser: installing Chromium ${CHROMIUM.version} (70 MB, half a minute)`);
    const files = join(npmInstall(folder, CHROMIUM), "bin");
    const unpacked = (/** @type {string} */ name) =>
      brotliDecompressSync(readFileSync(join(files, name)));
    writeFileSync(join(folder, "chromium"), unpacked("chromium.br"), { mode: 0o755 });
    // Libraries that a machine without a desktop lacks.
    const result = spawnSync("tar", ["-x", "-C", folder], { input: unpacked("al2023.tar.br") });
    if (result.status !== 0) {
      throw new Failure(
        `cannot unpack Chromium: ${result.error?.message ?? String(result.stderr)}`,
      );
    }
    rmSync(join(folder, "node_modules"), { recursive: true });
  });
}

/** Fonts for a browser, as a part of its environment. */
function installFonts() {
  const folder = installed(`fonts-dejavu-${FONTS.version}`, (unfinished) => {
    const fonts = join(npmInstall(unfinished, FONTS), "ttf");
    writeFileSync(
      join(unfinished, "fonts.conf"),
      `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">${fonts.slice(unfinished.length + 1)}</dir>
  <match target="pattern">
    <test qual="all" name="family" compare="not_eq"><string>serif</string></test>
    <test qual="all" name="family" compare="not_eq"><string>monospace</string></test>
    <edit name="family" mode="append_last"><string>sans-serif</string></edit>
  </match>
${Object.entries(FAMILIES)
  .map(
    ([name, font]) =>
      `  <alias binding="same"><family>${name}</family><prefer><family>${font}</family></prefer></alias>\n`,
  )
  .join("")}</fontconfig>
`,
    );
  });
  return { FONTCONFIG_FILE: join(folder, "fonts.conf") };
}

/**
 * Shows a page with text once, and returns why that fails.
 *
 * @param {Browser} browser
 * @returns {string | undefined}
 */
function problemWith({ executablePath, env }) {
  const { mtimeMs, size } = statSync(executablePath);
  const trial = [realpathSync(executablePath), mtimeMs, size].join(" ");
  const tried = readTried();
  if (tried.includes(trial)) {
    return undefined;
  }
  const script = fileURLToPath(new URL("tryBrowser.mjs", import.meta.url));
  const milliseconds = TRIAL_SECONDS * 1000;
  const result = spawnSync(process.execPath, [script, executablePath, String(milliseconds)], {
    env,
    encoding: "utf8",
    timeout: 2 * milliseconds,
  });
  if (result.status !== 0) {
    return (result.error?.message ?? result.stdout.trim()) || `exit code ${result.status}`;
  }
  mkdirSync(EDITORS, { recursive: true });
  writeFileSync(TRIED, JSON.stringify([...tried, trial]));
  return undefined;
}

/** @returns {string[]} */
function readTried() {
  try {
    /** @type {string[]} */
    const tried = JSON.parse(readFileSync(TRIED, "utf8"));
    return tried;
  } catch {
    return []; // Nothing has been tried yet.
  }
}

function environment() {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, value]],
    ),
  );
}

/** @param {string} file */
function isFile(file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true;
}
