"""Types of the Python module, from the schemas of the OpenAPI document: a `msgspec.Struct` for each object."""

from __future__ import annotations

import keyword
import re
import textwrap
from typing import Any

Json = dict[str, Any]
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 110


def prose(text: str | None) -> str:
    """A description as one paragraph."""
    return re.sub(r"\s+", " ", text or "").strip()


def wrapped(text: str, indent: str) -> list[str]:
    """The lines of a paragraph in a docstring."""
    return textwrap.wrap(prose(text).replace("\\", "\\\\"), WIDTH - len(indent)) or [""]


def docstring(text: str, indent: str) -> str:
    """A docstring of one paragraph."""
    lines = wrapped(text, indent)
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""\n'
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'\n{indent}"""\n'


def is_object(name: str, schemas: Json) -> bool:
    """Whether a schema becomes a type of its own; the others are texts and numbers."""
    schema = schemas[name]
    return schema.get("type") == "object" or "allOf" in schema or "oneOf" in schema


def annotation(schema: Json, schemas: Json, *, closed: bool = False) -> str:
    """The Python type of a schema. Enumerated values are texts, as others may come; with `closed`, in requests, they are literals."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return name if is_object(name, schemas) else annotation(schemas[name], schemas, closed=closed)
    if "oneOf" in schema:
        parts = [annotation(part, schemas, closed=closed) for part in schema["oneOf"]]
        return " | ".join(dict.fromkeys(parts))
    if closed and "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if isinstance(schema.get("type"), list):
        return " | ".join(annotation({**schema, "type": one}, schemas) for one in schema["type"])
    kind = schema.get("type")
    if kind == "array":
        return f"list[{annotation(schema['items'], schemas, closed=closed)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {annotation(values, schemas) if isinstance(values, dict) else 'Any'}]"
    if schema.get("format") == "date-time":
        return "datetime"
    return SCALARS[kind or "string"]


def described(schema: Json, schemas: Json) -> str:
    """What a field means, with the values that are known."""
    own = schema.get("description") or next(
        (one["description"] for one in schema.get("oneOf", []) if "description" in one), ""
    )
    for part in [schema, *schema.get("oneOf", [])]:
        target = schemas[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part
        if "enum" in target:
            values = ", ".join(f"`{value}`" for value in target["enum"])
            return f"{prose(own)} One of {values}; others may come with a later release."
    return prose(own)


def merged(schema: Json, schemas: Json) -> tuple[list[str], Json, set[str]]:
    """The bases, the fields and the required fields of an object. Of one that has several forms the fields of all are taken."""
    if "allOf" in schema:
        bases = [part["$ref"].rsplit("/", 1)[1] for part in schema["allOf"] if "$ref" in part]
        fields: Json = {}
        required: set[str] = set()
        for part in schema["allOf"]:
            if "$ref" not in part:
                fields |= part.get("properties", {})
                required |= set(part.get("required", []))
        return bases, fields, required
    if "oneOf" in schema:
        forms = []
        for part in schema["oneOf"]:
            target = schemas[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part
            forms.append(merged(target, schemas))
        fields = {}
        for _, own, _ in forms:
            fields |= {name: field for name, field in own.items() if name not in fields}
        return [], fields, set.intersection(*(required for _, _, required in forms))
    return [], schema.get("properties", {}), set(schema.get("required", []))


def struct(name: str, schemas: Json) -> str:
    """The class of an object. What may be absent is None."""
    schema = schemas[name]
    bases, fields, required = merged(schema, schemas)
    renamed = {field: field + "_" for field in fields if keyword.iskeyword(field)}
    options = [*(bases or ["msgspec.Struct"]), "frozen=True", "kw_only=True", "omit_defaults=True"]
    if renamed:
        options.append(f"rename={ ({python: field for field, python in renamed.items()})!r}")
    text = f"class {name}({', '.join(options)}):\n"
    text += docstring(schema.get("description") or f"The body of a request: `{name}`.", "    ")
    for field, of in fields.items():
        kind = annotation(of, schemas)
        if field not in required:
            kind = kind if "None" in kind.split(" | ") else kind + " | None"
            kind += " = None"
        text += f"\n    {renamed.get(field, field)}: {kind}\n"
        about = described(of, schemas)
        text += docstring(about, "    ") if about else ""
    return text


def ordered(names: list[str], schemas: Json) -> list[str]:
    """The names with bases before what is built on them."""
    done: list[str] = []

    def put(name: str) -> None:
        for base in merged(schemas[name], schemas)[0]:
            if base in names and base not in done:
                put(base)
        if name not in done:
            done.append(name)

    for name in names:
        put(name)
    return done


def modules(schemas: Json, where: dict[str, str]) -> dict[str, str]:
    """The text of every module of types, and of the package that has all of them."""
    objects = [name for name in schemas if is_object(name, schemas)]
    files = {}
    for module in sorted({where[name] for name in objects}):
        own = [name for name in objects if where[name] == module]
        text = "from datetime import datetime\nfrom typing import Any\n\nimport msgspec\n\n"
        if module != "shared":
            shared = ", ".join(sorted(name for name in objects if where[name] == "shared"))
            text += f"from .shared import {shared}\n\n"
        files[module] = text + "\n\n".join(struct(name, schemas) for name in ordered(own, schemas))
    imports = "".join(f"from .{where[name]} import {name} as {name}\n" for name in sorted(objects))
    names = ", ".join(repr(name) for name in sorted(objects))
    files["__init__"] = f"{imports}\n__all__ = [{names}]\n"
    return files
