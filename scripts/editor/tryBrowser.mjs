/**
 * Shows a page with text in the browser that is named, as the editor's are shown. Whoever starts
 * this sees by the exit code whether it can, and why not by the last line.
 */
import { chromium } from "playwright-core";

import { BROWSER_OPTIONS } from "./browser.mjs";

const [executablePath = "", milliseconds] = process.argv.slice(2);

try {
  const browser = await chromium.launch({
    executablePath,
    args: BROWSER_OPTIONS,
    timeout: Number(milliseconds),
  });
  const page = await browser.newPage();
  await page.setContent("<b>text</b>");
  const box = await page.locator("b").boundingBox();
  await page.screenshot();
  if (!box?.width) {
    throw new Error("it draws no text");
  }
  await browser.close();
  process.exit(0);
} catch (error) {
  const [line] = error instanceof Error ? error.message.split("\n") : [error];
  console.log(line);
  process.exit(1);
}
