"""Names in paths: `{name:whole}` takes one with all that was asked for, also a line break.

Starlette's own `{name:path}` stops before a last line break, as `$` does: who asked for "a\\n" was given `a`.
"""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor


class Whole(Convertor[str]):
    """Everything there is, slashes and line breaks included; what is no name is refused by who looks it up."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """Return it as it came."""
        return value

    def to_string(self, value: str) -> str:
        """Return it as it is."""
        return value


register_url_convertor("whole", Whole())
