"""The playground: a page in the browser to write, check, run and follow kernels.

`answer` is all that a page talks to: a request as JSON goes in, an answer as JSON comes out.  `ptxvm play` serves the page and
answers in processes of this machine (`server`, `processes`); the static page answers in the browser, where a Web Worker runs
this same package on Pyodide (`site`).
"""

from ptxvm.playground.protocol import answer

__all__ = ["answer"]
