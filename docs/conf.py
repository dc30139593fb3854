"""Sphinx configuration of the documentation: ``make docs`` writes it to build/docs/html.

The source folder is the root of the repository, so that pages beside docs/ (benchmarks, examples, the changelog) are
pages of the site where they lie, and a link between files means the same here and on a page of the repository.
"""

import importlib.util
import inspect
import os
import sys
from pathlib import Path

from docutils import nodes

import ranksvm

# An editable install has two finders that share a cache of one entry: a search that both do not answer, as Sphinx makes
# for each name, would run the build twice.
for _finder in [found for found in sys.meta_path if type(found).__name__ == "MesonpyMetaFinder"][1:]:
    sys.meta_path.remove(_finder)

# figures are drawn without a display, and fits of examples so small are fastest on one thread
os.environ["MPLBACKEND"] = "agg"

project = "ranksvm"
author = "The ranksvm developers"
copyright = author
version = release = ranksvm.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/*.rst",
    "docs/api/*.rst",
    "docs/gallery/*.rst",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "benchmarks/results/reproduce/*/*.md",
    "examples/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
# folders that are not searched for pages at all
exclude_patterns = [".*", "build", "src", "tests", "examples/gallery", "benchmarks/results/*.csv"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Names in single backticks are links where they are public; in docstrings most others are methods, shown as they are.
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [("py:obj", ".*")]
suppress_warnings = ["config.cache"]

# Pages in Markdown
myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = False

# Docstrings
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = False
templates_path = [str(Path(__file__).parent / "_templates")]

# Examples that are run when the site is built, again only after they have changed
sphinx_gallery_conf = {
    "examples_dirs": ["examples/gallery"],
    "gallery_dirs": ["docs/gallery"],
    "abort_on_example_error": True,
    "capture_repr": (),
    "download_all_examples": False,
    "min_reported_time": 3600,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

# The site asks no other server for anything: formulas are drawn by a copy of MathJax that a package brings.
_mathjax = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = "tex-svg.js"
# centered formulas would overflow to both sides on a phone
mathjax3_config = {"svg": {"displayAlign": "left", "displayIndent": "2em"}}

html_theme = "pydata_sphinx_theme"
html_title = f"ranksvm {version}"
html_static_path = ["_static", str(_mathjax)]
html_extra_path = ["_root"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
# pages without pages below them
_ALONE = ["start", "which_estimator", "mathematics", "reproducing", "extending", "how_a_fit_runs", "developing"]
_ALONE += ["developing_gpu", "faq", "security", "when_not"]
html_sidebars = {
    name: [] for name in [f"docs/{page}" for page in _ALONE] + ["CHANGELOG", "CONTRIBUTING", "examples/README"]
}
html_theme_options = {
    "logo": {"text": "ranksvm"},
    "show_toc_level": 2,
    "navigation_depth": 2,
    "header_links_before_dropdown": 5,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}


def _skip_foreign(app, what, name, member, skip, options):
    """Leave out what classes inherit from other packages: scikit-learn and Python describe it."""
    del app, what, name, options
    function = member.fget if isinstance(member, property) else inspect.unwrap(member) if callable(member) else member
    module = getattr(function, "__module__", None)
    return True if module is not None and not module.startswith("ranksvm") else skip


def _tidy(app, doctree):
    """Drop the empty line that ends a block of examples, and links to addresses such as ndcg@10."""
    del app
    for block in doctree.findall(lambda node: isinstance(node, nodes.literal_block | nodes.doctest_block)):
        block.rawsource = text = block.astext().rstrip()
        block[:] = [nodes.Text(text)]
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(nodes.Text(link.astext()))


def setup(app):
    """Register what is above."""
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("doctree-read", _tidy)
