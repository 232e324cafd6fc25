/** The picture of a histogram, as an address that holds it. */

/** Heights of equal parts of a range; 100 for the highest. */
export type Heights = readonly number[];

/** Visible on light and dark backgrounds. */
const COLOR = "#4c9be8";

const BASELINE = "#8a8a8a";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The size of the picture beside a node of a tree. */
export const ICON: Size = { width: 16, height: 16 };

/** The size of the picture in a tooltip. */
export const PICTURE: Size = { width: 256, height: 64 };

/** An SVG image of the bars: a part that holds anything at all is seen. */
export function histogramImage(heights: Heights, size: Size): string {
  const width = size.width / Math.max(heights.length, 1);
  const top = size.height - 1;
  const bars = heights.map((height, index) => {
    const tall = height === 0 ? 0 : Math.max((height / 100) * top, 1);
    // Bars of an icon touch each other; in a picture there is room between them.
    const gap = width > 4 ? 1 : 0;
    return tall === 0
      ? ""
      : `<rect x="${round(index * width)}" y="${round(top - tall)}" ` +
          `width="${round(width - gap)}" height="${round(tall)}"/>`;
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" ` +
    `viewBox="0 0 ${size.width} ${size.height}"><g fill="${COLOR}">${bars.join("")}</g>` +
    `<rect y="${top}" width="${size.width}" height="1" fill="${BASELINE}"/></svg>`
  );
}

/** Returns the picture as a data URI. */
export function histogramAddress(heights: Heights, size: Size): string {
  const image = Buffer.from(histogramImage(heights, size), "utf8").toString("base64");
  return `data:image/svg+xml;base64,${image}`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
