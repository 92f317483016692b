//! Runs the commands of a page in one shell, and compares what they print.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use doppel_model::GroupId;

use super::fixtures;
use super::page::{Page, Step};
use crate::harness::ports::free_port;

/// The time limit of a page.
const PATIENCE: Duration = Duration::from_secs(180);

/// Where the commands look for a server unless they are told.
const DEFAULT_PORT: u16 = 7700;

/// Hosts whose ports are replaced.
const HOSTS: [&str; 3] = ["127.0.0.1:", "localhost:", "0.0.0.0:"];

/// Functions of the shell in which a page runs. `background` starts a command that does not end, and waits until it has printed
/// something and, where it prints the address of a server, until the server takes work.
const PRELUDE: &str = r#"
set -euo pipefail
background_ids=()
stop() {
    local id
    for id in "${background_ids[@]:+${background_ids[@]}}"; do kill -TERM "$id" 2>/dev/null || true; done
    for id in "${background_ids[@]:+${background_ids[@]}}"; do wait "$id" 2>/dev/null || true; done
    background_ids=()
}
trap stop EXIT
background() {
    local out id size last=-1 tries=0 url
    out=$(mktemp "$STEPS/background.XXXXXX")
    "$@" >"$out" 2>"$out.err" &
    id=$!
    while :; do
        size=$(stat -c %s "$out")
        case $1 in doppel) ;; *) size=$((size + $(stat -c %s "$out.err"))) ;; esac
        [ "$size" -gt 0 ] && [ "$size" = "$last" ] && break
        if ! kill -0 "$id" 2>/dev/null; then
            cat "$out"
            cat "$out.err" >&2
            wait "$id"
            return
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 400 ] || { cat "$out.err" >&2; echo "$* prints nothing" >&2; return 1; }
        last=$size
        sleep 0.2
    done
    background_ids+=("$id")
    cat "$out"
    case "$1 $2" in "doppel serve" | "doppel coordinator") ;; *) return 0 ;; esac
    url=$(grep -o 'https\?://[^ ]*' "$out" | head -1) || return 0
    for tries in $(seq 100); do
        curl -fsk -o /dev/null "$url/readyz" && return 0
        case $? in 7 | 22) sleep 0.1 ;; *) return 0 ;; esac
    done
}
"#;

/// Runs a page. Returns what is wrong with it.
pub(crate) fn run(page: &Page) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let work = home.path().join("work");
    fs::create_dir(&work).unwrap();
    for need in &page.needs {
        if !fixtures::provide(need, &work) {
            println!("{}: skipped, there is no {need}", page.path);
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{}: {need} is needed here", page.path);
            return Vec::new();
        }
    }
    let steps = page.steps();
    let ports = Ports::of(&steps);
    let mut script = PRELUDE.to_owned();
    for (at, step) in steps.iter().enumerate() {
        script += &format!("exec >\"$STEPS/{at}.out\" 2>\"$STEPS/{at}.err\"\n");
        if step.stops {
            script += "stop\n";
        }
        script += &shell_of(step, &ports);
    }
    script += "exec >\"$STEPS/done.out\"\n";
    fs::write(home.path().join("script"), &script).unwrap();
    let begin = Instant::now();
    let ended = wait(shell(home.path(), &work, &ports));
    println!("{}: {} commands in {:.1?}", page.path, steps.len(), begin.elapsed());
    compare(page, &steps, &ports, home.path(), &ended)
}

/// The shell of a page, in a process group of its own.
fn shell(home: &Path, work: &Path, ports: &Ports) -> Child {
    let programs = Path::new(env!("CARGO_BIN_EXE_doppel")).parent().unwrap();
    let mut path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    if let Some(folder) = fixtures::folder_of_nats_server() {
        path = format!("{folder}:{path}");
    }
    let mut command = Command::new("bash");
    for (variable, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOPPEL_")) {
        command.env_remove(variable);
    }
    command
        .arg(home.join("script"))
        .env("STEPS", home)
        .env("HOME", work)
        .env("PATH", path)
        .env("DOPPEL_SERVER", format!("http://127.0.0.1:{}", ports.real(DEFAULT_PORT)))
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(home.join("shell.err")).unwrap())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Waits for the shell. Returns what went wrong with it as a whole. Ends all of its processes that are left.
fn wait(mut shell: Child) -> String {
    let group = format!("-{}", shell.id());
    let signal = |name: &str| {
        let _ = Command::new("kill").args(["-s", name, "--", &group]).stderr(Stdio::null()).status();
    };
    let begin = Instant::now();
    let mut ended = String::new();
    while shell.try_wait().unwrap().is_none() {
        if begin.elapsed() > PATIENCE {
            ended = format!("it takes longer than {PATIENCE:?}");
            signal("TERM");
            thread::sleep(Duration::from_secs(5));
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    signal("KILL");
    let status = shell.wait().unwrap();
    if ended.is_empty() && !status.success() { status.to_string() } else { ended }
}

/// The text of a step for the shell.
fn shell_of(step: &Step, ports: &Ports) -> String {
    let command = ports.replace(&step.command, true);
    let command = match in_background(command.trim_end()) {
        Some(command) => format!("{}\n", command.replace("background doppel serve", &ports.serve())),
        None => command,
    };
    match step.ends_with {
        0 => command,
        code => format!(
            "set +e\n{command}code=$?\nset -e\n[ \"$code\" = {code} ] || {{ echo \"exit code $code\" >&2; exit 1; }}\n"
        ),
    }
}

/// The command with the word `background` in front of its program, if it does not end by itself.
fn in_background(command: &str) -> Option<String> {
    let mut rest = command;
    // Assignments in front of the program.
    while let Some((word, after)) = rest.split_once(' ') {
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        });
        if !is_assignment || word.contains("$(") {
            break;
        }
        rest = after;
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let is_server = match words.as_slice() {
        _ if words.contains(&"--help") => false,
        ["doppel", "serve" | "tier1" | "tier2" | "coordinator", ..] | ["nats-server", ..] => true,
        ["doppel", "dev-cluster", option, ..] => option.starts_with("--"),
        ["doppel", "changes", options @ ..] => options.contains(&"--follow"),
        [.., "&"] => true,
        _ => false,
    };
    let assignments = &command[..command.len() - rest.len()];
    is_server.then(|| format!("{assignments}background {}", rest.trim_end_matches('&')))
}

/// The ports that a page names, and those that its processes use.
struct Ports(BTreeMap<u16, u16>);

impl Ports {
    fn of(steps: &[Step]) -> Self {
        let mut ports = BTreeMap::from([(DEFAULT_PORT, free_port())]);
        for step in steps {
            for host in HOSTS {
                for (at, _) in step.command.match_indices(host) {
                    if let Some(port) = port_at(&step.command[at + host.len()..]) {
                        ports.entry(port).or_insert_with(free_port);
                    }
                }
            }
        }
        Self(ports)
    }

    fn real(&self, port: u16) -> u16 {
        self.0[&port]
    }

    /// What starts `doppel serve` in the background: its address is the default one unless the command says another.
    fn serve(&self) -> String {
        format!("DOPPEL_LISTEN=127.0.0.1:{} background doppel serve", self.real(DEFAULT_PORT))
    }

    /// The text with the ports of the processes instead of those of the page, or the other way round.
    fn replace(&self, text: &str, to_real: bool) -> String {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(':') {
            let (before, after) = rest.split_at(at + 1);
            replaced.push_str(before);
            rest = after;
            let known = |port: u16| match to_real {
                true => HOSTS
                    .iter()
                    .any(|host| before.ends_with(host))
                    .then(|| self.0.get(&port).copied())
                    .flatten(),
                false => self.0.iter().find(|&(_, &real)| real == port).map(|(&shown, _)| shown),
            };
            if let Some(port) = port_at(rest) {
                replaced += &known(port).unwrap_or(port).to_string();
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            }
        }
        replaced + rest
    }
}

/// The port with which a text begins.
fn port_at(text: &str) -> Option<u16> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (4..=5).contains(&digits).then(|| text[..digits].parse().ok()).flatten()
}

/// Compares what the steps printed with what the page shows.
fn compare(page: &Page, steps: &[Step], ports: &Ports, home: &Path, ended: &str) -> Vec<String> {
    let read = |name: String| {
        let bytes = fs::read(home.join(name)).unwrap_or_default();
        ports.replace(&String::from_utf8_lossy(&bytes), false)
    };
    let reached = (0..steps.len()).take_while(|at| home.join(format!("{at}.out")).exists()).count();
    let mut wrong = Vec::new();
    if !ended.is_empty() || !home.join("done.out").exists() {
        let at = reached.saturating_sub(1);
        let Step { line, command, .. } = &steps[at];
        let printed = read(format!("{at}.out")) + &read(format!("{at}.err")) + &read("shell.err".to_owned());
        wrong.push(format!("{}:{line}: {command}fails ({ended}) and prints:\n{printed}", page.path));
        // What the failed command shows is not compared.
        return wrong.into_iter().chain(differences(page, &steps[..at], &read)).collect();
    }
    differences(page, steps, &read)
}

fn differences(page: &Page, steps: &[Step], read: &impl Fn(String) -> String) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let Some(shown) = &step.shown else { continue };
        let (out, err) = (read(format!("{at}.out")), read(format!("{at}.err")));
        let shown: Vec<String> = shown.iter().map(|line| without_ids(line)).collect();
        // A terminal shows both; in which order depends on the command.
        let orders = [out.clone(), format!("{out}{err}"), format!("{err}{out}")];
        let fits = |printed: &String| {
            let printed = without_ids(printed);
            let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
            all_match(&shown, &lines)
        };
        if !orders.iter().any(fits) {
            let (path, line, command) = (&page.path, step.line, &step.command);
            let shown = shown.join("\n");
            wrong.push(format!("{path}:{line}: {command}shows:\n{shown}\nand prints:\n{out}{err}"));
        }
    }
    wrong
}

/// Whether `line` is `pattern`, where each `…` of the pattern is any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        last = Some(part);
        rest = &rest[at + part.len()..];
    }
    last.map_or(rest.is_empty(), |last| line.ends_with(last))
}

/// Whether the lines fit; a line `…` of the pattern is any number of lines.
fn all_match(patterns: &[String], lines: &[&str]) -> bool {
    match patterns.split_first() {
        None => lines.is_empty(),
        Some((pattern, patterns)) if pattern == "…" => {
            (0..=lines.len()).any(|skipped| all_match(patterns, &lines[skipped..]))
        }
        Some((pattern, patterns)) => lines
            .split_first()
            .is_some_and(|(line, lines)| matches(pattern, line) && all_match(patterns, lines)),
    }
}

/// Group ids depend on which pages meet first; each becomes `g-`.
fn without_ids(text: &str) -> String {
    let is_id = |word: &str| word.parse::<GroupId>().is_ok();
    let end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    text.split_inclusive(end)
        .map(|word| {
            let (name, rest) = word.split_at(word.find(end).unwrap_or(word.len()));
            if is_id(name) { format!("g-{rest}") } else { word.to_owned() }
        })
        .collect()
}

#[test]
fn an_ellipsis_is_any_text() {
    assert!(matches("a … c", "a b c") && matches("…", "") && matches("a…", "abc") && matches("ab", "ab"));
    assert!(!matches("a … c", "a b d") && !matches("a", "ab") && !matches("…b…", "ac"));
    let patterns = ["a", "…", "z"].map(str::to_owned);
    assert!(all_match(&patterns, &["a", "z"]) && all_match(&patterns, &["a", "b", "c", "z"]));
    assert!(!all_match(&patterns, &["a", "b"]) && !all_match(&patterns, &["z"]));
    assert_eq!(without_ids(r#"{"group":"g12-0","g":"g-1"} g1-3"#), r#"{"group":"g-","g":"g-1"} g-"#);
}

#[test]
fn servers_go_to_the_background_on_free_ports() {
    let background = |command: &str| in_background(command).unwrap_or_default();
    assert_eq!(background("doppel serve --data d &"), "background doppel serve --data d ");
    assert_eq!(background("A_B=c doppel tier1"), "A_B=c background doppel tier1");
    assert_eq!(background("doppel serve --help") + &background("doppel dev-cluster kill a"), "");
    let ports = Ports(BTreeMap::from([(7700, 12001)]));
    assert_eq!(ports.replace("a:7700 http://localhost:7700/", true), "a:7700 http://localhost:12001/");
    assert_eq!(ports.replace("http://127.0.0.1:12001", false), "http://127.0.0.1:7700");
}
