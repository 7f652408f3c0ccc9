//! Runs the tools and collects what they say.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a process did.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The standard output of a run that must succeed.
    pub(crate) fn success(self) -> String {
        assert_eq!(self.code, Some(0), "{self}");
        self.stdout
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit code {code}")?,
            None => writeln!(f, "killed by a signal")?,
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                writeln!(f, "--- {name}")?;
                text.lines().try_for_each(|line| writeln!(f, "{}", line.trim_end()))?;
            }
        }
        Ok(())
    }
}

/// The top folder of the tree, where the tools run, so that messages hold short paths.
pub(crate) fn root() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR"));
    tools.parent().unwrap_or(tools).to_owned()
}

/// Runs `vm-run`.
pub(crate) fn vm_run(arguments: &[&str]) -> Outcome {
    run(env!("CARGO_BIN_EXE_vm-run"), arguments, &[])
}

/// Runs `vm-dump`.
pub(crate) fn vm_dump(arguments: &[&str]) -> Outcome {
    run(env!("CARGO_BIN_EXE_vm-dump"), arguments, &[])
}

/// Runs `vm-bench`.
pub(crate) fn vm_bench(arguments: &[&str]) -> Outcome {
    run(env!("CARGO_BIN_EXE_vm-bench"), arguments, &[])
}

/// Runs a program with the given standard input.
pub(crate) fn run(program: &str, arguments: &[&str], input: &[u8]) -> Outcome {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .env_remove("COLUMNS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read its input is no error.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Outcome { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A temporary folder with files in it.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// An outcome as text in which this folder is called DIR.
    pub(crate) fn show(&self, outcome: &Outcome) -> String {
        outcome.to_string().replace(self.0.path().to_str().unwrap(), "DIR")
    }
}
