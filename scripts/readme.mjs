/**
 * The README as VS Code's extension page can show it.
 *
 * The project has no public address that links could lead to, and the page shows pictures only from
 * the web. So pictures are left out, and the pages of `docs/` on how to use Shapetrace follow
 * below the README, where links to them lead.
 */

/** The pages of `docs/` that the extension's page has in it, in the order of the README's list. */
export const BUNDLED_PAGES = [
  ...["editor.md", "debugging.md", "command-line.md", "library.md", "capturing.md"],
  ...["comparing.md", "watching.md", "limits.md", "supported.md"],
];

const PICTURE = /<picture>.*?<\/picture>/gs;
const IMAGE = /!\[[^\]]*\]\(([^)\s]+)\)|<img\b[^>]*\bsrc="([^"]+)"[^>]*>/g;
const LINK = /(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g;
const HEADING = /^#+ (.+)$/m;
const CODE_OR_HEADING = /^(```|~~~)[^]*?^\1$|^#/gm;

/**
 * One Markdown text of the README and pages of `docs/`, without what lies in files beside it:
 * pictures are gone, links to one of the pages lead to its heading, other links are plain text.
 *
 * @param {string} readme
 * @param {Map<string, string>} [pages] Markdown by the name of the file in `docs/`
 * @returns {string}
 */
export function forExtensionPage(readme, pages = new Map()) {
  const anchors = new Map(
    [...pages].map(([name, page]) => [name, anchorOf(HEADING.exec(page)?.[1] ?? "")]),
  );
  return [readme, ...[...pages.values()].map(demoted)]
    .map((text) => withoutFiles(text, anchors))
    .join("\n");
}

/**
 * @param {string} markdown
 * @param {Map<string, string>} anchors
 */
function withoutFiles(markdown, anchors) {
  return markdown
    .replace(PICTURE, "")
    .replace(IMAGE, (all, /** @type {string} */ path, /** @type {string} */ source) =>
      isRelative(path || source) ? "" : all,
    )
    .replace(LINK, (all, /** @type {string} */ text, /** @type {string} */ path) => {
      if (!isRelative(path)) {
        return all;
      }
      const [file = "", part] = path.split("#");
      const anchor = anchors.get(file.replace(/^docs\//, ""));
      return anchor === undefined ? text : `[${text}](#${part ?? anchor})`;
    })
    .replace(/\n(?:[ \t]*\n){2,}/g, "\n\n");
}

/**
 * A page whose headings are one level below those of the README.
 *
 * @param {string} page
 */
function demoted(page) {
  return page.replace(CODE_OR_HEADING, (found) => (found === "#" ? "##" : found));
}

/**
 * The anchor that a heading gets.
 *
 * @param {string} heading
 */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** @param {string} path */
function isRelative(path) {
  return !/^(?:\w+:|#)/.test(path);
}
