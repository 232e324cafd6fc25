"""Draws the extension's icon: a tensor between the brackets of its shape."""

import math
from pathlib import Path

from PIL import Image, ImageDraw

SIZE = 256
OVERSAMPLING = 8
TARGET = Path(__file__).parents[1] / "extension" / "media" / "icon.png"

BACKGROUND_TOP = (46, 50, 82)
BACKGROUND_BOTTOM = (20, 21, 36)
BRACKET = (238, 240, 250)
FACES = {"top": (255, 178, 132), "left": (240, 92, 52), "right": (186, 52, 34)}
GRID = (20, 21, 36)

Point = tuple[float, float]


def background() -> Image.Image:
    """A rounded square that darkens downwards."""
    side = SIZE * OVERSAMPLING
    gradient = Image.new("RGB", (1, side))
    for row in range(side):
        part = row / (side - 1)
        gradient.putpixel(
            (0, row),
            tuple(
                round(top + (bottom - top) * part)
                for top, bottom in zip(BACKGROUND_TOP, BACKGROUND_BOTTOM, strict=True)
            ),
        )
    image = gradient.resize((side, side)).convert("RGBA")
    mask = Image.new("L", (side, side), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, side - 1, side - 1), radius=side * 0.22, fill=255)
    image.putalpha(mask)
    return image


def scaled(points: list[Point]) -> list[Point]:
    """Points of the 256-pixel drawing on the oversampled one."""
    return [(x * OVERSAMPLING, y * OVERSAMPLING) for x, y in points]


def draw_line(draw: ImageDraw.ImageDraw, points: list[Point], width: float, colour: object) -> None:
    """A line with round ends and corners."""
    thick = width * OVERSAMPLING
    path = scaled(points)
    draw.line(path, fill=colour, width=round(thick))  # type: ignore[arg-type]
    for x, y in path:
        corners = (x - thick / 2, y - thick / 2, x + thick / 2, y + thick / 2)
        draw.ellipse(corners, fill=colour)  # type: ignore[arg-type]


def draw_brackets(draw: ImageDraw.ImageDraw) -> None:
    """The square brackets that enclose a shape."""
    for outer, inner in ((44.0, 70.0), (212.0, 186.0)):
        draw_line(draw, [(inner, 52), (outer, 52), (outer, 204), (inner, 204)], 15, BRACKET)


def draw_cube(draw: ImageDraw.ImageDraw) -> None:
    """A cube of two by two by two elements, seen from a corner."""
    middle: Point = (128, 128)
    edge = 60.0
    half_width = edge * math.cos(math.pi / 6)
    right: Point = (half_width, edge / 2)
    left: Point = (-half_width, edge / 2)
    down: Point = (0, edge)

    def at(origin: Point, *steps: tuple[float, Point]) -> Point:
        return (
            origin[0] + sum(share * step[0] for share, step in steps),
            origin[1] + sum(share * step[1] for share, step in steps),
        )

    top_corner = (middle[0], middle[1] - edge)
    corners = {
        "top": (top_corner, right, left),
        "left": (at(top_corner, (1, left)), right, down),
        "right": (at(top_corner, (1, right)), left, down),
    }
    for name, (origin, across, along) in corners.items():
        face = [
            origin,
            at(origin, (1, across)),
            at(origin, (1, across), (1, along)),
            at(origin, (1, along)),
        ]
        draw.polygon(scaled(face), fill=FACES[name])
    for origin, across, along in corners.values():
        for share, width in ((0.0, 5.0), (0.5, 3.0), (1.0, 5.0)):
            for one, other in ((across, along), (along, across)):
                start = at(origin, (share, one))
                draw_line(draw, [start, at(start, (1, other))], width, GRID)


def main() -> None:
    """Writes the icon."""
    image = background()
    draw = ImageDraw.Draw(image)
    draw_cube(draw)
    draw_brackets(draw)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    small = image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)
    small.save(TARGET, optimize=True)


if __name__ == "__main__":
    main()
