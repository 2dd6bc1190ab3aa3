"""The JSON Schema of a manifest, for editors, made from the tables that check it."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from vigil.manifest.models import ManifestFile


def schema() -> dict[str, Any]:
    """Return the schema; it cannot express what holds between values (contradictions, repeated names)."""
    made = ManifestFile.model_json_schema(schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect, **made, "title": "Vigil manifest"}


class _Generator(GenerateJsonSchema):
    """Leaves out what means nothing in TOML: a title from each key, and null."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default", ...) is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)
