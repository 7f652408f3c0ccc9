use super::*;
use std::io::Write;

/// A read-only map of a file with these bytes.
fn mapped(bytes: &[u8]) -> Span {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Span::map_file(&file).unwrap()
}

fn sample(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A view is writable, starts with the bytes of its source, and hides its writes from source and other views.
fn check_privacy(source: &Span, mapped: bool) {
    let account = MemoryAccount::default();
    let before = source.to_vec().unwrap();
    let (view, other) = (PrivateView::of(source, &account).unwrap(), PrivateView::of(source, &account).unwrap());
    assert_eq!(view.is_mapped(), mapped);
    assert_eq!(view.span().to_vec().unwrap(), before);
    assert!(view.is_unchanged(0, source.len()).unwrap());
    let middle = source.len() / 2;
    view.span().store_u8(middle, before[middle].wrapping_add(1)).unwrap();
    assert!(!view.is_unchanged(0, source.len()).unwrap());
    assert!(view.is_unchanged(0, 8).unwrap());
    assert_eq!(source.to_vec().unwrap(), before);
    assert_eq!(other.span().to_vec().unwrap(), before);
    assert!(other.is_unchanged(0, source.len()).unwrap());
    let mut view = view;
    view.restore(0, source.len(), &account).unwrap();
    assert_eq!(view.span().to_vec().unwrap(), before);
    assert!(view.is_unchanged(0, source.len()).unwrap());
}

#[test]
fn views_of_files_are_private() {
    let bytes = sample(3 * MAPPED_FROM);
    let whole = mapped(&bytes);
    check_privacy(&whole, true);
    // A range that starts within a page.
    let part = whole.slice(4096 + 192, 2 * MAPPED_FROM).unwrap();
    check_privacy(&part, true);
    let view = PrivateView::of(&part, &MemoryAccount::default()).unwrap();
    assert!(view.span().address().addr().is_multiple_of(64));
    check_privacy(&whole.slice(64, 100).unwrap(), false);
}

#[test]
fn views_of_memory_are_private() {
    let bytes = sample(2 * MAPPED_FROM);
    let copy = Span::from_vector(bytes.clone()).aligned_copy().unwrap();
    assert!(!copy.is_writable() && copy.address().addr().is_multiple_of(64));
    check_privacy(&copy, cfg!(target_os = "linux"));
    check_privacy(&Span::from_vector(bytes), false);
    check_privacy(&Span::from_vector(sample(1000)).aligned_copy().unwrap(), false);
}

/// Copies are charged in full, maps are not; both come back.
#[test]
fn what_is_copied_is_charged() {
    let account = MemoryAccount::with_limit(100_000);
    let large = mapped(&sample(4 * MAPPED_FROM));
    let view = PrivateView::of(&large, &account).unwrap();
    assert!(account.used() < 1000, "{}", account.used());
    drop(view);
    let heap = Span::from_vector(sample(4 * MAPPED_FROM));
    assert!(matches!(PrivateView::of(&heap, &account), Err(Error::OverLimit { .. })));
    let view = PrivateView::of(&heap.slice(0, 50_000).unwrap(), &account).unwrap();
    assert!(account.used() >= 50_000);
    drop(view);
    assert_eq!(account.used(), 0);
}
