//! The loader as programs see it: formats, refusals, what happens where pages may not be executed.

mod support;

use support::corpus_image;
use support::edit::{DT_RELA, Edited};
use vmfb_hal::{ExecutableLoader, ExecutableParameters, Load, load_executable};
use vmfb_loader_elf::{Architecture, CodePages, ElfLoader};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Config, Engine, Error, NativeCode, Status};

fn own_format() -> String {
    format!("embedded-elf-{}", Architecture::host().unwrap().name)
}

fn try_load(loader: ElfLoader, bytes: &[u8], engine: &Engine) -> Result<Load, Error> {
    let data = Span::from_vector(bytes.to_vec());
    loader.try_load(&ExecutableParameters {
        format: &own_format(),
        data: &data,
        constants: &[],
        engine,
        account: &MemoryAccount::default(),
    })
}

fn refusal(loader: ElfLoader, bytes: &[u8], engine: &Engine) -> Error {
    match try_load(loader, bytes, engine) {
        Err(error) => error,
        Ok(_) => panic!("the executable was loaded"),
    }
}

#[test]
fn formats_are_matched_by_their_beginning() {
    let loader = ElfLoader::new();
    assert!(loader.query_support(&own_format()) && loader.query_support(&format!("{}-foo", own_format())));
    assert!(loader.query_support("embedded-fatelf"));
    assert_eq!(loader.formats(), [own_format()]);
    for other in ["embedded-elf-", "embedded-elf", "vmvx-bytecode-fb", "system-elf-x86_64", "static", "", "embedded-elf-sparc"] {
        assert!(!loader.query_support(other), "{other}");
    }
}

#[test]
fn an_engine_without_native_code_says_how_to_compile() {
    let engine = Engine::new(Config::new().native_code(NativeCode::Deny));
    let error = refusal(ElfLoader::new(), &Edited::new().bytes, &engine);
    assert_eq!(error.status(), Status::PermissionDenied);
    assert!(error.message().contains(&own_format()) && error.message().contains("--iree-hal-target-backends=vmvx"), "{error}");
}

#[test]
fn an_image_for_another_machine_names_both() {
    let foreign = if cfg!(target_arch = "aarch64") { ("inline-elf", "x86_64") } else { ("inline-elf-aarch64", "arm_64") };
    let error = refusal(ElfLoader::new(), &corpus_image("3.13.0", foreign.0, "ew_f32").bytes, &Engine::default());
    let own = Architecture::host().unwrap().name;
    assert_eq!(error.message(), format!("ELF e_machine: the code is for {}, this machine runs {own}", foreign.1));
}

#[test]
fn bytes_that_are_no_elf_image_are_refused() {
    let error = refusal(ElfLoader::new(), b"PK\x03\x04 surely no ELF image", &Engine::default());
    assert!(error.message().starts_with("ELF e_ident[EI_MAG]"), "{error}");
    let error = refusal(ElfLoader::new(), b"", &Engine::default());
    assert!(error.message().contains("0 bytes"), "{error}");
}

#[test]
fn a_failure_says_which_loader_failed() {
    let (data, engine) = (Span::from_static(b"nothing"), Engine::default());
    let format = own_format();
    let parameters =
        ExecutableParameters { format: &format, data: &data, constants: &[], engine: &engine, account: &MemoryAccount::default() };
    let error = load_executable(&[std::sync::Arc::new(ElfLoader::new())], &parameters).err().unwrap();
    assert!(error.to_string().contains("with the embedded-elf loader"), "{error}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn c7_without_executable_pages_the_error_says_so() {
    let loader = ElfLoader::new().with_code_pages(CodePages::Refused);
    let error = refusal(loader, &Edited::new().bytes, &Engine::default());
    assert_eq!(error.status(), Status::PermissionDenied);
    let message = error.message();
    for part in ["this process may not map executable pages", "VMVX", "--iree-hal-target-backends=vmvx", "system library"] {
        assert!(message.contains(part), "{message}");
    }
}

/// `prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN)`: from now on no writable memory of this process becomes executable.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn deny_write_execute() -> isize {
    const PRCTL: isize = 157;
    const SET_MDWE: usize = 65;
    let result;
    // SAFETY: the system call reads no memory; it changes what this process may map later.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") PRCTL => result,
            in("rdi") SET_MDWE, in("rsi") 1, in("rdx") 0, in("r10") 0, in("r8") 0,
            lateout("rcx") _, lateout("r11") _, options(nostack),
        );
    }
    result
}

/// C7 with the kernel's own refusal: a child process that gave up the right to make memory executable.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn c7_a_process_without_that_right_gets_an_error() {
    const CHILD: &str = "VMFB_TEST_REFUSE_EXECUTABLE_MEMORY";
    if std::env::var_os(CHILD).is_some() {
        // The kernel has this since Linux 6.3.
        if deny_write_execute() != 0 {
            println!("this kernel cannot refuse executable memory");
            return;
        }
        let error = refusal(ElfLoader::new(), &Edited::new().bytes, &Engine::default());
        assert_eq!(error.status(), Status::PermissionDenied);
        assert!(error.message().contains("may not map executable pages"), "{error}");
        return;
    }
    let test = "c7_a_process_without_that_right_gets_an_error";
    let status = std::process::Command::new(std::env::current_exe().unwrap()).args([test, "--exact"]).env(CHILD, "1").status();
    assert!(status.unwrap().success());
}

/// The library's tables are checked too: a pointer that was not relocated points outside the image.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_table_pointer_outside_the_image_is_refused() {
    let image = Edited::new();
    let relocations = image.table(DT_RELA);
    // The second relocation is the first kernel's pointer: it now relocates an unused word at the end of the page.
    let image = image.set64(relocations + 24, 0x3FF8);
    let error = refusal(ElfLoader::new(), &image.bytes, &Engine::default());
    assert!(error.message().contains("export table: ptrs entry"), "{error}");
}

/// A kernel's pointer into data is never called.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_kernel_outside_the_code_is_refused() {
    let image = Edited::new();
    let relocations = image.table(DT_RELA);
    let error = refusal(ElfLoader::new(), &image.set64(relocations + 24 + 16, 0x400).bytes, &Engine::default());
    assert!(error.message().contains("export table: ptrs entry") && error.message().contains("not executable"), "{error}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn executable_constants_that_nobody_wants_are_refused() {
    let (data, engine) = (Span::from_vector(Edited::new().bytes), Engine::default());
    let format = own_format();
    let parameters =
        ExecutableParameters { format: &format, data: &data, constants: &[1, 2], engine: &engine, account: &MemoryAccount::default() };
    let error = ElfLoader::new().try_load(&parameters).err().unwrap();
    assert_eq!(error.message(), "the executable library wants 0 executable constants, 2 were given");
}
