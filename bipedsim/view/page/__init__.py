"""A page in the browser that shows a robot: what it does now, or a run.

:class:`Page` shows one :class:`Instant` after another, wherever they come from; :func:`open_replay` plays a run, and
:func:`write_html` writes one as a file. viser, the extra ``view``, is imported when a page is made.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
