"""Drawings in fewer bytes: the same picture, without what matplotlib writes for itself.

Vector figures come with a style for every marker, names that nothing refers to, and one line for
each corner.  What is drawn stays to a hundredth of a point.
"""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterator

from lxml import etree

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
    words, last = [], ""
    for word in NUMBER.sub(lambda m: _short(m[0]), data).split():
        if word == last and word in "LQC":
            words.append(" ")
        elif word.isalpha():
            words.append(word)
        else:
            words.append(word if words and words[-1][-1:].isalpha() else f" {word}")
        last = word if word.isalpha() else last
    return "".join(words).replace("  ", " ")


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
    classes = {
        style: next(names) for style, count in counts.most_common() if count >= GROUPS_FROM
    }
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
