"""The start of the ``awatt`` command, also as ``python -m awatt``."""

from __future__ import annotations

import os
import signal


def _leave(*_: object) -> None:
    os.write(2, b"awatt: interrupted.\n")
    os._exit(130)


def main() -> None:
    """Run the command. Ctrl-C while it is still being imported ends it at once: there is nothing to clean up yet."""
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, _leave)
    from awatt.cli import main as run

    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
