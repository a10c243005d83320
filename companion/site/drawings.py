"""Figures in fewer bytes: the same picture, without what matplotlib writes for itself.

Vector drawings come with a style for every marker, names that nothing refers to, and one line for
each corner.  What is drawn stays to a hundredth of a point.  Pixels come in millions of colours, of
which a drawing has few.  A process beside the build does this while the build reads the pages.
"""

from __future__ import annotations

import io
import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from lxml import etree
from PIL import Image
from sphinx.application import Sphinx

from companion.site import results

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
REFERENCE = re.compile(r"url\(#([^)]+)\)")
NUMBER = re.compile(r"-?\d+\.\d+")
SPEAKS = {f"{SVG}text", f"{SVG}tspan", f"{SVG}style", f"{SVG}title", f"{SVG}desc"}
"""Elements whose white space is content."""
PLACES = {"x", "y", "width", "height"}
GROUPS_FROM = 2
"""A style that so many elements share becomes a class."""


def _names() -> Iterator[str]:
    """a, b, …, z, aa, ab, …"""
    for length in itertools.count(1):
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            yield "".join(letters)


def _short(number: str) -> str:
    """A decimal number to hundredths, without zeros that say nothing."""
    text = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def path_data(data: str) -> str:
    """The data of a path on one line, numbers to hundredths, each command once in a row.

    >>> path_data("M 49.02 255.00 \\nL 287.03 255.00 \\nL 287.034 -0.00 \\nz\\n")
    'M49.02 255L287.03 255 287.03 0z'
    """
    words: list[str] = []
    command = ""
    for word in NUMBER.sub(lambda m: _short(m[0]), data).split():
        if not word.isalpha():
            words.append(word if words and words[-1].isalpha() else f" {word}")
        elif word != command or word not in "LQC":
            words.append(word)
            command = word
    return "".join(words)


def slimmed(drawing: bytes) -> bytes:
    """A drawing in fewer bytes.

    Parameters
    ----------
    drawing
        An SVG document.

    Raises
    ------
    lxml.etree.XMLSyntaxError
        If it is none.
    """
    parser = etree.XMLParser(remove_comments=True, resolve_entities=False, no_network=True)
    root = etree.fromstring(drawing, parser)
    for meta in root.findall(f"{SVG}metadata"):
        root.remove(meta)
    _rename(root)
    _classes(root)
    for element in root.iter():
        if element.tag not in SPEAKS and not (element.text or "").strip():
            element.text = None
        if not (element.tail or "").strip():
            element.tail = None
        for name in PLACES.intersection(element.keys()):
            element.set(name, NUMBER.sub(lambda m: _short(m[0]), element.get(name)))
        if "d" in element.attrib:
            element.set("d", path_data(element.get("d")))
        if element.get("transform", "").startswith("translate("):
            head, bracket, rest = element.get("transform").partition(")")
            element.set("transform", NUMBER.sub(lambda m: _short(m[0]), head) + bracket + rest)
    _unwrap(root)
    etree.cleanup_namespaces(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + etree.tostring(root) + b"\n"


def _target(element: etree._Element) -> str:
    """Name of what an element shows again, if it does."""
    address = element.get(HREF, "")
    return address[1:] if address.startswith("#") else ""


def _rename(root: etree._Element) -> None:
    """Short names for what is referred to, none for the rest."""
    used = Counter(filter(None, map(_target, root.iter())))
    for element in root.iter():
        for value in element.attrib.values():
            used.update(REFERENCE.findall(value))
    short = dict(zip((name for name, _ in used.most_common()), _names(), strict=False))
    for element in root.iter():
        if (name := element.get("id")) is not None:
            if name in short:
                element.set("id", short[name])
            else:
                del element.attrib["id"]
        if target := _target(element):
            element.set(HREF, f"#{short[target]}")
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, REFERENCE.sub(lambda m: f"url(#{short[m[1]]})", value))


def _classes(root: etree._Element) -> None:
    """A class for each style that several elements have."""
    sheet = root.find(f".//{SVG}style")
    counts = Counter(element.get("style") for element in root.iter() if element.get("style"))
    if sheet is None or any(element.get("class") for element in root.iter()):
        return
    names = _names()
    classes = {style: next(names) for style, count in counts.most_common() if count >= GROUPS_FROM}
    for element in root.iter():
        if (style := element.get("style")) in classes:
            del element.attrib["style"]
            element.set("class", classes[style])
    rules = "".join(f".{name}{{{style.replace(': ', ':')}}}" for style, name in classes.items())
    sheet.text = (sheet.text or "") + rules


def _unwrap(root: etree._Element) -> None:
    """Groups without a property of their own give way to what they hold."""
    for group in list(root.iter(f"{SVG}g")):
        parent = group.getparent()
        if parent is not None and not group.attrib:
            place = parent.index(group)
            parent[place : place + 1] = list(group)


def palette(picture: bytes) -> bytes:
    """A picture with 256 colours, a third of the bytes: a drawing has few, and blends of them.

    Parameters
    ----------
    picture
        A PNG file.
    """
    target = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as image:
        see_through = image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255)
        method = Image.Quantize.FASTOCTREE if see_through else Image.Quantize.MEDIANCUT
        full = image if see_through else image.convert("RGB")
        small = full.quantize(256, method=method, dither=Image.Dither.NONE)
        small.save(target, "PNG", optimize=True, dpi=image.info.get("dpi", (72, 72)))
    return target.getvalue()


SMALLER = {".svg": slimmed, ".png": palette}


class Worker:
    """Makes the figures smaller while the book is built."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._made: dict[str, Future[bytes]] = {}

    def begin(self, app: Sphinx) -> None:
        """Start on all figures of the staged book."""
        folder = results.folder(app.env) / "figures"
        paths = sorted(path for path in folder.glob("*") if path.suffix in SMALLER)
        if app.builder.name in ("html", "singlehtml") and paths:
            self._pool = ProcessPoolExecutor(1)
            for path in paths:
                make = SMALLER[path.suffix]
                self._made[path.name] = self._pool.submit(make, path.read_bytes())

    def finish(self, app: Sphinx, exception: Exception | None) -> None:
        """Put what was made into the site."""
        if self._pool is None:
            return
        if exception is None:
            target = Path(app.outdir) / results.STATIC / "figures"
            for name, made in self._made.items():
                (target / name).write_bytes(made.result())
        self._pool.shutdown(cancel_futures=True)


def connect(app: Sphinx) -> None:
    """Hook into both ends of the build."""
    worker = Worker()
    app.connect("builder-inited", worker.begin)
    app.connect("build-finished", worker.finish)
