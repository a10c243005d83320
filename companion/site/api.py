"""The reference of the package, from its docstrings, with the way back to the statements."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from companion.site import codeindex

# One backtick marks a name in numpydoc, but emphasis in reStructuredText; two mark code in both.
NAME = re.compile(r"(?<![`:\w])`([^`\n]+)`(?![`_])")
# Marks that reStructuredText would read as its own: stars and bars of formulas, and names that end
# in an underscore.
MARKUP = re.compile(r"(?<!\\)([*|])|(?<=\w)(_)(?![\w])")
LITERAL = re.compile(r"(``.+?``)")
STATEMENT = re.compile(r"(thm|def|lem|prop|conj|obs|rem)-")


def connect(app: Sphinx) -> None:
    """Set up autodoc: plain signatures, numpydoc sections, and no names of other packages."""
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("config-inited", _configure)
    # Before napoleon (priority 500) rewrites the sections, and after it.
    app.connect("autodoc-process-docstring", _plain, priority=400)
    app.connect("autodoc-process-docstring", _implements, priority=600)
    app.connect("missing-reference", _by_last_part)


def _configure(app: Sphinx, config: Any) -> None:
    config.autodoc_typehints = "none"  # shapes and units stand in the docstrings
    config.autodoc_member_order = "bysource"
    config.autodoc_class_signature = "mixed"
    config.napoleon_google_docstring = False
    config.napoleon_use_rtype = False
    config.napoleon_use_param = False  # one line for names that share a description
    config.add_module_names = False
    config.napoleon_attr_annotations = False
    config.toc_object_entries_show_parents = "hide"
    # What a docstring calls by a name of another package has no page here.
    config.nitpick_ignore_regex = [*config.nitpick_ignore_regex, ("py:.*", ".*")]


def _plain(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write a docstring so that reStructuredText reads it as it is meant."""
    if not name.startswith("attsvm"):
        return
    if what == "module":  # the page says in its own words what the first line says
        del lines[: lines.index("") + 1 if "" in lines else len(lines)]
    inside, announced = 0, False  # a literal block ends where the text is no longer indented
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if not line.strip() or (inside and indent >= inside):
            continue
        inside = indent if announced else 0
        announced = line.rstrip().endswith("::")
        if inside:
            continue
        line = NAME.sub(r"``\1``", line)
        parts = LITERAL.split(line)
        parts[::2] = [_escaped(part) for part in parts[::2]]
        lines[number] = "".join(parts)


def _escaped(text: str) -> str:
    """Take the meaning from marks, except from pairs of stars that make words strong or leaning."""
    bare = re.sub(r"\*{1,2}[A-Za-z][^*]*\*{1,2}", "", text)
    if "*" not in bare:
        return re.sub(r"(?<!\\)\||(?<=\w)_(?!\w)", lambda m: f"\\{m.group()}", text)
    return MARKUP.sub(lambda m: f"\\{m.group()}", text)


def _implements(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Say which statements of the book a function or class carries out."""
    known = codeindex.of(app.env)
    if known is None or what == "module" or not (labels := known.labels_of(name)):
        return
    proofs = getattr(app.env, "proof_list", {})
    # Pages are read in alphabetical order, so most statements are not known yet: by their prefix.
    is_statement = {one: one in proofs or bool(STATEMENT.match(one)) for one in labels}
    found = [f":prf:ref:`{one}`" for one in labels if is_statement[one]]
    equations = [f":eq:`{one}`" for one in labels if not is_statement[one]]
    if equations:
        equations[0] = f"equation{'s' if len(equations) > 1 else ''} {equations[0]}"
    lines += ["", f":Implements: {', '.join(found + equations)}", ""]


def _by_last_part(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """Link ``ArgumentError`` and the like, written without their module, if there is only one."""
    if node.get("refdomain") != "py":
        return None
    objects = env.get_domain("py").objects  # type: ignore[attr-defined]
    target = node["reftarget"].rpartition(".")[2]
    found = [name for name in objects if name.rpartition(".")[2] == target]
    if len(found) != 1:
        return None
    entry = objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content)
