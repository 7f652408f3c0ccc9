//! Ctrl-C and requests to end, sent to the real programs.

use crate::programs;
use crate::support::{Folder, Outcome, root};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// So long may a program take to end on any machine.
const PATIENCE: Duration = Duration::from_secs(120);

struct Running {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    text: String,
}

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, text: String::new() }
    }

    /// Reads a line of output, which the program writes when it has got so far.
    fn line(&mut self) -> String {
        let start = self.text.len();
        self.stdout.read_line(&mut self.text).unwrap();
        self.text[start..].trim_end().to_owned()
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the program has ended.
    fn end(mut self) -> Outcome {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            if start.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("the program has not ended after {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stdout.read_to_string(&mut self.text).unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Outcome { code: self.child.wait().unwrap().code(), stdout: self.text, stderr }
    }
}

#[test]
fn a_signal_ends_a_run_with_a_message_and_no_output() {
    let folder = Folder::new();
    let slow = folder.write("slow.vmfb", programs::slow());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let output = format!("--output=@{}", folder.path("out.bin"));
        let mut running = Running::start(env!("CARGO_BIN_EXE_vm-run"), &[&slow, "--input=1", &output]);
        assert_eq!(running.line(), "EXEC @slow");
        running.send(signal);
        let outcome = running.end();
        assert_eq!(outcome.code, Some(code), "{outcome}");
        assert!(outcome.stderr.contains("CANCELLED") && outcome.stderr.contains("interrupted"), "{outcome}");
        assert_eq!(outcome.stdout, "EXEC @slow\n");
        assert_eq!(folder.names(), ["slow.vmfb"], "no output was begun");
    }
}

#[test]
fn a_check_ends_after_the_test_that_was_interrupted() {
    let folder = Folder::new();
    let endless = folder.write("endless.vmfb", programs::tests_then_endless());
    let mut running = Running::start(env!("CARGO_BIN_EXE_vm-check"), &[&endless]);
    assert_eq!(running.line(), "ok    good");
    running.send(Signal::INT);
    let outcome = running.end();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    // The signal came while the second test was running, or before it began.
    let running = outcome.stdout.contains("FAIL  forever") && outcome.stdout.contains("CANCELLED");
    let left = if running { "1 failed, 1 not run" } else { "0 failed, 2 not run" };
    assert!(outcome.stdout.ends_with(&format!("3 tests: 1 passed, {left} (interrupted)\n")), "{outcome}");
}

/// What was measured until then is printed.
#[test]
#[cfg(target_os = "linux")]
fn a_benchmark_reports_what_it_has_when_it_is_interrupted() {
    let arguments = ["samples/hello/add.vmfb", "--input=3", "--input=4", "--iterations=1000", "--repetitions=100000"];
    let running = Running::start(env!("CARGO_BIN_EXE_vm-bench"), &arguments);
    // A run takes well below a millisecond.
    let start = Instant::now();
    while processor_ticks(running.child.id()) < 20 {
        assert!(start.elapsed() < PATIENCE, "the program does not work");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.send(Signal::INT);
    let outcome = running.end();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    assert!(outcome.stderr.contains("interrupted"), "{outcome}");
    assert!(outcome.stdout.starts_with("add: ") && outcome.stdout.contains(" runs of 1000 calls"), "{outcome}");
}

/// Processor time of a process in hundredths of a second.
#[cfg(target_os = "linux")]
fn processor_ticks(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The fields behind the name, which is in parentheses; the twelfth is the time in the program itself.
    let field = status.rsplit_once(')').and_then(|(_, fields)| fields.split_whitespace().nth(11));
    field.and_then(|ticks| ticks.parse().ok()).unwrap()
}

/// Code that does not look for interruptions, here a loop that is measured without them, is ended with the process.
#[test]
#[cfg(target_os = "linux")]
fn the_second_signal_ends_the_process_at_once() {
    let folder = Folder::new();
    let trouble = folder.write("trouble.vmfb", programs::trouble());
    let mut running = Running::start(env!("CARGO_BIN_EXE_vm-bench"), &[&trouble, "--function=forever"]);
    let start = Instant::now();
    while processor_ticks(running.child.id()) < 5 {
        assert!(start.elapsed() < PATIENCE, "the program does not work");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.send(Signal::INT);
    std::thread::sleep(Duration::from_millis(50));
    assert!(running.child.try_wait().unwrap().is_none(), "the loop cannot end");
    // Signals that come too close to each other are one.
    while running.child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE, "the program has not ended");
        running.send(Signal::INT);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(running.end().code, Some(130));
}

/// The same without a second signal, as service managers and `timeout` send one.
#[test]
#[cfg(target_os = "linux")]
fn what_does_not_look_is_ended_a_little_later() {
    let folder = Folder::new();
    let trouble = folder.write("trouble.vmfb", programs::trouble());
    let running = Running::start(env!("CARGO_BIN_EXE_vm-bench"), &[&trouble, "--function=forever"]);
    let start = Instant::now();
    while processor_ticks(running.child.id()) < 5 {
        assert!(start.elapsed() < PATIENCE, "the program does not work");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.send(Signal::TERM);
    let outcome = running.end();
    assert_eq!(outcome.code, Some(143), "{outcome}");
    assert!(outcome.stderr.contains("does not look for interruptions"), "{outcome}");
}
