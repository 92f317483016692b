"""What the module needs beside Python, looked for before anything else is imported.

`pip install doppel-dedup` installs all of it. A checkout on the path, or an installation without dependencies, may lack some.
"""

from __future__ import annotations

from importlib.util import find_spec

_NEEDED = {"httpx": "httpx>=0.28,<1", "msgspec": "msgspec>=0.19,<1", "pyarrow": "pyarrow>=21"}
"""The requirements of pyproject.toml, by the names of their modules."""


def require() -> None:
    """Raises `ImportError` that names all that is missing and how to install it."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        wanted = " ".join(f"'{_NEEDED[name]}'" for name in missing)
        raise ImportError(
            f"doppel needs {', '.join(missing)}, and cannot find {'it' if len(missing) == 1 else 'them'}: "
            f"`pip install {wanted}`, or install the distribution with its dependencies: `pip install doppel-dedup`",
            name=missing[0],
        )


require()
