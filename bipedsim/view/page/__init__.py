"""Show a robot on a page in the browser: live, or a recorded run.

:class:`Page` shows a sequence of :class:`Instant` from any source. :func:`open_replay` plays a run, and
:func:`write_html` writes a run as a static file. The package viser (extra ``view``) is imported when a page is
created.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
