//! Tests of query_support, load and lookup.function.

use super::*;
use crate::test_support::{Kernels, Loader};
use std::sync::Mutex;
use vmfb_hal::{Export, Load};
use vmfb_memory::Span;
use vmfb_vm::{Origin, Status};

fn text(text: &str) -> Buffer {
    Buffer::constant(text.as_bytes())
}

fn load_with(loaders: &[Arc<dyn ExecutableLoader>], format: &Buffer, constants: &Ref) -> Result<Handle<ExecutableReference>> {
    load(loaders, &Engine::default(), &mut Meter::default(), format, &text("the bytes"), constants)
}

fn loads(prefix: &'static str) -> Arc<dyn ExecutableLoader> {
    Loader::claiming(prefix, |_| Ok(Load::Loaded(Kernels::new(&[]))))
}

fn fails(prefix: &'static str, status: Status) -> Arc<dyn ExecutableLoader> {
    Loader::claiming(prefix, move |_| Err(Error::new(status, format!("the reason of {prefix}"))))
}

#[test]
fn any_loader_may_claim_a_format() {
    let loaders = [loads("system-elf"), loads("embedded-elf")];
    assert!(query_support(&loaders, &text("embedded-elf-x86_64-foo")));
    assert!(query_support(&loaders, &text("system-elf-x86_64")));
    assert!(!query_support(&loaders, &text("vmvx-bytecode-fb")));
    assert!(!query_support(&loaders, &Buffer::constant([b'e', 0xFF])));
    assert!(!query_support(&[], &text("")));
}

#[test]
fn the_first_loader_that_takes_it_loads() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let loader = |name: &'static str, answer: fn() -> Result<Load>| {
        let order = order.clone();
        Loader::claiming("elf", move |_| {
            order.lock().unwrap().push(name);
            answer()
        })
    };
    let loaders = [
        loader("cancels", || Err(Error::new(Status::Cancelled, ""))),
        loader("does not find", || Err(Error::not_found(""))),
        loader("is not asked", || Ok(Load::NotMine(Error::invalid("")))),
        loader("loads", || Ok(Load::Loaded(Kernels::new(&[])))),
        loader("comes too late", || Err(Error::internal(""))),
    ];
    assert!(load_with(&loaders, &text("elf"), &Ref::Null).is_ok());
    assert_eq!(*order.lock().unwrap(), ["cancels", "does not find", "is not asked", "loads"]);
}

#[test]
fn a_real_failure_ends_the_search() {
    let error = load_with(&[fails("elf", Status::FailedPrecondition), loads("elf")], &text("elf"), &Ref::Null).unwrap_err();
    assert_eq!(error.status(), Status::FailedPrecondition);
}

#[test]
fn an_executable_that_nobody_takes_is_named_with_all_reasons() {
    let loaders = [fails("vmvx", Status::NotFound), fails("vmvx-bytecode", Status::Cancelled), loads("embedded-elf")];
    let error = load_with(&loaders, &text("vmvx-bytecode-fb"), &Ref::Null).unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    for part in ["vmvx-bytecode-fb", "the reason of vmvx", "the reason of vmvx-bytecode"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    // Formats are listed where no loader takes this one.
    let error = load_with(&loaders, &text("unknown"), &Ref::Null).unwrap_err();
    for part in ["unknown", "vmvx-here", "vmvx-bytecode-here", "embedded-elf-here"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    let error = load_with(&loaders, &Buffer::constant([b'e', 0xFF, 0x1B]), &Ref::Null).unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    assert!(!error.to_string().contains('\u{1b}'));
}

#[test]
fn constants_are_words() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorded = seen.clone();
    let loader = Loader::claiming("elf", move |parameters| {
        recorded.lock().unwrap().push((parameters.constants.to_vec(), parameters.data.to_vec().unwrap()));
        Ok(Load::Loaded(Kernels::new(&[])))
    });
    let words: Vec<u8> = (0..40u32).flat_map(|word| (word | 0xAB00_0000).to_le_bytes()).collect();
    for constants in [Ref::Null, Buffer::constant([]).into(), Buffer::constant([1, 2, 3, 4]).into(), Buffer::constant(words).into()] {
        load_with(std::slice::from_ref(&loader), &text("elf"), &constants).unwrap();
    }
    let wanted = [vec![], vec![], vec![0x0403_0201], (0..40).map(|word| word | 0xAB00_0000).collect()];
    assert_eq!(*seen.lock().unwrap(), wanted.map(|words: Vec<u32>| (words, b"the bytes".to_vec())));
    for length in [1, 2, 3, 5, 161] {
        let error = load_with(std::slice::from_ref(&loader), &text("elf"), &Buffer::constant(vec![0; length]).into()).unwrap_err();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(error.to_string().contains(&format!("{length} bytes")), "{error}");
    }
    let list = vmfb_vm::List::of_values([]).unwrap();
    assert_eq!(load_with(&[loader], &text("elf"), &list.into()).unwrap_err().status(), Status::InvalidArgument);
}

#[test]
fn a_name_gives_the_number_of_its_export() {
    let export = |name| Export { name: Some(name), ..Export::default() };
    let executable = Ref::new(ExecutableReference(Kernels::new(&[export("first"), export("second")])));
    let mut cache = LookupCache::default();
    let constant = Buffer::new(Span::from_static(b"second"), Origin::Module);
    for _ in 0..2 {
        assert_eq!(lookup_function(&mut cache, &executable, &text("first")).unwrap(), 0);
        assert_eq!(lookup_function(&mut cache, &executable, &constant).unwrap(), 1);
    }
    let error = lookup_function(&mut cache, &executable, &text("third")).unwrap_err();
    assert_eq!(error.status(), Status::NotFound);
    assert!(error.to_string().contains("third") && error.to_string().contains("first, second"), "{error}");
    assert_eq!(lookup_function(&mut cache, &Ref::Null, &text("first")).unwrap_err().status(), Status::InvalidArgument);
    assert_eq!(lookup_function(&mut cache, &text("x").into(), &text("first")).unwrap_err().status(), Status::InvalidArgument);
}

#[test]
fn executables_without_names_say_so() {
    let executable = Ref::new(ExecutableReference(Kernels::new(&[Export::default()])));
    let error = lookup_function(&mut LookupCache::default(), &executable, &text("main")).unwrap_err();
    assert!(error.to_string().contains("no names"), "{error}");
}
