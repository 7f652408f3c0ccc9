//! Names that may have been meant.

/// Most names that a message offers.
pub const MOST_SUGGESTIONS: usize = 10;

/// Indices of the candidates most like `name`, best first, at most ten.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
    let likeness = |candidate: &str| {
        let part = if candidate.contains(name) || name.contains(candidate) { 1.0 } else { 0.0 };
        part + strsim::jaro_winkler(name, candidate)
    };
    let mut scored: Vec<(usize, f64)> = candidates.into_iter().enumerate().map(|(index, candidate)| (index, likeness(candidate))).collect();
    // Equals stay in their order.
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.into_iter().take(MOST_SUGGESTIONS).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_most_alike_come_first_and_are_ten_at_most() {
        let names: Vec<String> = (0..4000).map(|index| format!("function_{index}")).chain(["softmax".to_owned()]).collect();
        let found = nearest("softmx", names.iter().map(String::as_str));
        assert_eq!((found.len(), found.first()), (10, Some(&4000)));
        assert_eq!(nearest("3999", names.iter().map(String::as_str)).first(), Some(&3999));
        assert!(nearest("x", []).is_empty());
    }
}
