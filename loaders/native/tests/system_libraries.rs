//! System libraries from modules of the corpus: opened in memory and from files, called, and refused.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::Path;
use std::sync::Arc;
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_loader_native::{Placement, SystemLibraryLoader};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Config, Engine, Error, Meter, NativeCode, Result, Status};

const FORMAT: &str = "system-elf-x86_64";

/// The shared objects of all modules that the filter takes: program, bytes.
fn libraries(filter: impl Fn(&str, &str) -> bool) -> Vec<(String, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(corpus.join("index.json")).unwrap()).unwrap();
    let mut libraries = Vec::new();
    for module in index["modules"].as_array().unwrap().iter().filter(|module| module["mode"] == "inline-system") {
        let text = |key: &str| module[key].as_str().unwrap();
        if !filter(text("version"), text("program")) {
            continue;
        }
        let file = std::fs::read(corpus.join(text("file"))).unwrap();
        for data in module["rodata"].as_array().unwrap().iter().filter(|data| data["where"] == "outside") {
            let at = data["at"].as_u64().unwrap() as usize;
            let bytes = &file[at..at + data["bytes"].as_u64().unwrap() as usize];
            if bytes.starts_with(b"\x7FELF") {
                libraries.push((format!("{} {}", text("version"), text("program")), bytes.to_vec()));
            }
        }
    }
    libraries
}

fn one_library() -> Vec<u8> {
    libraries(|release, program| release == "3.13.0" && program == "ew_f32").remove(0).1
}

fn load_in(loader: &SystemLibraryLoader, bytes: &[u8], engine: &Engine) -> Result<Arc<dyn Executable>> {
    let data = Span::from_vector(bytes.to_vec());
    match loader.try_load(&ExecutableParameters {
        format: FORMAT,
        data: &data,
        constants: &[],
        engine,
        account: &MemoryAccount::default(),
    })? {
        Load::Loaded(executable) => Ok(executable),
        Load::NotMine(error) => Err(error),
    }
}

fn load(bytes: &[u8]) -> Result<Arc<dyn Executable>> {
    load_in(&SystemLibraryLoader::new(), bytes, &Engine::default())
}

fn refusal(bytes: &[u8]) -> Error {
    load(bytes).err().expect("the library was loaded")
}

/// `add` of `ew_f32`: two inputs and one output of eight f32.
fn assert_adds(executable: &dyn Executable) {
    let account = MemoryAccount::default();
    let floats = |value: f32| Span::copy_of(&[value.to_le_bytes(); 8].concat(), &account).unwrap();
    let (a, b, sum) = (floats(1.25), floats(-3.0), floats(0.0));
    let bindings = [&a, &b, &sum].map(|span| Binding { span, offset: 0, length: 32 });
    let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[], bindings: &bindings, concurrency: 1 };
    executable.dispatch(&mut Meter::default(), &dispatch).unwrap();
    assert_eq!(sum.to_vec().unwrap(), [(-1.75f32).to_le_bytes(); 8].concat());
}

#[test]
fn formats_are_matched_by_their_beginning() {
    let loader = SystemLibraryLoader::new();
    assert!(loader.query_support(FORMAT) && loader.query_support("system-elf-x86_64-foo"));
    assert_eq!(loader.formats(), [FORMAT]);
    for other in ["system-elf-arm_64", "system-dylib-x86_64", "embedded-elf-x86_64", "system-elf-", ""] {
        assert!(!loader.query_support(other), "{other}");
    }
}

#[test]
fn every_library_of_the_corpus_opens() {
    let libraries = libraries(|_, _| true);
    assert!(libraries.len() > 20, "{}", libraries.len());
    // All at once: none may be taken for another.
    let open: Vec<_> = libraries.iter().map(|(label, bytes)| load(bytes).unwrap_or_else(|error| panic!("{label}: {error}"))).collect();
    for ((label, _), executable) in libraries.iter().zip(&open) {
        assert!(executable.export_count() > 0, "{label}");
        if label.ends_with("ew_f32") {
            assert_adds(&**executable);
        }
    }
}

/// C10: memory first; in a directory everything is removed again, at once.
#[test]
fn c10_a_temporary_file_is_private_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let loader = SystemLibraryLoader::new().with_placement(Placement::Directory(directory.path().to_owned()));
    let (first, second) = (one_library(), one_library());
    let first = load_in(&loader, &first, &Engine::default()).unwrap();
    let second = load_in(&loader, &second, &Engine::default()).unwrap();
    assert_adds(&*first);
    assert_adds(&*second);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    // A failure leaves nothing behind either.
    assert!(load_in(&loader, b"no library", &Engine::default()).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn c10_no_file_is_written_where_memory_will_do() {
    let before = std::fs::read_dir(std::env::temp_dir()).unwrap().filter(|entry| is_ours(entry.as_ref().unwrap())).count();
    let executable = load(&one_library()).unwrap();
    let after = std::fs::read_dir(std::env::temp_dir()).unwrap().filter(|entry| is_ours(entry.as_ref().unwrap())).count();
    assert_eq!(before, after);
    assert_adds(&*executable);
}

fn is_ours(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with(&format!("vmfb-{}-", std::process::id()))
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let loader = SystemLibraryLoader::new().with_placement(Placement::Directory("/no/such/directory".into()));
    let error = load_in(&loader, &one_library(), &Engine::default()).err().unwrap();
    assert_eq!(error.status(), Status::Unavailable);
    assert!(error.message().contains("could not be put into a file"), "{error}");
}

/// C14: what the system says about a corrupt library is part of the error.
#[test]
fn c14_the_systems_text_is_in_the_error() {
    let mut bytes = one_library();
    // `e_version`, which this runtime leaves to the system.
    bytes[20] = 7;
    let error = refusal(&bytes);
    assert_eq!(error.status(), Status::Unavailable);
    assert!(error.message().contains("dlopen failed: ") && error.message().contains("ELF file version"), "{error}");
}

#[test]
fn what_is_no_library_for_this_machine_is_named() {
    let edited = |at: usize, value: &[u8]| {
        let mut bytes = one_library();
        bytes[at..at + value.len()].copy_from_slice(value);
        let error = refusal(&bytes);
        assert_eq!(error.status(), Status::FailedPrecondition);
        error.message().to_owned()
    };
    assert_eq!(edited(18, &[0xB7]), "the system library is for aarch64, this is x86_64");
    assert_eq!(edited(18, &[0xF3]), "the system library is for riscv64, this is x86_64");
    assert_eq!(edited(18, &[0x99, 0x99]), "the system library is for the machine 39321 (64-bit), this is x86_64");
    assert_eq!(edited(0, b"X"), "the system library is damaged: it begins with [58, 45, 4c, 46], not with an ELF header");
    let error = refusal(b"this is no shared object, and it is longer than an ELF header would be.........");
    assert_eq!(error.message(), "the system library is damaged: it begins with [74, 68, 69, 73], not with an ELF header");
}

/// The system executes nothing from some places. Where there is none that a test can write to, nothing is tested.
#[test]
fn a_directory_that_forbids_execution_is_named() {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let forbidding = mounts.lines().filter(|line| line.contains("noexec")).filter_map(|line| line.split(' ').nth(1));
    let Some(directory) = forbidding.filter_map(|path| tempfile::tempdir_in(path).ok()).next() else { return };
    let loader = SystemLibraryLoader::new().with_placement(Placement::Directory(directory.path().to_owned()));
    let error = load_in(&loader, &one_library(), &Engine::default()).err().unwrap();
    for wanted in ["failed to map segment", directory.path().to_str().unwrap(), "may not be executed (noexec): choose a directory"] {
        assert!(error.message().contains(wanted), "{wanted}: {error}");
    }
}

#[test]
fn a_library_that_is_cut_off_does_not_reach_the_system() {
    let bytes = one_library();
    for length in [5000, 1000, 100, 20, 4] {
        let error = refusal(&bytes[..length]);
        assert_eq!(error.status(), Status::FailedPrecondition, "{length}: {error}");
    }
}

#[test]
fn a_shared_object_of_another_kind_is_no_executable_library() {
    // A library of this process, found through its map.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5)).find(|path| path.contains("libgcc_s.so"));
    let error = refusal(&std::fs::read(path.unwrap()).unwrap());
    assert_eq!(error.status(), Status::NotFound);
    assert!(error.message().contains("iree_hal_executable_library_query"), "{error}");
}

#[test]
fn an_engine_without_native_code_says_how_to_compile() {
    let engine = Engine::new(Config::new().native_code(NativeCode::Deny));
    let error = load_in(&SystemLibraryLoader::new(), &one_library(), &engine).err().unwrap();
    assert_eq!(error.status(), Status::PermissionDenied);
    assert!(error.message().contains(FORMAT) && error.message().contains("--iree-hal-target-backends=vmvx"), "{error}");
}

#[test]
fn an_executable_outlives_its_loader_and_crosses_threads() {
    let executable = load(&one_library()).unwrap();
    std::thread::spawn(move || assert_adds(&*executable)).join().unwrap();
}
