"""What a command is to the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command: what ``bipedsim --help`` says of it, and the module that is imported when it is named.

    The module of this object itself is imported at every start of ``bipedsim``: it should import nothing else.

    Attributes:
        help: One line, for the list of commands.
        description: What it does, for its own help.
        module: Has ``add_arguments(parser)``, which declares its options, and ``main(args)``, which returns the exit
            code; a :class:`~bipedsim.errors.BipedSimError` becomes one line and the exit code of wrong input. It may
            have ``INSTEAD``, option to a text: what to do in place of options that other commands have.
    """

    help: str
    description: str
    module: str
