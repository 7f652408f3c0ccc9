//! Every ELF image of the corpus: parsed, laid out, relocated; those for this machine loaded and called.

mod support;

use support::{CorpusImage, corpus_image, corpus_images, u16_at, u32_at, u64_at};
use vmfb_hal::{Binding, Dispatch, Executable, ExecutableLoader, ExecutableParameters, Load};
use vmfb_loader_elf::{Architecture, ElfFile, ElfLoader, Target};
use vmfb_memory::{MemoryAccount, Span};
use vmfb_vm::{Engine, Meter};

const BASE: u64 = 0x7000_0000_0000;

fn target(name: &str) -> Target {
    Target { architecture: Architecture::named(name).unwrap(), page: 4096 }
}

fn architecture_of(mode: &str) -> &'static str {
    match mode {
        "inline-elf-aarch64" => "arm_64",
        "inline-elf-riscv64" => "riscv_64",
        _ => "x86_64",
    }
}

/// Applies the relocations once more, straight from the bytes: 64-bit RELA entries that are all relative.
fn assert_relocated(image: &CorpusImage, relocated: &[u8]) {
    let bytes = &image.bytes;
    let headers = (0..usize::from(u16_at(bytes, 0x38))).map(|i| u64_at(bytes, 0x20) as usize + i * 56);
    let mut expected = vec![0; relocated.len()];
    let mut dynamic = 0..0;
    for header in headers {
        let (offset, address) = (u64_at(bytes, header + 8) as usize, u64_at(bytes, header + 16) as usize);
        let size = u64_at(bytes, header + 32) as usize;
        match u32_at(bytes, header) {
            1 => expected[address..address + size].copy_from_slice(&bytes[offset..offset + size]),
            2 => dynamic = offset..offset + size,
            _ => {}
        }
    }
    let entries: Vec<(u64, u64)> = bytes[dynamic].chunks(16).map(|entry| (u64_at(entry, 0), u64_at(entry, 8))).collect();
    let tag = |tag: u64| entries.iter().find(|entry| entry.0 == tag).map_or(0, |entry| entry.1) as usize;
    let (rela, rela_bytes) = (tag(7), tag(8));
    let relative = match u16_at(bytes, 18) {
        0x3E => 8,
        0xB7 => 1027,
        0xF3 => 3,
        machine => panic!("{machine}"),
    };
    assert!(rela_bytes > 0);
    for entry in expected[rela..rela + rela_bytes].to_vec().chunks(24) {
        assert_eq!(u64_at(entry, 8), relative);
        let place = u64_at(entry, 0) as usize;
        expected[place..place + 8].copy_from_slice(&(BASE + u64_at(entry, 16)).to_le_bytes());
    }
    assert!(expected == relocated, "{}", image.label());
}

#[test]
fn every_image_is_laid_out_and_relocated() {
    let images = corpus_images(|_, mode, _| mode.contains("elf"));
    assert_eq!(images.len(), images.iter().filter(|image| image.bytes.len() > 1000).count());
    let foreign = images.iter().filter(|image| architecture_of(&image.mode) != "x86_64").count();
    assert!(images.len() > 1000 && foreign > 60, "{} images, {foreign} foreign ones", images.len());
    for image in &images {
        let file =
            ElfFile::parse(&image.bytes, target(architecture_of(&image.mode))).unwrap_or_else(|error| panic!("{}: {error}", image.label()));
        let (relocated, placed) = file.relocated_bytes(BASE).unwrap_or_else(|error| panic!("{}: {error}", image.label()));
        assert_relocated(image, &relocated);
        assert!((BASE..BASE + relocated.len() as u64).contains(&placed.query));
    }
}

#[test]
fn a_foreign_image_is_refused_with_both_architectures() {
    let image = corpus_image("3.13.0", "inline-elf-aarch64", "ew_f32");
    let error = ElfFile::parse(&image.bytes, target("x86_64")).unwrap_err();
    assert_eq!(error.message(), "ELF e_machine: the code is for arm_64, this machine runs x86_64");
    let error = ElfFile::parse(&image.bytes, target("x86_32")).unwrap_err();
    assert_eq!(error.message(), "ELF e_ident[EI_CLASS]: the code is for 64-bit, this machine runs x86_32");
}

/// AArch64 images are aligned for pages of 64 KiB, the others for 4 KiB only.
#[test]
fn an_image_whose_segments_share_a_large_page_is_refused() {
    let page = |architecture: &str| Target { page: 0x1_0000, ..target(architecture) };
    let image = corpus_image("3.13.0", "inline-elf-aarch64", "ew_f32");
    ElfFile::parse(&image.bytes, page("arm_64")).unwrap().relocated_bytes(BASE).unwrap();
    let image = corpus_image("3.13.0", "inline-elf", "ew_f32");
    let error = ElfFile::parse(&image.bytes, page("x86_64")).unwrap_err();
    assert!(error.message().contains("p_vaddr") && error.message().contains("pages of 0x10000 bytes"), "{error}");
}

fn load(bytes: &[u8]) -> std::sync::Arc<dyn Executable> {
    let (data, engine) = (Span::from_vector(bytes.to_vec()), Engine::default());
    let format = &ElfLoader::new().formats()[0];
    let parameters = ExecutableParameters { format, data: &data, constants: &[], engine: &engine, account: &MemoryAccount::default() };
    match ElfLoader::new().try_load(&parameters) {
        Ok(Load::Loaded(executable)) => executable,
        Ok(Load::NotMine(error)) | Err(error) => panic!("{error}"),
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))]
mod on_this_machine {
    use super::*;

    const ARCHITECTURE: &str = match vmfb_hal::processor::architecture() {
        Some(name) => name,
        None => panic!("no name"),
    };

    /// The inline modules for this machine.
    fn is_own_inline(mode: &str) -> bool {
        ["inline-elf", "inline-elf-aarch64", "inline-elf-riscv64"].contains(&mode) && architecture_of(mode) == ARCHITECTURE
    }

    fn own_image() -> CorpusImage {
        corpus_images(|release, mode, program| release == "3.13.0" && is_own_inline(mode) && program == "ew_f32").remove(0)
    }

    #[test]
    fn every_image_is_loaded_and_its_tables_are_read() {
        for image in corpus_images(|_, mode, _| mode.contains("elf") && architecture_of(mode) == ARCHITECTURE) {
            let library = load(&image.bytes);
            assert!(library.export_count() > 0, "{}", image.label());
            let export = library.export(0).unwrap();
            // Versions 5 and 6 declare their counts, 3 and 4 do not.
            if let Some(version) = image.library_version {
                assert_eq!(export.binding_count.is_some(), version >= 5, "{}", image.label());
            }
            if let Some(name) = export.name {
                assert_eq!(library.lookup(name), Some(0), "{}", image.label());
            }
        }
    }

    /// `add` of `ew_f32` is the first export in every release: two inputs and one output of eight f32.
    #[test]
    fn a_kernel_of_every_release_adds() {
        let images = corpus_images(|_, mode, program| is_own_inline(mode) && program == "ew_f32");
        assert!(images.len() >= 3, "{} images", images.len());
        for image in images {
            let library = load(&image.bytes);
            let account = MemoryAccount::default();
            let floats = |values: [f32; 8]| Span::copy_of(&values.map(f32::to_le_bytes).concat(), &account).unwrap();
            let a = floats([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
            let b = floats([0.5, 0.25, -3.0, 1e10, 0.0, -0.0, f32::INFINITY, -8.0]);
            let sum = floats([0.0; 8]);
            let bindings = [&a, &b, &sum].map(|span| Binding { span, offset: 0, length: 32 });
            let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[], bindings: &bindings, concurrency: 1 };
            library.dispatch(&mut Meter::default(), &dispatch).unwrap_or_else(|error| panic!("{}: {error}", image.label()));
            let result: Vec<f32> = (0..8).map(|i| f32::from_bits(sum.load_u32(i * 4).unwrap())).collect();
            assert_eq!(result, [1.5, 2.25, 0.0, 1e10, 5.0, 6.0, f32::INFINITY, 0.0], "{}", image.label());
        }
    }

    #[test]
    fn a_wrong_number_of_bindings_is_refused_before_the_call() {
        let library = load(&own_image().bytes);
        let span = Span::zeroed(32, 64, &MemoryAccount::default()).unwrap();
        let bindings = [Binding { span: &span, offset: 0, length: 32 }; 2];
        let dispatch = Dispatch { export: 0, workgroup_count: [1; 3], constants: &[], bindings: &bindings, concurrency: 1 };
        let error = library.dispatch(&mut Meter::default(), &dispatch).unwrap_err();
        assert!(error.message().contains("takes 3 bindings, 2 were given"), "{error}");
    }

    #[test]
    fn an_executable_outlives_everything_it_was_made_from() {
        let library = load(&own_image().bytes);
        let other = library.clone();
        drop(library);
        std::thread::spawn(move || assert!(other.export_count() > 0)).join().unwrap();
    }
}
