/** The README as VS Code's extension page can show it, where files beside it are out of reach. */
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";

const IMAGE = /!\[([^\]]*)\]\(([^)\s]+)\)/g;
const HTML_IMAGE = /(<img[^>]*\ssrc=")([^"]+)(")/g;
const LINK = /(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g;

const MEDIA_TYPES = /** @type {Record<string, string>} */ ({
  ".jpg": "image/jpeg",
  ".png": "image/png",
  ".webp": "image/webp",
});

/**
 * Markdown whose images are part of it and whose links lead outside or nowhere.
 *
 * @param {string} markdown
 * @param {string} folder where its relative paths begin
 * @returns {string}
 */
export function inlineImages(markdown, folder) {
  const embed = (/** @type {string} */ path) => (isRelative(path) ? dataUri(folder, path) : path);
  return replaceAll(
    replaceAll(
      replaceAll(markdown, IMAGE, ([, text, path]) => `![${text}](${embed(path)})`),
      HTML_IMAGE,
      ([, before, path, after]) => before + embed(path) + after,
    ),
    LINK,
    ([all, text, path]) => (isRelative(path) ? text : all),
  );
}

/**
 * @param {string} text
 * @param {RegExp} pattern
 * @param {(match: [string, string, string, string]) => string} replacement
 */
function replaceAll(text, pattern, replacement) {
  return text.replace(pattern, (all, ...groups) => {
    const [first = "", second = "", third = ""] = groups.map(String);
    return replacement([all, first, second, third]);
  });
}

/** @param {string} path */
function isRelative(path) {
  return !/^(?:\w+:|#)/.test(path);
}

/**
 * @param {string} folder
 * @param {string} path
 */
function dataUri(folder, path) {
  const type = MEDIA_TYPES[extname(path).toLowerCase()];
  if (type === undefined) {
    throw new Error(`README.md shows ${path}, which is no image that can be embedded`);
  }
  return `data:${type};base64,${readFileSync(join(folder, path)).toString("base64")}`;
}
