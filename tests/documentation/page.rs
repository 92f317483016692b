//! The blocks of a page, and the marks on them.
//!
//! Blocks of the languages `console`, `sh` and `bash` run. In a `console` block, a line that begins with `$ ` is a command, a backslash
//! at its end or a here-document continues it, and the other lines are what it prints. `…` stands for any text, and a line `…` for any
//! number of lines. Of an `sh` or `bash` block, nothing that it prints is compared.
//!
//! A command that does not end (`doppel serve`, `doppel dev-cluster`, a command with `&` at its end) goes on in the background as soon
//! as it has printed something.
//!
//! Comments of HTML mark what is different:
//!
//! - `<!-- not run: needs systemd -->` above a block: the block does not run, and why.
//! - `<!-- ends with: 4 -->` above a block: the exit code of its last command.
//! - `<!-- stop -->` before a block: what runs in the background ends here, as with Ctrl-C.
//! - `<!-- with: crawl, nats-server -->`: files of `fixtures.rs` that the page finds in its directory, or programs that it needs.

/// Languages of blocks that run.
const COMMANDS: [&str; 3] = ["console", "sh", "bash"];

/// Languages of blocks that are no commands. The test of the Python module runs `python`.
const OTHERS: [&str; 16] = [
    "python", "text", "json", "jsonl", "yaml", "toml", "html", "xml", "sql", "nginx", "caddy", "lua", "rust",
    "ini", "csv", "promql",
];

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct Page {
    /// Path below the root of the repository.
    pub(crate) path: String,
    pub(crate) blocks: Vec<Block>,
    /// Fixtures and programs that the page needs.
    pub(crate) needs: Vec<String>,
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// Line of its fence, from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) lines: Vec<String>,
    /// Why the block does not run.
    pub(crate) not_run: Option<String>,
    /// Exit code of the last command.
    pub(crate) ends_with: i32,
    /// Whether what runs in the background ends before this block.
    pub(crate) stops: bool,
}

/// A command, and the lines that the page shows below it.
#[derive(Debug)]
pub(crate) struct Step {
    /// Line of the page, from 1.
    pub(crate) line: usize,
    pub(crate) command: String,
    /// `None` where the page shows no output.
    pub(crate) shown: Option<Vec<String>>,
    pub(crate) ends_with: i32,
    pub(crate) stops: bool,
}

/// Marks that belong to the next block.
#[derive(Debug, Default)]
struct Marks {
    not_run: Option<String>,
    ends_with: i32,
    stops: bool,
}

/// Reads the blocks and marks of a page.
pub(crate) fn parse(path: &str, text: &str) -> Page {
    let mut page = Page { path: path.to_owned(), blocks: Vec::new(), needs: Vec::new() };
    let mut marks = Marks::default();
    let mut fence: Option<(String, usize)> = None;
    for (at, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if let Some((end, indent)) = &fence {
            if bare.trim_end() == end {
                fence = None;
            } else {
                let kept = line.char_indices().take_while(|&(at, c)| at < *indent && c == ' ').count();
                page.blocks.last_mut().unwrap().lines.push(line[kept..].to_owned());
            }
        } else if bare.starts_with("```") || bare.starts_with("~~~") {
            let length = bare.len() - bare.trim_start_matches(['`', '~']).len();
            let (mark, language) = bare.split_at(length);
            fence = Some((mark.to_owned(), indent));
            let Marks { not_run, ends_with, stops } = std::mem::take(&mut marks);
            let (language, lines) = (language.trim().to_owned(), Vec::new());
            page.blocks.push(Block { line: at + 1, language, lines, not_run, ends_with, stops });
        } else if let Some(comment) =
            bare.strip_prefix("<!--").and_then(|rest| rest.trim_end().strip_suffix("-->"))
        {
            let (name, value) = comment.split_once(':').unwrap_or((comment, ""));
            match name.trim() {
                "not run" => marks.not_run = Some(value.trim().to_owned()),
                "ends with" => marks.ends_with = value.trim().parse().unwrap(),
                "stop" => marks.stops = true,
                "with" => page.needs.extend(value.split(',').map(|need| need.trim().to_owned())),
                _ => {}
            }
        } else if !bare.is_empty() {
            marks.not_run = None;
            marks.ends_with = 0;
        }
    }
    page
}

impl Page {
    /// Whether anything on the page runs.
    pub(crate) fn has_commands(&self) -> bool {
        self.blocks.iter().any(Block::runs)
    }

    /// The commands of the page in order.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut stops = false;
        let mut steps = Vec::new();
        for block in &self.blocks {
            stops |= block.stops;
            if block.runs() {
                let mut of_block = block.steps();
                if let Some(first) = of_block.first_mut() {
                    first.stops = std::mem::take(&mut stops);
                }
                steps.extend(of_block);
            }
        }
        steps
    }

    /// Blocks that neither run nor say why they do not.
    pub(crate) fn faults(&self) -> Vec<String> {
        let at = |block: &Block| format!("{}:{}", self.path, block.line);
        let mut faults = Vec::new();
        for block in &self.blocks {
            let language = block.language.as_str();
            if block.not_run.as_ref().is_some_and(String::is_empty) {
                faults.push(format!("{}: `not run` needs a reason", at(block)));
            } else if language.is_empty() {
                faults.push(format!("{}: the block has no language", at(block)));
            } else if !COMMANDS.contains(&language) && !OTHERS.contains(&language) {
                faults.push(format!("{}: `{language}` is no language of a block", at(block)));
            } else if block.runs() && block.steps().is_empty() {
                faults.push(format!("{}: the block has no command", at(block)));
            } else if language == "console" && block.runs() && !block.lines[0].starts_with("$ ") {
                faults.push(format!("{}: a console block begins with `$ `", at(block)));
            }
        }
        faults
    }
}

impl Block {
    fn runs(&self) -> bool {
        COMMANDS.contains(&self.language.as_str()) && self.not_run.is_none()
    }

    /// The commands of the block. The lines of an `sh` block are commands, but those that go on belong together.
    fn steps(&self) -> Vec<Step> {
        let console = self.language == "console";
        let mut steps: Vec<Step> = Vec::new();
        let mut lines = self.lines.iter().enumerate();
        while let Some((at, line)) = lines.next() {
            let first = match line.strip_prefix("$ ") {
                Some(command) if console => command,
                None if !console => line,
                _ => {
                    if let Some(Step { shown: Some(shown), .. }) = steps.last_mut() {
                        shown.push(line.clone());
                    }
                    continue;
                }
            };
            let mut command = format!("{first}\n");
            while let Some(next) = is_open(&command).then(|| lines.next()).flatten() {
                command.push_str(next.1);
                command.push('\n');
            }
            let (line, shown) = (self.line + at + 1, console.then(Vec::new));
            if console || !first.trim().is_empty() {
                steps.push(Step { line, command, shown, ends_with: 0, stops: false });
            }
        }
        if let Some(last) = steps.last_mut() {
            last.ends_with = self.ends_with;
        }
        steps
    }
}

/// Whether a command goes on in the next line: after a backslash, in a here-document, in quotes, or in a compound command.
fn is_open(command: &str) -> bool {
    if command.ends_with("\\\n") {
        return true;
    }
    if let Some((_, rest)) = command.split_once("<<").filter(|(_, rest)| !rest.starts_with('<')) {
        let word = rest.split(|c: char| c.is_whitespace() || c == ')').next().unwrap_or_default();
        let word = word.trim_matches(['\'', '"', '-']);
        let ended = |line: &str| line == word;
        return !word.is_empty() && !command.lines().skip(1).any(ended);
    }
    let syntax = std::process::Command::new("bash").args(["-n", "-c", command]).output();
    !syntax.unwrap().status.success()
}

#[test]
fn a_page_has_blocks_steps_and_marks() {
    let text = "<!-- with: crawl, curl -->\n\n```console\n$ a \\\n  b\nc\n$ cat <<'END'\nx\nEND\n```\n<!-- not run: needs systemd -->\n```sh\nd\n\
                ```\n\n<!-- stop -->\nText.\n<!-- ends with: 4 -->\n   ```sh\n   e\n   for x in 1; do\n     f\n   done\n   ```\n";
    let page = parse("page.md", text);
    assert_eq!(page.needs, ["crawl", "curl"]);
    let steps = page.steps();
    let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(commands, ["a \\\n  b\n", "cat <<'END'\nx\nEND\n", "e\n", "for x in 1; do\n  f\ndone\n"]);
    assert_eq!(steps[0].shown.as_deref(), Some(["c".to_owned()].as_slice()));
    assert!(steps[2].stops && steps[2].ends_with == 0 && steps[3].ends_with == 4 && steps[3].line == 21);
    assert!(page.faults().is_empty());
    let fault = |text: &str| parse("page.md", text).faults().len();
    assert_eq!(
        [fault("```\na\n```\n"), fault("```shell\na\n```\n"), fault("<!-- not run: -->\n```sh\na\n```\n")],
        [1; 3]
    );
}
