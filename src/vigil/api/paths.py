"""Names in paths: `{name:whole}` matches the whole rest, also a line break.

Starlette's own `{name:path}` stops before a final line break, as `$` does: a request for "a\\n" got `a`."""

from __future__ import annotations

from starlette.convertors import Convertor, register_url_convertor


class Whole(Convertor[str]):
    """Matches everything, slashes and line breaks included; the lookup refuses what is not a name."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("whole", Whole())
