"""Where a chapter can be run and edited: on this machine always, elsewhere if there is an address.

The address of the repository is one setting, ``repository: url`` in ``_config.yml``; if it is
empty, ``repository-code`` of ``CITATION.cff`` counts.  Without either, or as long as
``companion_published`` says that nothing is there yet, no page links to one.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.osutil import relative_uri

from companion.site import citation

BUTTONS = ("use_repository_button", "use_edit_page_button")


def connect(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.add_config_value("companion_published", True, "html", types=(bool,))
    app.connect("config-inited", _configure, priority=400)
    app.connect("html-page-context", _box, priority=900)


def address(config: Config) -> str:
    """Address of the repository, or nothing."""
    return str(config.html_theme_options.get("repository_url") or "").rstrip("/")


def _configure(app: Sphinx, config: Config) -> None:
    """Give the theme the address, or take from it what needs one."""
    options = config.html_theme_options
    if not address(config):
        options["repository_url"] = (citation.read(Path(app.srcdir)) or {}).get("repository-code")
    if options["repository_url"] and config.companion_published:
        options |= dict.fromkeys(BUTTONS, True)
        options["repository_url"] = address(config)
    else:
        options["repository_url"] = ""
        options |= dict.fromkeys(BUTTONS, False)
        options["launch_buttons"] = {}


def links(config: Config, path: str) -> dict[str, str]:
    """Where a notebook opens on the web: words → address; empty without a repository.

    Parameters
    ----------
    config
        The book's settings.
    path
        The notebook in the repository.
    """
    repository, options = address(config), config.html_theme_options
    if not repository:
        return {}
    branch = options.get("repository_branch") or "main"
    launch = options.get("launch_buttons", {})
    parts = urlsplit(repository)
    found = {}
    if binder := launch.get("binderhub_url"):
        place = {"github.com": "gh", "gitlab.com": "gl"}.get(parts.netloc)
        name = parts.path.strip("/")
        if place == "gl":
            name = quote(name, safe="")
        project = f"{place}/{name}" if place else f"git/{quote(repository, safe='')}"
        found["Binder"] = f"{binder.rstrip('/')}/v2/{project}/{branch}?urlpath=lab/tree/{path}"
    if (colab := launch.get("colab_url")) and parts.netloc == "github.com":
        found["Colab"] = f"{colab.rstrip('/')}/github{parts.path}/blob/{branch}/{path}"
    if parts.netloc in ("github.com", "gitlab.com"):
        found["Edit"] = f"{repository}/edit/{branch}/{path}"
    return found


def _box(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Put the ways to run a notebook under its title."""
    if tree is None or context.get("page_source_suffix") != ".ipynb":
        return
    path = f"{page}.ipynb"
    here = app.builder.get_target_uri(page)
    download = relative_uri(here, f"_sources/{context['sourcename']}")
    name = escape(path.rsplit("/", 1)[-1])
    elsewhere = links(app.config, path)
    repository = address(app.config)
    clone = f"git clone {repository}\n" if repository else ""
    folder = f"cd {repository.rsplit('/', 1)[-1].removesuffix('.git')}\n" if repository else ""
    command = f"{clone}{folder}make env\n.venv/bin/jupyter lab {path}"
    where = "In a fresh clone" if repository else "In a copy of the repository"
    items = [
        f"<div><dt>Lab</dt><dd>{where}:<pre tabindex='0' aria-label='Commands'>"
        f"{escape(command)}</pre></dd></div>",
        f'<div><dt>File</dt><dd><a href="{escape(download)}" download="{name}">Download'
        " the notebook</a>"
        " and open it wherever <code>attsvm</code> is installed.</dd></div>",
    ]
    web = [
        f'<a href="{escape(elsewhere[place])}">{place}</a>'
        for place in ("Binder", "Colab")
        if place in elsewhere
    ]
    if web:
        items.append(f"<div><dt>Web</dt><dd>{', '.join(web)}</dd></div>")
    if "Edit" in elsewhere:
        items.append(
            f'<div><dt>Edit</dt><dd><a href="{escape(elsewhere["Edit"])}">Propose a change'
            "</a></dd></div>"
        )
    box = (
        '<details class="run-box"><summary>Run this notebook yourself</summary>'
        f'<dl class="run-ways">{"".join(items)}</dl></details>'
    )
    context["body"] = context["body"].replace("</h1>", f"</h1>\n{box}", 1)
