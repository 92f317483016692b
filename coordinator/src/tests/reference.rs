//! Generates the reference page of the HTTP operations in Markdown, and tests that the page in `docs` is current.
//!
//! The page is generated from the OpenAPI document, so nobody edits it. The command
//! `DOPPEL_REFERENCE=write cargo test -p doppel-coordinator --lib reference` regenerates it.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Map, Value};

use crate::contract::PROBLEMS;

/// Path of the page.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/http.md");

const HEAD: &str = "\
# HTTP operations

This page lists every operation of a server with its parameters, its bodies, and its answers. It is a reference. [HTTP
conventions](http-conventions.md) says what holds for all operations: clients, errors, and versions. A server answers
`GET /openapi.json` with the same in a form for programs.

<!-- Generated from the OpenAPI document. `DOPPEL_REFERENCE=write cargo test -p doppel-coordinator --lib reference` writes this page anew. -->
";

/// Statuses whose meaning depends on nothing but the problem type.
const GENERAL: [&str; 10] = ["401", "403", "408", "413", "415", "421", "429", "500", "503", "507"];

/// Start of the problem types.
const URN: &str = "urn:doppel:problem:";

#[test]
fn the_page_is_up_to_date() {
    let page = page(&serde_json::to_value(crate::openapi()).unwrap());
    if std::env::var("DOPPEL_REFERENCE").as_deref() == Ok("write") {
        fs::write(PAGE, page).unwrap();
        return;
    }
    let stored = fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(stored.lines()).find(|(new, old)| new != old);
    assert!(
        page == stored,
        "docs/reference/http.md differs from the OpenAPI document, first at {differs:?}; \
         run `DOPPEL_REFERENCE=write cargo test -p doppel-coordinator --lib reference`"
    );
}

/// Returns the whole page.
fn page(document: &Value) -> String {
    let mut page = HEAD.to_owned();
    let tags: Vec<(&str, &str)> = list(&document["tags"])
        .iter()
        .map(|tag| (tag["name"].as_str().unwrap(), tag["description"].as_str().unwrap()))
        .collect();
    page.push_str("\n| operation | role | what it does |\n|---|---|---|\n");
    for (tag, _) in &tags {
        for (title, operation) in operations(document, tag) {
            let anchor = title.to_lowercase().replace(' ', "-").replace(['/', '{', '}', '.'], "");
            let summary = cell(operation["summary"].as_str().unwrap());
            writeln!(page, "| [`{title}`](#{anchor}) | {} | {summary} |", role(operation)).unwrap();
        }
    }
    for (tag, description) in &tags {
        // The description belongs to the title because types have titles such as `Advice`, too.
        let first = description[..1].to_lowercase();
        write!(page, "\n## {}{}: {first}{}\n", tag[..1].to_uppercase(), &tag[1..], &description[1..])
            .unwrap();
        for (title, operation) in operations(document, tag) {
            section(&mut page, &title, operation);
        }
    }
    page.push_str("\n## Types\n\nThe JSON of bodies and answers, in order of the names.\n");
    for (name, schema) in object(&document["components"]["schemas"]) {
        of_schema(&mut page, name, schema);
    }
    page
}

fn list(of: &Value) -> &[Value] {
    of.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn object(of: &Value) -> &Map<String, Value> {
    of.as_object().unwrap()
}

/// Returns the operations of a tag with their titles, such as `GET /v1/status`.
fn operations<'d>(document: &'d Value, tag: &str) -> Vec<(String, &'d Value)> {
    let paths = object(&document["paths"]).iter();
    let all = paths.flat_map(|(path, item)| {
        object(item)
            .iter()
            .map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    });
    all.filter(|(_, operation)| operation["tags"][0] == tag).collect()
}

fn role(operation: &Value) -> String {
    operation["security"][0]["token"][0]
        .as_str()
        .map_or_else(|| "none".to_owned(), |role| format!("`{role}`"))
}

/// Appends the section of one operation.
fn section(page: &mut String, title: &str, operation: &Value) {
    write!(page, "\n### `{title}`\n\n{}\n", operation["summary"].as_str().unwrap()).unwrap();
    if let Some(description) = operation["description"].as_str() {
        write!(page, "\n{description}\n").unwrap();
    }
    let id = operation["operationId"].as_str().unwrap();
    write!(page, "\n- Name: `{id}`\n- Role: {}\n", role(operation)).unwrap();
    let parameters = list(&operation["parameters"]);
    if !parameters.is_empty() {
        page.push_str("\n| parameter | in | type | meaning |\n|---|---|---|---|\n");
    }
    for parameter in parameters {
        let of = |key: &str| parameter[key].as_str().unwrap_or_default();
        let required = if parameter["required"] == true { ", required" } else { "" };
        let kind = type_of(&parameter["schema"]);
        let meaning = cell(of("description"));
        writeln!(page, "| `{}` | {}{required} | {kind} | {meaning} |", of("name"), of("in")).unwrap();
    }
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        write!(page, "\nBody: {}\n", contents(content)).unwrap();
    }
    page.push_str("\n| status | answer |\n|---|---|\n");
    let mut general = Vec::new();
    for (status, answer) in object(&operation["responses"]) {
        let types: Vec<&str> = list(&answer[PROBLEMS]).iter().filter_map(Value::as_str).collect();
        if GENERAL.contains(&status.as_str()) && !types.is_empty() {
            general.extend(types.into_iter().map(|name| format!("`{}`", name.trim_start_matches(URN))));
            continue;
        }
        let description = cell(answer["description"].as_str().unwrap()).replace(URN, "");
        let content = answer["content"].as_object().filter(|_| types.is_empty());
        let content = content.map(|content| format!(": {}", contents(content))).unwrap_or_default();
        writeln!(page, "| {status} | {description}{content} |").unwrap();
    }
    if !general.is_empty() {
        let count = general.len();
        let errors = if count == 1 { "This error occurs" } else { "These errors occur" };
        write!(
            page,
            "\n{errors}, too ([what they mean](http-conventions.md#errors)): {}.\n",
            general.join(", ")
        )
        .unwrap();
    }
}

/// Returns the media types of a body with the types of their data.
fn contents(content: &Map<String, Value>) -> String {
    let one = |(media, content): (&String, &Value)| {
        let schema = &content["schema"];
        let line = &schema["contentSchema"];
        if line.is_object() {
            return format!("`{media}` (a line each: {})", type_of(line));
        }
        let kind = type_of(schema);
        if kind == "text" || kind == "any" { format!("`{media}`") } else { format!("`{media}` ({kind})") }
    };
    content.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Appends the section of one type.
fn of_schema(page: &mut String, name: &str, schema: &Value) {
    write!(page, "\n### {name}\n").unwrap();
    if let Some(description) = schema["description"].as_str() {
        write!(page, "\n{}\n", description.replace(URN, "")).unwrap();
    }
    let Some(fields) = schema["properties"].as_object() else {
        write!(page, "\nType: {}.\n", type_of(schema)).unwrap();
        return;
    };
    let required = list(&schema["required"]);
    let is_request = schema["additionalProperties"] == false;
    page.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    for (field, of) in fields {
        let is_required = required.iter().any(|name| name == field);
        let nested = list(&of["oneOf"]).iter().find_map(|one| one["description"].as_str());
        let meaning = of["description"].as_str().or(nested).unwrap_or_default();
        // The list of problem types stands on the page of conventions.
        let meaning = cell(meaning.split("\n\nThese are the types").next().unwrap());
        let always = match (is_required, is_request) {
            (false, _) => "",
            (true, true) => ", required",
            (true, false) => ", always there",
        };
        writeln!(page, "| `{field}` | {}{always} | {meaning} |", type_of(of)).unwrap();
    }
}

/// Returns the name of a type with its limits, as Markdown.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for alternatives in ["oneOf", "anyOf", "allOf"] {
        if let Some(of) = schema[alternatives].as_array() {
            return of.iter().map(type_of).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(|value| format!("`{}`", plain(value))).collect::<Vec<_>>().join(", ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        Value::String(name) => vec![name],
        _ => return "any".to_owned(),
    };
    let kinds = names.iter().map(|name| match *name {
        "array" => format!("list of {}", type_of(&schema["items"])),
        "string" => "text".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object with values of {}", type_of(&schema["additionalProperties"]))
        }
        other => other.to_owned(),
    });
    let kinds = kinds.collect::<Vec<_>>().join(" or ");
    let limits: Vec<String> = [
        ("minimum", "at least", ""),
        ("maximum", "at most", ""),
        ("minLength", "at least", " characters"),
        ("maxLength", "at most", " characters"),
        ("minItems", "at least", " elements"),
        ("maxItems", "at most", " elements"),
    ]
    .into_iter()
    .filter(|(key, ..)| schema[*key].is_number())
    .map(|(key, says, unit)| format!(", {says} {}{unit}", plain(&schema[key])))
    .collect();
    format!("{kinds}{}", limits.concat())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// Returns a text as a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
