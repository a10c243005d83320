"""Figures in fewer bytes: the same picture, without what matplotlib writes for itself.

What is drawn stays to a hundredth of a point.  Pixels come in millions of colours, of which a
drawing has few: 256 make the PNGs of the site a third (6 MB become 2 MB).  Shorter names and shared
styles would take another tenth off a packed SVG, 2 kB for each page, for 120 lines of code.
"""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

from companion.site import results

NUMBER = re.compile(r"-?\d+\.\d+")
ASIDE = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
PLACES = re.compile(r'(?<= d=")[^"]*|(?<= [xy]=")[^"]*')


def _short(number: re.Match[str]) -> str:
    """A decimal number to hundredths, without zeros that say nothing."""
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def path_data(data: str) -> str:
    """The data of a path on one line, numbers to hundredths, each command once in a row.

    >>> path_data("M 49.02 255.00 \\nL 287.03 255.00 \\nL 287.034 -0.00 \\nz\\n")
    'M49.02 255L287.03 255 287.03 0z'
    """
    words: list[str] = []
    command = ""
    for word in NUMBER.sub(_short, data).split():
        if not word.isalpha():
            words.append(word if words and words[-1].isalpha() else f" {word}")
        elif word != command or word not in "LQC":
            words.append(word)
            command = word
    return "".join(words).strip()


def slimmed(drawing: bytes) -> bytes:
    """A drawing, as matplotlib writes it, in fewer bytes."""
    text = PLACES.sub(lambda data: path_data(data[0]), ASIDE.sub("", drawing.decode()))
    return re.sub(r"\n\s*", "\n", text).encode()


def palette(picture: bytes) -> bytes:
    """A PNG file with 256 colours: a drawing has few, and blends of them."""
    target = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as image:
        see_through = image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255)
        method = Image.Quantize.FASTOCTREE if see_through else Image.Quantize.MEDIANCUT
        full = image if see_through else image.convert("RGB")
        small = full.quantize(256, method=method, dither=Image.Dither.NONE)
        small.save(target, "PNG", optimize=True, dpi=image.info.get("dpi", (72, 72)))
    return target.getvalue()


def _finish(app: Sphinx, exception: Exception | None) -> None:
    """Write the figures of the site anew."""
    if exception is not None or app.builder.name != "html":
        return

    def rewrite(path: Path) -> None:
        make = slimmed if path.suffix == ".svg" else palette
        path.write_bytes(make(path.read_bytes()))

    folder = Path(app.outdir) / results.STATIC / "figures"
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(rewrite, [*folder.glob("*.svg"), *folder.glob("*.png")]))


def connect(app: Sphinx) -> None:
    """Hook into the end of the build."""
    app.connect("build-finished", _finish)
