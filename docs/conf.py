"""Sphinx's settings: the pages of the reference are written by `ptxvm.reference.site` before Sphinx reads them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from front_pages import front_pages
from sessions import rerun

import ptxvm
from ptxvm.reference import site

project = "ptxvm"
author = "The ptxvm authors"
project_copyright = author
release = ptxvm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_design"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
highlight_language = "none"
smartquotes = False  # which would make one dash of the two of an option

# Links to what is not there are errors.  The types in signatures are not linked.
nitpicky = True
linkcheck_anchors = False  # which pages make by scripts
linkcheck_timeout = 20
nitpick_ignore_regex = [("py:.*", ".*")]
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

html_theme = "furo"
html_title = "ptxvm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../src/ptxvm/playground/page/icon.svg"
html_extra_path = ["reference/beside"]  # pages that are none of Sphinx's
html_show_copyright = False
html_copy_source = False


def write_reference(app: Any, config: Any) -> None:
    """Make the pages, of instructions all or those of `-D opcodes=prmt,shfl`."""
    site.write(Path(app.srcdir), [word for word in config.opcodes.split(",") if word], front_pages())


def run_sessions(app: Any, page: str, source: list[str]) -> None:
    """What the chapter on the memory model shows is what its commands print now."""
    if page == "explanation/memory-model" and app.config.sessions:
        source[0] = rerun(source[0])


def setup(app: Any) -> dict[str, bool]:
    """Hook in."""
    app.add_config_value("opcodes", "", "env", [str])
    app.add_config_value("sessions", default=True, rebuild="env", types=[bool])  # `-D sessions=0` leaves them as they stand
    app.connect("config-inited", write_reference)
    app.connect("source-read", run_sessions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
