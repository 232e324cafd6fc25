import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";

import { listFiles, PackageManager } from "@vscode/vsce";

import { extensionPage, stageExtension } from "../../../scripts/package.mjs";
import { BUNDLED_PAGES, forExtensionPage } from "../../../scripts/readme.mjs";
import { ROOT } from "../../../scripts/setup.mjs";

/** Every place in the VSIX, and what may be there. */
const PARTS = [
  /^(package\.json|README\.md|CHANGELOG\.md|LICENSE)$/,
  /^extension\/dist\/extension\.js(\.LEGAL\.txt)?$/,
  /^extension\/media\/(icon\.png|trace\.svg)$/,
  /^extension\/media\/walkthrough\/[\w.]+\.(md|png|svg)$/,
  /^extension\/launcher\/(__main__|enter)\.py$/,
  /^python_backend\/pydevd_plugins\/(\w+\/)*\w+\.py$/,
  /^python_backend\/shapetrace\/(\w+\/)*(\w+\.py|py\.typed)$/,
  /^python_libraries\/(server|debugpy)\/.*$/,
];

const NEEDED = [
  "package.json",
  "LICENSE",
  "extension/media/icon.png",
  "extension/media/trace.svg",
  "extension/launcher/__main__.py",
  "extension/launcher/enter.py",
  "python_backend/pydevd_plugins/extensions/pydevd_plugin_shapetrace.py",
  "python_backend/shapetrace/__init__.py",
  "python_backend/shapetrace/server/__main__.py",
];

describe("the VSIX", () => {
  const folder = mkdtempSync(join(tmpdir(), "shapetrace-package-"));
  after(() => {
    rmSync(folder, { recursive: true });
  });
  const listing = (() => {
    stageExtension(folder);
    return listFiles({ cwd: folder, packageManager: PackageManager.None });
  })();

  test("holds what is listed here, and nothing else", async () => {
    const files = await listing;
    const strangers = files.filter((file) => !PARTS.some((part) => part.test(file)));
    assert.deepEqual(strangers, []);
    assert.deepEqual(
      NEEDED.filter((file) => !files.includes(file)),
      [],
    );
  });

  test("has no byte code, no sources of compiled code and no build products", async () => {
    const unwanted = /__pycache__|\.(?:pyc|pyx|pdb|c|cpp|map|ts)$/;
    assert.deepEqual(
      (await listing).filter((file) => unwanted.test(file)),
      [],
    );
  });
});

describe("the README on the extension's page", () => {
  test("has no pictures that lie beside it", () => {
    const text = 'a\n\n![Hints](docs/shot.png)\n\n<img width="600" src="shot.png">\n\nb';
    assert.equal(forExtensionPage(text), "a\n\nb");
    const both = "a <picture>\n<source srcset='dark.png'>\n<img src=\"light.png\">\n</picture> b";
    assert.equal(forExtensionPage(both), "a  b");
  });

  test("keeps pictures from the web", () => {
    const text = '![Hints](https://example.org/a.png) <img src="https://example.org/b.png">';
    assert.equal(forExtensionPage(text), text);
  });

  test("keeps links that lead outside, and the text of those that do not", () => {
    const text = "[site](https://example.org) [part](#part) [docs](docs/benchmarks.md)";
    assert.equal(forExtensionPage(text), "[site](https://example.org) [part](#part) docs");
  });

  test("has the pages of docs/ below it, and links to them lead there", () => {
    const readme = "# A\n\n[b](docs/b.md) [part](docs/b.md#part) [c](docs/c.md)\n";
    const page = [
      "# The B-side, twice\n\n![Shot](shot.png)\n\n[b](b.md) [A](../README.md)\n",
      "```sh\n# no heading\n```\n\n## Part\n",
    ];
    assert.equal(
      forExtensionPage(readme, new Map([["b.md", page.join("\n")]])),
      "# A\n\n[b](#the-b-side-twice) [part](#part) c\n\n" +
        "## The B-side, twice\n\n[b](#the-b-side-twice) A\n\n" +
        "```sh\n# no heading\n```\n\n### Part\n",
    );
  });

  test("can be made of the real README and docs", () => {
    const page = extensionPage();
    assert.ok(page.startsWith("# Shapetrace\n"));
    assert.ok(!/\]\((?!https:|#)|src="(?!https:)/.test(page));
    assert.deepEqual(page.match(/^# .*$/gm)?.length, 1);
  });

  test("has no two headings of one name, as links would lead to the first", () => {
    const text = extensionPage().replace(/^```[^]*?^```$/gm, "");
    const headings = (text.match(/^#+ .*$/gm) ?? []).map((line) => line.replace(/^#+ /, ""));
    assert.deepEqual(
      headings.filter((heading, position) => headings.indexOf(heading) !== position),
      [],
    );
  });

  test("has every page that the README lists, but for measurements", () => {
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const listed = [...readme.matchAll(/^\| \[[^\]]+\]\(docs\/([^)]+)\)/gm)].map(
      ([, name]) => name,
    );
    const measurements = ["reliability.md", "benchmarks.md"];
    assert.deepEqual(listed, [...BUNDLED_PAGES, ...measurements]);
  });
});
