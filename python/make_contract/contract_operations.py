"""Methods of the Python module, from the operations of the OpenAPI document: a class for each tag, and its twin that waits."""

from __future__ import annotations

import keyword
from typing import Any

from contract_types import annotation, is_object, merged, wrapped

Json = dict[str, Any]
# Their bodies or answers are sequences, and streams.py and recording.py have what they need.
BY_HAND = {"record_pages", "export_pages", "get_backup", "get_sample"}
# A question about readiness is answered by "no", and not asked again.
ASKED_ONCE = {"get_health", "get_readiness"}


def answer(operation: Json, schemas: Json) -> str:
    """The Python type of what comes back."""
    good = next(reply for code, reply in operation["responses"].items() if code < "300")
    content = good.get("content", {})
    if not content:
        return "None"
    if "application/json" not in content:
        return "str"
    return annotation(content["application/json"]["schema"], schemas)


def parameters(operation: Json, schemas: Json) -> list[Json]:
    """The parameters and fields of the body, those that are required first, each with its Python name and type."""
    found = []
    for one in operation.get("parameters", []):
        required, about = one.get("required", False), one.get("description", "")
        found.append({"name": one["name"], "in": one["in"], "required": required, "of": one["schema"], "about": about})
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        _, fields, required = merged(schemas[body["schema"]["$ref"].rsplit("/", 1)[1]], schemas)
        for name, of in fields.items():
            about = of.get("description") or next(
                (p["description"] for p in of.get("oneOf", []) if "description" in p), ""
            )
            found.append({"name": name, "in": "body", "required": name in required, "of": of, "about": about})
    for one in found:
        one["python"] = one["name"] + "_" * keyword.iskeyword(one["name"])
        one["type"] = annotation(one["of"], schemas, closed=True)
        if not one["required"] and "None" not in one["type"].split(" | "):
            one["type"] += " | None"
    return sorted(found, key=lambda one: not one["required"])


def signature(found: list[Json]) -> str:
    """What stands between the brackets of a method."""
    needed = [f"{one['python']}: {one['type']}" for one in found if one["required"]]
    others = [f"{one['python']}: {one['type']} = None" for one in found if not one["required"]]
    return ", ".join(["self", *needed, *(["*", *others] if others else [])])


def dictionary(found: list[Json], place: str) -> str:
    return "{" + ", ".join(f"{one['name']!r}: {one['python']}" for one in found if one["in"] == place) + "}"


def call(operation: Json, found: list[Json], result: str) -> str:
    """The expression that describes the request."""
    path = operation["path"]
    for one in found:
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", f"{{segment({one['python']})}}")
    quoted = f"f{path!r}" if "{" in path else repr(path)
    kind = "type(None)" if result == "None" else "dict" if result.startswith("dict") else result
    parts = [repr(operation["method"]), quoted, kind]
    if any(one["in"] == "query" for one in found):
        parts.append(f"query={dictionary(found, 'query')}")
    if any(one["in"] == "body" for one in found):
        parts.append(f"body={dictionary(found, 'body')}")
    waits = {"get_changes": "wait or 0", "flush": "(timeout or 60) if wait else 0"}.get(operation["operationId"])
    if waits:
        parts.append(f"waits={waits}")
    if operation["operationId"] in ASKED_ONCE:
        parts.append("retried=False")
    return f"Call({', '.join(parts)})"


def about(operation: Json, found: list[Json]) -> str:
    """The docstring of a method: what it asks, what its parameters mean, and the role that its token needs."""
    indent = " " * 8
    paragraphs = [operation["summary"], operation.get("description", "")]
    paragraphs += [f"`{one['python']}`: {one['about']}" for one in found if one["about"]]
    roles = [role for way in operation.get("security", []) for role in way.get("token", [])]
    paragraphs += [f"A server with tokens asks for one with the role `{role}`." for role in roles]
    text = "\n\n".join("\n".join(indent + line for line in wrapped(one, indent)) for one in paragraphs if one)
    return f'{indent}"""{text.strip()}\n{indent}"""\n'


def method(operation: Json, schemas: Json, *, waiting: bool) -> str:
    found = parameters(operation, schemas)
    result = answer(operation, schemas)
    text = f"    {'async ' * waiting}def {operation['operationId']}({signature(found)}) -> {result}:\n"
    text += about(operation, found)
    text += f"        return {'await ' * waiting}self.ask({call(operation, found, result)})\n"
    return text


def modules(operations: list[Json], schemas: Json, where: dict[str, str]) -> dict[str, str]:
    """The text of every module of operations, and of the package that has all of them."""
    tags = list(dict.fromkeys(one["tags"][0] for one in operations))
    files, imports, bases = {}, "", {"": [], "Async": []}
    types = ", ".join(sorted(name for name in schemas if is_object(name, schemas)))
    for tag in tags:
        own = [one for one in operations if one["tags"][0] == tag and one["operationId"] not in BY_HAND]
        text = "from datetime import datetime\nfrom typing import Any, Literal\n\n"
        text += f"from ...call import AsyncCaller, Call, Caller, segment\nfrom ..types import {types}\n\n"
        for prefix, waiting in [("", False), ("Async", True)]:
            name = f"{prefix}{tag.capitalize()}Calls"
            text += f"\n\nclass {name}({prefix}Caller):\n"
            text += f'    """Operations of the tag `{tag}`{", to be awaited" * waiting}."""\n\n'
            text += "\n".join(method(one, schemas, waiting=waiting) for one in own)
            imports += f"from .{tag} import {name} as {name}\n"
            bases[prefix].append(name)
        files[tag] = text
    classes = "".join(
        f'class {prefix}Operations({", ".join(names)}):\n    """Every operation whose answer is one document or text."""\n\n'
        for prefix, names in bases.items()
    )
    files["__init__"] = f"{imports}\n\n{classes}\n__all__ = ['AsyncOperations', 'Operations']\n"
    return files
