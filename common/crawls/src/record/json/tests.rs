use super::*;

fn names(json: &str, wanted: &[String]) -> Vec<String> {
    let row = JsonRow::parse(json.as_bytes(), wanted, true).unwrap();
    let mut names = Vec::new();
    row.names(&mut |name| names.push(name.to_owned()));
    names
}

#[test]
fn the_collected_paths_of_a_record_take_bounded_memory() {
    let inside = vec![r#""a":0"#; 80_000].join(",");
    let json = format!(r#"{{"{}":{{{inside}}},"b":null,"c":{{"d":1}}}}"#, "k".repeat(500_000));
    let found = names(&json, &[]);
    assert!(found.iter().map(String::len).sum::<usize>() < 2_000, "{}", found.len());
    assert_eq!(found[1..], ["b", "c", "c.d"]);
}

#[test]
fn a_wanted_path_is_collected_even_beyond_the_limit() {
    let many: String = (0..50_000).map(|n| format!(r#""n{n}":0,"#)).collect();
    let json = format!(r#"{{{many}"a":{{"b":null}}}}"#);
    assert_eq!(names(&json, &["a.b".to_owned()]).last().unwrap(), "a.b");
}

/// The value at a path. Checks that it is the same whether paths are collected or not.
fn value_at<'l>(json: &'l str, path: &str) -> Option<Value<'l>> {
    let wanted = [path.to_owned()];
    let values = [true, false].map(|with_names| {
        let mut row = JsonRow::parse(json.as_bytes(), &wanted, with_names).unwrap();
        row.take(path)
    });
    assert_eq!(values[0], values[1], "{json} {path}");
    values.into_iter().next().flatten()
}

#[test]
fn texts_in_lists_are_joined() {
    let text = |text: &str| Some(Value::Text(text.to_owned().into()));
    for (json, path, expected) in [
        (r#"{"a":["x",null,"","y"]}"#, "a[]", text("x\ny")),
        (r#"{"a":[]}"#, "a[]", None),
        (r#"{"a":null}"#, "a[]", None),
        (r#"{"a":"x"}"#, "a[]", text("x")),
        (r#"{"a":["x",1]}"#, "a[]", Some(Value::Whole(1))),
        (r#"{"a":[["x"]]}"#, "a[]", Some(Value::Other("a list"))),
        (r#"{"a":[["x"],["y","z"]]}"#, "a[][]", text("x\ny\nz")),
        (r#"{"a":{"x":1}}"#, "a[]", Some(Value::Other("an object"))),
        (
            r#"{"m":[{"c":"x"},{"r":1},{"c":null},{"c":"y"},"z",{"c":"1"},{"c":"2"}]}"#,
            "m[].c",
            text("x\ny\nz\n1\n2"),
        ),
        (r#"{"m":[{"c":["x"]}]}"#, "m[].c", Some(Value::Other("a list"))),
        (r#"{"m":[{"c":"x"},{"c":[{"t":"y"},{"u":1}]}]}"#, "m[].c[].t", text("x\ny")),
        (r#"{"d":{"m":[{"c":{"e":"x"}},{"c":{"e":"y"}}]}}"#, "d.m[].c.e", text("x\ny")),
        (r#"{"m[].c":"x"}"#, "m[].c", text("x")),
        (r#"{"m":[{"c":"x"}]}"#, "m.c", None),
    ] {
        assert_eq!(value_at(json, path), expected, "{json} {path}");
    }
}

#[test]
fn paths_of_fields_inside_lists_are_collected() {
    assert_eq!(
        names(r#"{"m":[{"c":"x","d":[1]},{"e":1}],"t":["a"]}"#, &[]),
        ["m", "m[].c", "m[].d", "m[].e", "t", "t[]"]
    );
}

#[test]
fn deeply_nested_values_without_wanted_paths_are_skipped() {
    let (open, close) = ("[".repeat(50_000), "]".repeat(50_000));
    let objects = r#"{"a":"#.repeat(50_000);
    for odd in [format!("{open}{close}"), format!("{objects}1{}", "}".repeat(50_000))] {
        let json = format!(r#"{{"odd":{odd},"text":"x"}}"#);
        assert_eq!(value_at(&json, "text"), Some(Value::Text("x".into())));
    }
}

#[test]
fn a_path_that_is_wanted_twice_can_be_taken_twice() {
    let wanted = ["a", "b.c", "a"].map(str::to_owned);
    let mut row = JsonRow::parse(br#"{"a":"x","b":{"c":1}}"#, &wanted, false).unwrap();
    let taken: Vec<_> = ["a", "a", "a", "b.c", "b.c"].map(|path| row.take(path)).into();
    let text = Some(Value::Text("x".into()));
    assert_eq!(taken, [text.clone(), text, None, Some(Value::Whole(1)), None]);
}
