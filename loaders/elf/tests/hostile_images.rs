//! Damaged and hostile images: each is refused with the name of the field, and none reaches undefined behaviour.

mod support;

use proptest::prelude::*;
use support::edit::*;
use support::{corpus_image, u32_at, u64_at};
use vmfb_loader_elf::{Architecture, ElfFile, Target};
use vmfb_vm::{Result, Status};

/// Parse, lay out, relocate in plain memory: the same on every machine.
fn refusal(edited: &Edited) -> vmfb_vm::Error {
    place(&edited.bytes).expect_err("the edit was not noticed")
}

fn place(bytes: &[u8]) -> Result<()> {
    let target = Target { architecture: Architecture::named("x86_64").unwrap(), page: 4096 };
    ElfFile::parse(bytes, target)?.relocated_bytes(0x7000_0000_0000).map(drop)
}

/// Defines a test for each edit: the message must name the field.
macro_rules! refused {
    ($($name:ident: $edit:expr => $field:literal;)+) => {$(
        #[test]
        fn $name() {
            let edit: fn(Edited) -> Edited = $edit;
            let error = refusal(&edit(Edited::new()));
            assert!(error.message().starts_with("ELF ") && error.message().contains($field), "{error}");
        }
    )+};
}

fn load(edited: &Edited, n: usize) -> usize {
    edited.program_header(PT_LOAD, n)
}

fn edit64(edited: Edited, at: impl Fn(&Edited) -> usize, value: u64) -> Edited {
    let at = at(&edited);
    edited.set64(at, value)
}

fn edit32(edited: Edited, at: impl Fn(&Edited) -> usize, value: u32) -> Edited {
    let at = at(&edited);
    edited.set32(at, value)
}

#[test]
fn the_image_is_taken_unedited() {
    place(&Edited::new().bytes).unwrap();
}

// The header.
refused! {
    header_magic: |e| e.set8(0, b'X') => "e_ident[EI_MAG]";
    header_class: |e| e.set8(4, 3) => "e_ident[EI_CLASS]";
    header_byte_order: |e| e.set8(5, 2) => "e_ident[EI_DATA]";
    header_ident_version: |e| e.set8(6, 0) => "e_ident[EI_VERSION]";
    header_os_abi: |e| e.set8(7, 9) => "e_ident[EI_OSABI]";
    header_type: |e| e.set16(16, 2) => "e_type";
    header_machine: |e| e.set16(18, 0x28) => "e_machine";
    header_version: |e| e.set32(20, 2) => "e_version";
    header_size: |e| e.set16(0x34, 52) => "e_ehsize";
    program_header_offset_zero: |e| e.set64(0x20, 0) => "e_phoff";
    program_header_offset_wraps: |e| e.set64(0x20, u64::MAX - 55) => "e_phoff";
    program_header_size: |e| e.set16(0x36, 32) => "e_phentsize";
    program_header_count_zero: |e| e.set16(0x38, 0) => "e_phnum";
    program_header_count_huge: |e| e.set16(0x38, 0xFFFF) => "e_phnum";
    section_header_offset_wraps: |e| e.set64(0x28, u64::MAX - 63) => "e_shoff";
    section_header_size: |e| e.set16(0x3A, 0) => "e_shentsize";
    section_header_count: |e| e.set16(0x3C, 0xFFFF) => "e_shnum";
}

// M27: program headers and dynamic table, one or two fields each.
refused! {
    m27_01_file_offset_wraps: |e| edit64(e, |e| load(e, 1) + 8, u64::MAX - 0x9BF) => "p_offset";
    m27_02_file_offset_behind_the_file: |e| edit64(e, |e| load(e, 1) + 8, 0x10_0640) => "p_offset";
    m27_03_address_2_pow_46: |e| edit64(e, |e| load(e, 2) + 16, (1 << 46) + 0x810) => "p_vaddr";
    m27_04_address_wraps: |e| edit64(e, |e| load(e, 2) + 16, u64::MAX - 0x7EF) => "p_vaddr";
    m27_05_address_not_congruent: |e| edit64(e, |e| load(e, 1) + 16, 0x1000) => "p_vaddr";
    m27_06_segments_overlap: |e| edit64(e, |e| load(e, 1) + 16, 0x640) => "p_vaddr";
    m27_07_segments_descend: |e| { let at = load(&e, 0) + 16; e.set64(at, 0x10_0000) } => "p_vaddr";
    m27_08_file_size_2_pow_40: |e| edit64(e, |e| load(e, 1) + 32, 1 << 40) => "p_filesz";
    m27_09_file_size_larger_than_memory_size: |e| edit64(e, |e| load(e, 1) + 40, 0x10) => "p_filesz";
    m27_10_memory_size_2_pow_40: |e| edit64(e, |e| load(e, 2) + 40, 1 << 40) => "p_memsz";
    m27_11_memory_size_wraps: |e| edit64(e, |e| load(e, 2) + 40, u64::MAX) => "p_vaddr";
    m27_12_alignment_zero: |e| edit64(e, |e| load(e, 1) + 48, 0) => "p_align";
    m27_13_alignment_no_power_of_two: |e| edit64(e, |e| load(e, 1) + 48, 0x1800) => "p_align";
    m27_14_alignment_2_pow_40: |e| edit64(e, |e| load(e, 1) + 48, 1 << 40) => "p_align";
    m27_15_writable_code: |e| edit32(e, |e| load(e, 1) + 4, 7) => "p_flags";
    m27_16_no_access: |e| edit32(e, |e| load(e, 0) + 4, 0) => "p_flags";
    m27_17_no_segments: |e| (0..3).fold(e, |e, _| edit32(e, |e| load(e, 0), 0)) => "e_phnum";
    m27_18_dynamic_size_2_pow_40: |e| {
        let header = e.program_header(PT_DYNAMIC, 0);
        e.set64(header + 32, 1 << 40).set64(header + 40, 1 << 40)
    } => "p_filesz";
    m27_19_dynamic_address_2_pow_40: |e| edit64(e, |e| e.program_header(PT_DYNAMIC, 0) + 16, (1 << 40) + 0x8F0) => "p_vaddr";
    m27_20_relocation_table_2_pow_40: |e| e.set_dynamic(DT_RELA, 1 << 40) => "DT_RELA";
    m27_21_symbol_table_2_pow_40: |e| e.set_dynamic(DT_SYMTAB, 1 << 40) => "DT_SYMTAB";
    m27_22_string_table_2_pow_40: |e| e.set_dynamic(DT_STRTAB, 1 << 40) => "DT_STRTAB";
    m27_23_hash_table_2_pow_40: |e| e.set_dynamic(DT_HASH, 1 << 40) => "DT_HASH";
    m27_24_relocation_offset_2_pow_40: |e| edit64(e, |e| e.table(DT_RELA), 1 << 40) => "r_offset";
    m27_25_relocation_addend_2_pow_40: |e| edit64(e, |e| e.table(DT_RELA) + 16, 1 << 40) => "r_addend";
    m27_26_relocation_size_zero: |e| e.set_dynamic(DT_RELASZ, 0) => "DT_RELASZ";
    m27_27_relocation_size_2_pow_40: |e| e.set_dynamic(DT_RELASZ, 24 << 40) => "DT_RELASZ";
}

/// Bytes from the start of the RELRO range to the end of the pages of the writable segment.
fn relro_to_the_last_page(edited: &Edited) -> u64 {
    let (segment, relro) = (load(edited, 2), edited.program_header(PT_GNU_RELRO, 0));
    let end = u64_at(&edited.bytes, segment + 16) + u64_at(&edited.bytes, segment + 40);
    end.next_multiple_of(4096) - u64_at(&edited.bytes, relro + 16)
}

#[test]
fn relro_may_reach_to_the_end_of_the_last_page() {
    let edited = Edited::new();
    let size = relro_to_the_last_page(&edited);
    place(&edit64(edited, |e| e.program_header(PT_GNU_RELRO, 0) + 40, size).bytes).unwrap();
}

/// A segment of a 32-bit image that ends behind the last address of 32 bits, though not of 64.
#[test]
fn addresses_of_32_bit_images_end_at_32_bits() {
    const LAST_SIZE: usize = 20;
    let image = include_bytes!("data/pair_x86_32.so");
    let target = || Target { architecture: Architecture::named("x86_32").unwrap(), page: 4096 };
    let table = u32_at(image, 28) as usize;
    let mut loads = (0..8).map(|index| table + index * 32).filter(|header| u32_at(image, *header) == PT_LOAD);
    let last = loads.next_back().unwrap();
    let address = u32_at(image, last + 8);
    let refused = |size: u32| {
        let mut edited = image.to_vec();
        edited[last + LAST_SIZE..last + LAST_SIZE + 4].copy_from_slice(&size.to_le_bytes());
        ElfFile::parse(&edited, target()).err().map(|error| error.message().to_owned()).unwrap()
    };
    // One byte more than there is room for; then as much as there is, which is too much for other reasons.
    assert!(refused(0u32.wrapping_sub(address) + 1).contains("wrap around the address space"));
    assert!(refused(0u32.wrapping_sub(address)).contains("the image would take"));
}

// Further fields of program headers and the dynamic table.
refused! {
    executable_stack: |e| edit32(e, |e| e.program_header(PT_GNU_STACK, 0) + 4, 7) => "p_flags";
    thread_local_storage: |e| edit32(e, |e| e.program_header(PT_GNU_STACK, 0), 7) => "PT_TLS";
    interpreter: |e| edit32(e, |e| e.program_header(PT_GNU_STACK, 0), 3) => "PT_INTERP";
    no_dynamic_table: |e| edit32(e, |e| e.program_header(PT_DYNAMIC, 0), 0) => "PT_DYNAMIC";
    two_dynamic_tables: |e| edit32(e, |e| e.program_header(PT_GNU_RELRO, 0), PT_DYNAMIC) => "PT_DYNAMIC";
    dynamic_from_elsewhere_in_the_file: |e| edit64(e, |e| e.program_header(PT_DYNAMIC, 0) + 8, 0x8F0) => "p_offset";
    dynamic_table_without_end: |e| {
        let header = e.program_header(PT_DYNAMIC, 0);
        let size = u64_at(&e.bytes, header + 32) - 16;
        e.set64(header + 32, size).set64(header + 40, size)
    } => "DT_NULL";
    relro_outside: |e| edit64(e, |e| e.program_header(PT_GNU_RELRO, 0) + 16, 1 << 40) => "p_vaddr";
    relro_wraps: |e| edit64(e, |e| e.program_header(PT_GNU_RELRO, 0) + 40, u64::MAX) => "p_vaddr";
    relro_over_code: |e| edit64(e, |e| e.program_header(PT_GNU_RELRO, 0) + 16, 0x1640) => "p_vaddr";
    relro_one_byte_past_the_pages_of_its_segment: |e| {
        let size = relro_to_the_last_page(&e) + 1;
        edit64(e, |e| e.program_header(PT_GNU_RELRO, 0) + 40, size)
    } => "do not lie in a writable segment";
    text_segment_moved: |e| edit64(e, |e| load(e, 1) + 16, 0x2640) => "p_vaddr";
    text_segment_from_elsewhere: |e| edit64(e, |e| load(e, 0) + 8, 0x1000) => "sh_offset";
    code_not_executable: |e| edit32(e, |e| load(e, 1) + 4, 4) => "sh_flags";
    tag_missing: |e| { let at = e.dynamic(DT_SYMTAB); e.set64(at, DT_FLAGS) } => "DT_SYMTAB";
    tag_twice: |e| { let at = e.dynamic(DT_FLAGS); e.set64(at, DT_SYMTAB) } => "DT_SYMTAB";
    other_library_needed: |e| { let at = e.dynamic(DT_FLAGS); e.set64(at, 1) } => "DT_NEEDED";
    initializer: |e| { let at = e.dynamic(DT_FLAGS); e.set64(at, 12) } => "DT_INIT";
    text_relocations: |e| { let at = e.dynamic(DT_FLAGS); e.set64(at, 22) } => "DT_TEXTREL";
    packed_relocations: |e| { let at = e.dynamic(DT_FLAGS); e.set64(at, 36) } => "DT_RELR";
    relocations_of_the_other_form: |e| { let at = e.dynamic(DT_FLAGS); e.set64(at, 17) } => "DT_REL";
    relocation_entry_size: |e| e.set_dynamic(DT_RELAENT, 16) => "DT_RELAENT";
    relocation_size_uneven: |e| e.set_dynamic(DT_RELASZ, 313) => "DT_RELASZ";
    relocation_count_huge: |e| e.set_dynamic(DT_RELACOUNT, u64::MAX) => "DT_RELACOUNT";
    relocation_table_missing: |e| { let at = e.dynamic(DT_RELA); e.set64(at, DT_FLAGS_1) } => "DT_RELA";
    symbol_entry_size: |e| e.set_dynamic(DT_SYMENT, 0) => "DT_SYMENT";
    string_size_2_pow_40: |e| e.set_dynamic(DT_STRSZ, 1 << 40) => "DT_STRTAB";
    string_size_wraps: |e| e.set_dynamic(DT_STRSZ, u64::MAX) => "DT_STRTAB";
    string_size_zero: |e| e.set_dynamic(DT_STRSZ, 0) => "DT_STRSZ";
    strings_not_terminated: |e| e.set_dynamic(DT_STRSZ, 20) => "DT_STRSZ";
    hash_bucket_count: |e| edit32(e, |e| e.table(DT_HASH), u32::MAX) => "DT_HASH";
    hash_counts_that_add_up_to_more_than_32_bits: |e| {
        let at = e.table(DT_HASH);
        e.set32(at, u32::MAX).set32(at + 4, u32::MAX)
    } => "DT_HASH";
    hash_chain_count: |e| edit32(e, |e| e.table(DT_HASH) + 4, u32::MAX) => "DT_HASH";
    hash_link: |e| edit32(e, |e| e.table(DT_HASH) + 8, 2) => "DT_HASH";
    symbol_name: |e| edit32(e, |e| e.table(DT_SYMTAB) + 24, u32::MAX) => "st_name";
    symbol_value: |e| edit64(e, |e| e.table(DT_SYMTAB) + 32, 1 << 40) => "st_value";
    query_function_outside_the_code: |e| edit64(e, |e| e.table(DT_SYMTAB) + 32, 0x500) => "st_value";
    relocation_type: |e| edit32(e, |e| e.table(DT_RELA) + 8, 99) => "r_info";
    relocation_symbol: |e| edit32(e, |e| e.table(DT_RELA) + 12, 2) => "r_info";
    relocation_not_relative: |e| edit32(e, |e| e.table(DT_RELA) + 8, 1) => "r_info";
    relocation_of_code: |e| edit64(e, |e| e.table(DT_RELA), 0x1640) => "r_offset";
    relocation_at_the_end: |e| edit64(e, |e| e.table(DT_RELA), 0x3FFC) => "r_offset";
    relocation_negative_addend: |e| edit64(e, |e| e.table(DT_RELA) + 16, u64::MAX) => "r_addend";
}

/// A segment without bytes takes no pages, so it may stand anywhere.
#[test]
fn an_empty_segment_is_taken_wherever_it_is() {
    for address in [0, 0x1000, 1 << 40] {
        let image = Edited::new();
        let header = image.program_header(PT_GNU_STACK, 0);
        let image = image.set32(header, PT_LOAD).set32(header + 4, 4);
        let image = [(8, 0), (16, address), (32, 0), (40, 0), (48, 1)]
            .into_iter()
            .fold(image, |image, (at, value)| image.set64(header + at, value));
        place(&image.bytes).unwrap_or_else(|error| panic!("at {address:#x}: {error}"));
    }
}

/// X10: ends that wrap to something small, and addresses of the dynamic table outside the image.
#[test]
fn x10_ends_that_wrap_are_refused() {
    let (offset, address, file_size, memory_size) = (8, 16, 32, 40);
    for (first, value, second) in [(offset, 0u64.wrapping_sub(0x9C0), file_size), (address, 0u64.wrapping_sub(0x9C0), memory_size)] {
        for size in [0x9C0u64, 0xA00, 0x19C9] {
            let image = Edited::new();
            let header = load(&image, 1);
            let error = refusal(&image.set64(header + first, value).set64(header + second, size));
            assert!(error.message().contains("program header 2: p_"), "{error}");
        }
    }
    for tag in [DT_RELA, DT_SYMTAB, DT_STRTAB, DT_HASH] {
        for address in [u64::MAX, u64::MAX - 0x100, 0x3FF8, 0x2FFF] {
            refusal(&Edited::new().set_dynamic(tag, address));
        }
    }
}

#[test]
fn statuses_are_those_of_the_field() {
    let status = |edit: fn(Edited) -> Edited| refusal(&edit(Edited::new())).status();
    assert_eq!(status(|e| e.set16(18, 0xB7)), Status::FailedPrecondition);
    assert_eq!(status(|e| edit32(e, |e| load(e, 1) + 4, 7)), Status::PermissionDenied);
    assert_eq!(status(|e| edit32(e, |e| e.table(DT_RELA) + 8, 99)), Status::Unimplemented);
    assert_eq!(status(|e| edit32(e, |e| e.table(DT_RELA) + 12, 2)), Status::OutOfRange);
}

/// C1: a function that the linker left open cannot be imported.
#[test]
fn c1_an_undefined_symbol_is_named() {
    let image = Edited::new();
    let (symbols, strings) = (image.table(DT_SYMTAB), image.table(DT_STRTAB));
    // The query symbol becomes an undefined one with another name.
    let mut image = image.set16(symbols + 24 + 6, 0);
    image.bytes[strings + 1..strings + 8].copy_from_slice(b"floorf\0");
    let error = refusal(&image);
    assert_eq!(error.status(), Status::Unavailable);
    let message = error.message();
    assert!(message.contains("\"floorf\"") && message.contains("cannot import") && message.contains("system library"), "{message}");
}

#[test]
fn an_image_without_the_query_function_is_no_library() {
    let image = Edited::new();
    let strings = image.table(DT_STRTAB);
    let error = refusal(&image.set8(strings + 1, b'X'));
    assert_eq!(error.status(), Status::NotFound);
    assert!(error.message().contains("iree_hal_executable_library_query"), "{error}");
}

#[test]
fn every_truncation_is_refused() {
    let bytes = Edited::new().bytes;
    for length in 0..bytes.len() {
        assert!(place(&bytes[..length]).is_err(), "{length} bytes");
    }
}

/// Everything before code is entered, on any bytes: in plain memory, and mapped and protected where the machine is the right one.
fn survive(bytes: &[u8]) {
    let _ = place(bytes);
    let _ = vmfb_loader_elf::check(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutated_bytes_never_crash(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = Edited::new().bytes;
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        survive(&bytes);
    }

    /// Words with interesting values, in the parts of the file that are parsed.
    #[test]
    fn mutated_words_never_crash(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u32..64, -16i64..16), 1..4),
    ) {
        let mut image = Edited::new();
        let dynamic = image.program_header(PT_DYNAMIC, 0);
        let start = u64_at(&image.bytes, dynamic + 8) as usize;
        let parsed: Vec<usize> = (0..0x370).chain(start..start + 192).step_by(4).collect();
        for (at, shift, delta) in edits {
            let at = parsed[at.index(parsed.len())];
            image = image.set64(at, (1u64 << shift).wrapping_add_signed(delta));
        }
        survive(&image.bytes);
    }

    #[test]
    fn arbitrary_bytes_never_crash(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes);
        survive(&[b"\x7FELF\x02\x01\x01\0".as_slice(), &bytes].concat());
    }
}

/// M25: each third bit of an image flipped, up to the point where code would be entered.
#[test]
fn m25_flipped_bits_never_crash() {
    let bytes = corpus_image("20230209.425", "inline-elf", "ew_i32").bytes;
    assert!(u32_at(&bytes, 0) != 0);
    for bit in (0..bytes.len() * 8).step_by(3) {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        survive(&bytes);
    }
}
