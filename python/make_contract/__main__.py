"""Makes the typed contract of the Python module from the OpenAPI document of a server.

Usage: python python/make_contract http://HOST:PORT/openapi.json|FILE [FOLDER]

Writes `types` and `operations` below FOLDER, which is python/src/doppel/contract where none is given: a module for each tag of
the document, with the types that the operations of that tag alone use, and one with those that several use. Needs `ruff`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path
from typing import Any

import contract_operations
import contract_types

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]


def read(source: str) -> Json:
    """The document at an address or in a file."""
    if source.startswith(("http://", "https://")):
        with urllib.request.urlopen(source) as answer:
            return json.load(answer)
    return json.loads(Path(source).read_text())


def operations(document: Json) -> list[Json]:
    """Every operation of the document, with its method and path."""
    found = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if "operationId" in operation:
                found.append({**operation, "method": method.upper(), "path": path})
    return found


def references(schema: Any) -> set[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(schema, list):
        return set().union(*map(references, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    target = schema.get("$ref", "")
    own = {target.rsplit("/", 1)[1]} if target.startswith("#/components/schemas/") else set()
    return own.union(*(references(part) for key, part in schema.items() if key not in ("example", "examples")))


def reachable(names: set[str], schemas: Json) -> set[str]:
    """These schemas and all that they refer to."""
    found: set[str] = set()
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names |= references(schemas[name]) - found
    return found


def modules(document: Json) -> dict[str, str]:
    """The module of every schema: the only tag whose operations reach it, or `shared`. Reports of load are many, and have their own."""
    schemas = document["components"]["schemas"]
    tags: dict[str, set[str]] = {name: set() for name in schemas}
    for operation in operations(document):
        # Errors are the same everywhere.
        good = {code: answer for code, answer in operation["responses"].items() if code < "300"}
        used = references([operation.get("parameters", []), operation.get("requestBody", {}), good])
        for name in reachable(used, schemas):
            tags[name].add("load" if "load" in operation["path"] else operation["tags"][0])
    return {name: used.pop() if len(used) == 1 else "shared" for name, used in tags.items()}


def write(folder: Path, files: dict[str, str], about: str) -> None:
    """Puts the files in place of what the folder had."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in files.items():
        subject = "all" if name == "__init__" else name
        made = "Made from the OpenAPI document by python/make_contract; not to be edited."
        heading = f'"""{about.format(name=subject)}\n\n{made}\n"""\n\nfrom __future__ import annotations\n\n'
        (folder / f"{name}.py").write_text(heading + textwrap.dedent(text))


def make(document: Json, folder: Path) -> None:
    """Writes all modules below the folder, formatted."""
    schemas = document["components"]["schemas"]
    where = modules(document)
    types = contract_types.modules(schemas, where)
    write(folder / "types", types, "Types of the contract: {name}.")
    made = contract_operations.modules(operations(document), schemas, where)
    write(folder / "operations", made, "Operations of the contract: {name}.")
    settings = ["--config", str(ROOT / "pyproject.toml")]
    subprocess.run(["ruff", "check", "--quiet", "--fix-only", *settings, str(folder)], check=True)
    subprocess.run(["ruff", "format", "--quiet", *settings, str(folder)], check=True)


def main() -> None:
    source, *rest = sys.argv[1:]
    folder = Path(rest[0]) if rest else ROOT / "python/src/doppel/contract"
    make(read(source), folder)


if __name__ == "__main__":
    main()
