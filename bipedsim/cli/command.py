"""Define the entry of a command in the table of commands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CliCommand:
    """Command of ``bipedsim``: its texts for ``--help``, and the module that is imported when it is used.

    The module that contains this object is imported at every start of ``bipedsim``. It should import nothing else.

    Attributes:
        help: One line for the list of commands.
        description: Description for the help of the command.
        module: Module with ``add_arguments(parser)``, which declares the options, and ``main(args)``, which returns the
            exit code. A :class:`~bipedsim.errors.BipedSimError` becomes one line and the exit code of wrong input. The
            module may have ``INSTEAD``: an option of other commands to a text that names the alternative.
    """

    help: str
    description: str
    module: str
