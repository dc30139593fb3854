"""Sphinx configuration of the documentation: ``make docs`` writes it to build/docs/html.

The source folder is the root of the repository. So pages outside docs/ (benchmarks, examples, the changelog) are part
of the site, and links between files work both on the site and in the repository.
"""

import importlib.util
import inspect
import os
import sys
from pathlib import Path

from docutils import nodes

import ranksvm

# An editable install has two import hooks that share a cache with one entry. A search for a module that neither of them
# has would run the build twice, and Sphinx makes such a search for each name. So one hook is removed.
for _finder in [found for found in sys.meta_path if type(found).__name__ == "MesonpyMetaFinder"][1:]:
    sys.meta_path.remove(_finder)

# draw figures without a display
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
# folders that Sphinx does not search for pages
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
# Public names in single backticks become links. Most other names are methods of the class, which stay plain text.
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

# Examples run when the site is built; later builds run only those that have changed
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

# The site loads nothing from other servers: a Python package contains the copy of MathJax that draws formulas.
_mathjax = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = "tex-svg.js"
# left-aligned, because wide centered formulas are cut off on both sides on a phone
mathjax3_config = {"svg": {"displayAlign": "left", "displayIndent": "2em"}}

html_theme = "pydata_sphinx_theme"
html_title = f"ranksvm {version}"
html_static_path = ["_static", str(_mathjax)]
html_extra_path = ["_root"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
# pages that have no subpages
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
    """Leave out members that classes inherit from other packages, which document them."""
    del app, what, name, options
    function = member.fget if isinstance(member, property) else inspect.unwrap(member) if callable(member) else member
    module = getattr(function, "__module__", None)
    return True if module is not None and not module.startswith("ranksvm") else skip


def _tidy(app, doctree):
    """Drop the empty line at the end of code examples, and mail links made from names such as ndcg@10."""
    del app
    for block in doctree.findall(lambda node: isinstance(node, nodes.literal_block | nodes.doctest_block)):
        block.rawsource = text = block.astext().rstrip()
        block[:] = [nodes.Text(text)]
    for link in list(doctree.findall(nodes.reference)):
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(nodes.Text(link.astext()))


def setup(app):
    """Register the functions above."""
    app.connect("autodoc-skip-member", _skip_foreign)
    app.connect("doctree-read", _tidy)
