//! Checks the systemd unit and the Debian package in `deploy/`. If a tool is missing, the test prints so and
//! passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// Whether a tool is installed. Prints a line if it is not.
fn has(tool: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: {tool} is not installed, so it cannot check deploy/");
    }
    is_there
}

/// Runs a command that must succeed, and returns its output.
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?} ended with {status}: {out}{errors}");
    out.into_owned()
}

/// Checks the exposure that systemd computes for the unit, from 0 (none) to 10 (everything): at most 2.0.
#[test]
fn the_systemd_unit_restricts_the_service() {
    if has("systemd-analyze") {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=true", "--threshold=20", "--no-pager"]);
        done(analyze.arg(deploy().join("doppel.service")));
    }
}

/// Builds the package from the binary under test, and installs it below a temporary directory.
#[test]
fn the_debian_package_can_be_installed_and_removed() {
    if !has("dpkg-deb") || !has("dpkg") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut build = Command::new(deploy().join("debian/build"));
    // Compress fast: the size of the package does not matter here.
    build.env("DPKG_DEB_COMPRESSOR_TYPE", "gzip").env("DPKG_DEB_COMPRESSOR_LEVEL", "1");
    let package = done(build.arg(env!("CARGO_BIN_EXE_doppel")).arg(home.path()));
    let package = package.trim();
    let info = done(Command::new("dpkg-deb").args(["--info", package]));
    for line in ["Package: doppel", &format!("Version: {}", env!("CARGO_PKG_VERSION")), "Depends: libc6 (>= "]
    {
        assert!(info.contains(line), "{info}");
    }
    let root = home.path().join("root");
    done(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&root));
    let version = done(Command::new(root.join("usr/bin/doppel")).arg("--version"));
    assert_eq!(version, format!("doppel {}\n", env!("CARGO_PKG_VERSION")));
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/doppel.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/doppel serve "), "{unit}");
    for file in [
        "etc/default/doppel",
        "usr/share/man/man1/doppel-serve.1.gz",
        "usr/share/bash-completion/completions/doppel",
        "usr/share/doc/doppel/copyright",
        "usr/share/doc/doppel/examples/winners.toml",
        "usr/share/doc/doppel/examples/alerts.yml",
        "usr/share/doc/doppel/examples/grafana-dashboard.json",
    ] {
        assert!(root.join(file).is_file(), "{file}");
    }
    // Files must belong to root, and nobody else may write to them.
    let contents = done(Command::new("dpkg-deb").args(["--contents", package]));
    for line in contents.lines() {
        assert!(line.contains(" root/root ") && !line[..10].ends_with("w-"), "{line}");
    }

    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can install the package");
        return;
    }
    let installed = home.path().join("installed");
    let database = installed.join("var/lib/dpkg");
    for dir in ["info", "updates", "triggers"] {
        fs::create_dir_all(database.join(dir)).unwrap();
    }
    for file in ["status", "available"] {
        fs::write(database.join(file), "").unwrap();
    }
    let dpkg = |arguments: &[&str]| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", installed.display())).args([
            "--force-not-root",
            "--force-script-chrootless",
            "--force-depends",
            "--force-bad-path",
        ]);
        // Without this option, dpkg writes to the log of the machine.
        dpkg.arg(format!("--log={}", installed.join("dpkg.log").display())).args(arguments);
        done(&mut dpkg)
    };
    dpkg(&["--install", package]);
    assert!(installed.join("usr/bin/doppel").is_file());
    assert!(dpkg(&["--status", "doppel"]).contains("Status: install ok installed"));
    assert_eq!(
        dpkg(&["--verify", "doppel"]),
        "",
        "the installed files must match the checksums of the package"
    );
    dpkg(&["--remove", "doppel"]);
    assert!(!installed.join("usr/bin/doppel").exists() && installed.join("etc/default/doppel").is_file());
    dpkg(&["--purge", "doppel"]);
    assert!(!installed.join("etc/default/doppel").exists());
}
