"""From each statement to the code that carries it out, on the page and in the index."""

from __future__ import annotations

from collections import Counter
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from attsvm.claims import registry
from companion.site import claims, register, results
from companion.site.maths import prose
from companion.site.register import Entry, Register
from companion.site.text import VERDICTS
from companion.site.text import anchor as box

LOGGER = logging.getLogger(__name__)
PAGE = "book/statements"
"""Where the index stands, if the book has one."""
SHOWN = 3  # functions named under a statement; the index has all


class CodeIndex(nodes.General, nodes.Element):
    """Stands where the index goes; it is filled when all labels are known."""


class CodeIndexDirective(SphinxDirective):
    """``:::{code-index}``: all numbered statements and equations with what stands behind them."""

    def run(self) -> list[nodes.Node]:
        """Note what the page depends on."""
        if of(self.env) is None:
            LOGGER.warning("there is no %s", register.FILE, location=self.get_location())
            return []
        self.env.note_dependency(str(register.FILE))
        return [CodeIndex()]


def of(env: BuildEnvironment) -> Register | None:
    """The register of the book being built, read once."""
    app: Any = env.app
    if not hasattr(app, "_companion_register"):
        app._companion_register = register.read(app.srcdir)
    return app._companion_register


def labels(env: BuildEnvironment) -> dict[str, str]:
    """Label of each statement and equation → its page."""
    found = {
        label: entry["docname"]
        for label, entry in getattr(env, "proof_list", {}).items()
        if not label.startswith(f"{entry['realtype']}-")  # those that nobody named
    }
    equations = env.domaindata["math"]["objects"]
    return found | {label: page for label, (page, _) in equations.items()}


class StatementLines(SphinxTransform):
    """Puts a line under each statement, and each equation outside of one: what carries it out."""

    default_priority = 710  # after the ids of statements are settled

    def apply(self, **_: Any) -> None:
        """Run over the page that was just read."""
        known = of(self.env)
        if known is None:
            return
        self.env.note_dependency(str(register.FILE))
        judged = results.claims(self.env)
        for node in list(self.document.findall(nodes.Element)):
            label = node.get("label")
            if not isinstance(label, str) or label not in known.entries:
                continue
            entry = known.entries[label]
            if isinstance(node, nodes.math_block):
                if _statement(node) is None and (line := self._line(entry, judged)):
                    line["classes"].append("of-equation")
                    node.parent.insert(node.parent.index(node) + 1, line)
            elif "proof" in node.get("classes", ()) and (line := self._line(entry, judged)):
                node += line

    def _line(self, entry: Entry, judged: dict[str, dict[str, Any]]) -> nodes.paragraph | None:
        if entry.only:
            return None
        line = nodes.paragraph(classes=["in-code"])
        for place, name in enumerate(entry.code[:SHOWN]):
            line += nodes.Text(", " if place else "Implemented by ")
            line += _code(name, self.env.docname)
        if rest := len(entry.code) - SHOWN:
            line += nodes.Text(f" and {rest} more" if rest > 0 else "")
        if tested := _tested(entry, judged):
            line += nodes.Text((" · t" if entry.code else "T") + "ested by ")
            line += _to_index(entry.label, tested, self.env)
        return line


def _statement(node: nodes.Node) -> nodes.Element | None:
    """The statement (theorem, definition, …; not a proof) that a node stands in."""
    parent = node.parent
    while parent is not None:
        if "proof" in parent.get("classes", ()) and parent.get("label"):
            return parent
        parent = parent.parent
    return None


def _tested(entry: Entry, judged: dict[str, dict[str, Any]]) -> str:
    """What tests a statement, counted: ``2 claims (hold) and a test``; no break within a part."""
    parts = []
    if entry.claims:
        verdicts = Counter(judged[c]["verdict"] for c in entry.claims if c in judged)
        count = len(entry.claims)
        text = "a claim" if count == 1 else f"{count} claims"
        words = [_counted(v, verdicts[v], count) for v in VERDICTS if verdicts[v]]
        parts.append(f"{text} ({', '.join(words)})" if words else text)
    if entry.tests:
        parts.append("a test" if len(entry.tests) == 1 else f"{len(entry.tests)} tests")
    return " and ".join(part.replace(" ", "\xa0") for part in parts)


def _counted(verdict: str, number: int, of: int) -> str:
    """``holds`` for one claim, ``hold`` for all of several, ``3 hold`` for some."""
    verb = {"holds": "hold", "fails": "fail"}.get(verdict, verdict) if number > 1 else verdict
    return verb if number == of else f"{number} {verb}"


def _literal(name: str) -> nodes.literal:
    """A full name as a reader of the book writes it: ``svm.solve``."""
    return nodes.literal(name, name.removeprefix("attsvm."), classes=["xref", "py"])


def _code(name: str, page: str) -> addnodes.pending_xref:
    return addnodes.pending_xref(
        "",
        _literal(name),
        refdomain="py",
        reftype="obj",
        reftarget=name,
        refdoc=page,
        refexplicit=True,
    )


def _to_index(label: str, text: str, env: BuildEnvironment) -> nodes.Node:
    if PAGE not in env.found_docs:
        return nodes.Text(text)
    inner = nodes.inline(text, text)
    return addnodes.pending_xref(
        "", inner, refdomain="companion", reftype="statement", reftarget=label,
        refdoc=env.docname, refexplicit=True, refwarn=True,
    )  # fmt: skip


def anchor(label: str) -> str:
    """The id of a label's row in the index."""
    return nodes.make_id(f"index-{label}")


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Whatever dangles is a warning, and warnings stop the build."""
    known = of(env)
    if known is None:
        return
    for problem in known.dangling(labels(env), (claim.id for claim in registry())):
        LOGGER.warning("%s: %s", register.FILE, problem)
    documented = env.domaindata["py"]["objects"]
    if not documented:
        return
    for name in dict.fromkeys(name for e in known.entries.values() for name in e.code):
        if name not in documented:
            LOGGER.warning("%s: %s is on no page of the reference", register.FILE, name)


def fill(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Write the index in the place that was kept for it."""
    for place in list(tree.findall(CodeIndex)):
        known = of(app.env)
        where = labels(app.env)
        order = {name: number for number, name in enumerate(app.env.collect_relations())}
        sections: dict[str, nodes.section] = {}
        if known is not None:
            inside = [e for e in known.entries.values() if e.label in where]
            for entry in sorted(inside, key=lambda e: order.get(where[e.label], 0)):
                folder = where[entry.label].split("/")[1]
                if folder not in sections:
                    sections[folder] = _section(app, folder)
                sections[folder][-1] += _row(app, entry, where[entry.label], page)
        place.replace_self(list(sections.values()))


def _section(app: Sphinx, folder: str) -> nodes.section:
    title = app.env.titles.get(f"book/{folder}/index")
    text = title.astext() if title is not None else folder
    section = nodes.section(
        "", nodes.title(text, text), ids=[nodes.make_id(f"statements-{folder}")]
    )
    section += nodes.container(classes=["statement-index"])
    return section


def _row(app: Sphinx, entry: Entry, target: str, page: str) -> nodes.container:
    """One label: what it is, and what stands behind it."""
    env, builder = app.env, app.builder
    row = nodes.container(classes=["statement-row"], ids=[anchor(entry.label)])
    head, identifier = _name(env, entry.label)
    link = make_refnode(builder, page, target, identifier, nodes.inline(head, head))
    chapter = env.titles[target].astext()
    row += nodes.paragraph("", "", link, nodes.inline("", f" · {chapter}", classes=["place"]))
    if entry.only:
        row += nodes.paragraph("", f"Stated only: {entry.only}.", classes=["in-code"])
        return row
    if entry.code:
        line = nodes.paragraph("", "Implemented by ", classes=["in-code"])
        objects = env.domaindata["py"]["objects"]
        for number, name in enumerate(entry.code):
            line += nodes.Text(", " if number else "")
            known, literal = objects.get(name), _literal(name)
            place = (known.docname, known.node_id) if known else None
            line += make_refnode(builder, page, *place, literal) if place else literal
        row += line
    if entry.claims:
        row += _claims(app, entry, page)
    if entry.tests:
        row += _tests(entry)
    return row


def _name(env: BuildEnvironment, label: str) -> tuple[str, str]:
    """What a label is called, and its id on its page."""
    proof = getattr(env, "proof_list", {}).get(label)
    if proof is None:
        identifier = nodes.make_id(f"equation-{label}")
        page, number = env.domaindata["math"]["objects"][label]
        numbers = env.toc_fignumbers.get(page, {}).get("displaymath", {}).get(identifier)
        return f"Equation ({'.'.join(map(str, numbers or [number]))})", identifier
    numbers = env.toc_fignumbers[proof["docname"]][proof["countertype"]][label]
    title = next(
        (
            node["title"]
            for node in env.get_doctree(proof["docname"]).findall(nodes.Element)
            if node.get("label") == label
        ),
        "",
    )
    name = f"{proof['realtype'].title()} {'.'.join(map(str, numbers))}"
    return f"{name} {title.strip()}".strip(), label


def _claims(app: Sphinx, entry: Entry, page: str) -> nodes.bullet_list:
    registered = {claim.id: claim.statement for claim in registry()}
    judged = results.places(app.env)
    items = nodes.bullet_list(classes=["statement-claims"])
    for claim in entry.claims:
        text = registered.get(claim, claim)
        if claim in judged:
            where, verdict = judged[claim]
            address = f"{app.builder.get_relative_uri(page, where)}#{box(claim)}"
            shown = claims.line({"statement": text, "verdict": verdict}, address, app.config)
        else:
            shown = prose(text, app.config)
        items += nodes.list_item("", nodes.paragraph("", "", nodes.raw("", shown, format="html")))
    return items


def _tests(entry: Entry) -> nodes.paragraph:
    line = nodes.paragraph("", "Tested by ", classes=["in-code"])
    for number, test in enumerate(entry.tests):
        line += nodes.Text(", " if number else "")
        file, _, function = test.partition("::")
        line += nodes.literal("", f"tests/{file}")
        line += nodes.Text(f" ({function.removeprefix('test_').replace('_', ' ').strip()})")
    return line


def connect(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.add_node(CodeIndex)
    app.add_directive("code-index", CodeIndexDirective)
    app.add_transform(StatementLines)
    app.connect("env-check-consistency", lambda app, env: check(app, env))
    app.connect("doctree-resolved", fill)
