/**
 * The README as VS Code's extension page can show it.
 *
 * That page shows pictures only from the web: neither files of the extension nor data inside the
 * text. So they are left out there, and the walkthrough has one instead.
 */

const PICTURE = /<picture>.*?<\/picture>/gs;
const IMAGE = /!\[[^\]]*\]\(([^)\s]+)\)|<img\b[^>]*\bsrc="([^"]+)"[^>]*>/g;
const LINK = /(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g;

/**
 * Markdown without what lies in files beside it: pictures are gone, links are plain text.
 *
 * @param {string} markdown
 * @returns {string}
 */
export function forExtensionPage(markdown) {
  return markdown
    .replace(PICTURE, "")
    .replace(IMAGE, (all, /** @type {string} */ path, /** @type {string} */ source) =>
      isRelative(path || source) ? "" : all,
    )
    .replace(LINK, (all, /** @type {string} */ text, /** @type {string} */ path) =>
      isRelative(path) ? text : all,
    )
    .replace(/\n(?:[ \t]*\n){2,}/g, "\n\n");
}

/** @param {string} path */
function isRelative(path) {
  return !/^(?:\w+:|#)/.test(path);
}
