//! Runs the versions of a history through `doppel dedup` in another order, without a data directory and with
//! one.

use std::fs;

use doppel_model::Random;
use serde_json::Value;

use super::front::{Front as _, OneProcess};
use super::history::MARKETS;
use super::served::{Checked, Served, differences, equal, live};
use crate::harness::{lines_of, run, run_ok};

/// Compares the results of batches over the versions that arrived with the model.
pub(crate) fn compare(served: &Served<'_>) -> Checked {
    let answers = live(&served.model(None).answers(None));
    if answers.is_empty() {
        return Ok(());
    }
    let mut random = Random::of(served.history.seed, [4, 0, 0]);
    let mut versions = served.arrived.clone();
    for last in (1..versions.len()).rev() {
        versions.swap(last, random.index(last + 1));
    }
    // Put some lines into a second file, which may also repeat a line.
    let lines: Vec<String> =
        versions.iter().map(|version| served.history.line(version).to_string()).collect();
    let cut = random.index(lines.len() + 1);
    let again = &lines[..random.index(cut + 1)];
    let files = [("one.jsonl", &lines[..cut]), ("two.jsonl", &[&lines[cut..], again].concat()[..])];
    let mut inputs = Vec::new();
    for (name, lines) in files.iter().filter(|(_, lines)| !lines.is_empty()) {
        fs::write(served.file(name), lines.join("\n") + "\n").unwrap();
        inputs.push(served.file(name).display().to_string());
    }
    let out = served.file("out.jsonl").display().to_string();
    let options = served.options();
    let dedup = |extra: &[&str]| -> Vec<Value> {
        let arguments = ["dedup", "--latest", "--out", &out].into_iter().chain(extra.iter().copied());
        run_ok(arguments.chain(options.iter().map(String::as_str)).chain(inputs.iter().map(String::as_str)));
        lines_of(&fs::read_to_string(&out).unwrap())
    };
    equal("dedup --latest", &differences(&answers, &dedup(&[]), "status"))?;
    if random.below(3) == 0 {
        let market = &MARKETS[random.index(MARKETS.len())];
        let answers = live(&served.model(None).answers(Some(market)));
        let of_market = dedup(&["--market", market.name]);
        equal(
            &format!("dedup --latest --market {}", market.name),
            &differences(&answers, &of_market, "status"),
        )?;
    }
    if random.below(4) == 0 {
        equal("dedup --latest --incremental", &differences(&answers, &dedup(&["--incremental"]), "status"))?;
    }
    if random.below(3) == 0 {
        directory(served, &inputs)?;
    }
    Ok(())
}

/// Makes a data directory with a batch, serves it, and compares the answers.
fn directory(served: &Served<'_>, inputs: &[String]) -> Checked {
    let data = served.file("batch");
    let options = served.directory_options();
    let made = ["dedup".to_owned(), "--data".to_owned(), data.display().to_string()];
    run_ok(made.iter().chain(&options).chain(inputs));
    let process = OneProcess::start(data.clone(), served.server_options());
    served.compare(process.server()).map_err(|found| format!("a directory of dedup: {found}"))?;
    if !process.terminate() {
        return Err("the server of the directory ended with an error".to_owned());
    }
    let checked = run(["check".as_ref(), data.as_os_str()]);
    if checked.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&checked.stdout).into_owned()) }
}
