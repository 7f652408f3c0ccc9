//! What each module of a corpus has to compute. The order of precedence is in `tests/corpus/README.md`.

use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A folder of modules and what is known of them.
pub(crate) struct Corpus {
    folder: PathBuf,
    index: HashMap<String, Value>,
    exceptions: Vec<Value>,
}

/// A module and its calls.
pub(crate) struct Case {
    pub(crate) path: PathBuf,
    file: String,
    pub(crate) sequences: Vec<Vec<(Call, Expected)>>,
}

/// One call of an exported function.
pub(crate) struct Call {
    pub(crate) function: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) kinds: Vec<String>,
}

/// How a call has to end.
#[derive(Clone)]
pub(crate) enum Expected {
    /// With these results.
    Outputs { texts: Vec<String>, tolerance: (f64, f64) },
    /// With one of these.
    OneOf(Vec<Expected>),
    /// With any results: the machine code is wrong and reads what nobody wrote.
    Undefined,
    /// With this status, and this in the message.
    Status { name: String, contains: Option<String> },
}

impl Case {
    /// `RELEASE/MODE/NAME`.
    pub(crate) fn name(&self) -> &str {
        self.file.trim_start_matches("modules/").trim_end_matches(".vmfb")
    }
}

/// Modes whose executables are machine code, and the architecture that runs them.
const MACHINE_CODE: [(&str, &str); 6] = [
    ("inline-elf", "x86_64"),
    ("inline-elf-debug", "x86_64"),
    ("inline-system", "x86_64"),
    ("async-elf", "x86_64"),
    ("inline-elf-aarch64", "aarch64"),
    ("inline-elf-riscv64", "riscv64"),
];

impl Corpus {
    pub(crate) fn read(folder: &Path) -> Self {
        let parse = |path: &Path| std::fs::read(path).ok().map(|bytes| serde_json::from_slice::<Value>(&bytes).expect("valid JSON"));
        let index = parse(&folder.join("index.json")).unwrap_or_default();
        let entries = index["modules"].as_array().cloned().unwrap_or_default();
        let index = entries.into_iter().map(|entry| (text(&entry["file"]), entry)).collect();
        let exceptions = parse(&folder.join("exceptions.json")).and_then(|value| value.as_array().cloned()).unwrap_or_default();
        Self { folder: folder.to_owned(), index, exceptions }
    }

    /// Every module in the folder, with its calls.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut files = Vec::new();
        find_modules(&self.folder.join("modules"), &mut files);
        files.sort();
        files.iter().map(|path| self.case(path)).collect()
    }

    fn case(&self, path: &Path) -> Case {
        let file = path.strip_prefix(&self.folder).expect("in the folder").to_string_lossy().replace('\\', "/");
        let parts: Vec<&str> = file.split('/').collect();
        let [_, _, mode, name] = parts[..] else { panic!("{file} is not modules/RELEASE/MODE/NAME.vmfb") };
        let program = self.folder.join("programs").join(name.replace(".vmfb", ".json"));
        let program: Value = serde_json::from_slice(&std::fs::read(&program).expect("a program's JSON")).expect("valid JSON");
        let machine_code = MACHINE_CODE.iter().find(|(candidate, _)| *candidate == mode);
        let foreign = machine_code.is_some_and(|(_, architecture)| *architecture != std::env::consts::ARCH);
        let sequences = program["sequences"].as_array().into_iter().flatten().enumerate();
        let sequences = sequences.map(|(number, sequence)| self.sequence(&file, number, sequence, foreign)).collect();
        Case { path: path.to_owned(), file, sequences }
    }

    fn sequence(&self, file: &str, number: usize, sequence: &Value, foreign: bool) -> Vec<(Call, Expected)> {
        let calls = sequence["calls"].as_array().into_iter().flatten();
        calls
            .enumerate()
            .map(|(position, call)| {
                let expected = if foreign && self.has_executable(file) {
                    // The program itself refuses when no loader takes its executable.
                    Expected::Status { name: "UNAVAILABLE".into(), contains: None }
                } else {
                    self.expected(file, number, position, call)
                };
                let call = Call { function: text(&call["function"]), inputs: texts(&call["inputs"]), kinds: texts(&call["input_kinds"]) };
                (call, expected)
            })
            .collect()
    }

    fn has_executable(&self, file: &str) -> bool {
        let imports = self.index.get(file).map(|entry| entry["imports"].as_array().cloned().unwrap_or_default());
        imports.is_none_or(|imports| imports.iter().any(|import| import["name"] == "hal_loader.executable.load"))
    }

    fn expected(&self, file: &str, number: usize, position: usize, call: &Value) -> Expected {
        let tolerance = (call["rtol"].as_f64().unwrap_or(0.0), call["atol"].as_f64().unwrap_or(0.0));
        let outputs = |key: &str| Expected::Outputs { texts: texts(&call[key]), tolerance };
        let applies = |entry: &&Value| entry["file"] == file && (entry["function"] == "*" || entry["function"] == call["function"]);
        if let Some(exception) = self.exceptions.iter().find(applies) {
            let expect = text(&exception["expect"]);
            return match expect.as_str() {
                "outputs" => outputs("outputs"),
                "undefined" => Expected::Undefined,
                _ => Expected::Status { name: expect, contains: None },
            };
        }
        let matching = self.index.get(file).map(|entry| &entry["matching"]);
        let observed = matching.and_then(|matching| matching["observed"].as_array()).into_iter().flatten();
        // What was observed is that of a sequence of one call; of longer ones that of its last call.
        if let Some(observed) = observed.into_iter().find(|observed| observed["sequence"] == number && position == 0) {
            return Expected::Outputs { texts: texts(&observed["outputs"]), tolerance };
        }
        let vm_outputs = self.index.get(file).is_some_and(|entry| entry["vm_outputs"] == true || entry["matching"]["vm_outputs"] == true);
        if vm_outputs && !call["vm_outputs"].is_null() {
            return outputs("vm_outputs");
        }
        if let Some(status) = call["status"].as_str() {
            return Expected::Status { name: status.into(), contains: call["message_contains"].as_str().map(Into::into) };
        }
        match self.observed_elsewhere(file, number).filter(|_| position == 0) {
            Some(texts) => Expected::OneOf(vec![outputs("outputs"), Expected::Outputs { texts, tolerance }]),
            None => outputs("outputs"),
        }
    }

    /// For modules that no runtime of their release was run on (other architectures): what the runtime of the release, or of
    /// another one, gave for the same program where compilers let two bindings alias.
    fn observed_elsewhere(&self, file: &str, number: usize) -> Option<Vec<String>> {
        let entry = self.index.get(file).filter(|entry| entry["matching"].is_null())?;
        let same_program = self.index.values().filter(|other| other["program"] == entry["program"]);
        let mut observed = same_program.flat_map(|other| other["matching"]["observed"].as_array().into_iter().flatten());
        observed.find(|observed| observed["sequence"] == number).map(|observed| texts(&observed["outputs"]))
    }
}

fn find_modules(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_modules(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "vmfb") {
            files.push(path);
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}
