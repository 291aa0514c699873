"""The site: `make docs` builds it with Sphinx from the Markdown files of this folder."""

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

project = "Tapeflow"
extensions = ["myst_nb"]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "Tapeflow"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 3,
    "secondary_sidebar_items": ["page-toc"],
}
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
_PAGES = ["pages.html"]
html_sidebars = {
    "index": [],
    "*": _PAGES,
    "start/*": _PAGES,
    "tutorials/*": _PAGES,
}  # the reference lists its namespaces
html_copy_source = False
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a page may begin with a table


def write_reference(app):
    """Writes the pages of the API before Sphinx reads them."""
    from tools.api_reference import write

    write(Path(app.srcdir) / "api")


def write_plain_pages(app, exception):
    """Every page as plain Markdown beside its HTML, llms.txt, which lists them, and the sources of the reference."""
    if exception is not None or app.builder.name != "html":
        return
    from tools.api_reference import write_sources

    write_sources(Path(app.outdir) / "source")
    lines = ["# Tapeflow", "", "> TensorFlow 2's gradient system, made anew: `import tapeflow as tf`.", ""]
    for name in sorted(app.env.found_docs):
        source = Path(app.srcdir) / f"{name}.md"
        target = Path(app.outdir) / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        title = app.env.titles[name].astext()
        lines.append(f"- [{title}]({name}.md)")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write_reference)
    app.connect("build-finished", write_plain_pages)
