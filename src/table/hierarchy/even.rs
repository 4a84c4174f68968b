//! An even hierarchy over values in their order.

/// Rows of an even hierarchy over sorted values, as Gong et al. 2017 (Section 5) build theirs: neighbours are grouped by at
/// most `fan_out`, then the groups, up to one root. The sizes of groups of a level differ by one at most. A group is
/// labelled by its first and last value, the root by `*`.
///
/// The rows are what [`Taxonomy::from_rows`](crate::table::Taxonomy::from_rows) reads, which refuses values that are equal
/// to a label.
pub fn even<S: AsRef<str>>(sorted: &[S], fan_out: usize) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = sorted.iter().map(|v| vec![v.as_ref().to_owned()]).collect();
    // The values of each group of the level at hand.
    let mut groups: Vec<(usize, usize)> = (0..sorted.len()).map(|at| (at, at + 1)).collect();
    while groups.len() > fan_out.max(2) {
        groups = even_runs(groups.len(), fan_out.max(2))
            .map(|(first, end)| (groups[first].0, groups[end - 1].1))
            .collect();
        for (first, end) in &groups {
            let label = match end - first {
                1 => sorted[*first].as_ref().to_owned(),
                _ => format!("{}..{}", sorted[*first].as_ref(), sorted[end - 1].as_ref()),
            };
            for row in &mut rows[*first..*end] {
                row.push(label.clone());
            }
        }
    }
    for row in &mut rows {
        row.push("*".to_owned());
    }
    rows
}

/// The fewest runs of at most `most` of `n` things, as even as can be.
fn even_runs(n: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let runs = n.div_ceil(most);
    (0..runs).map(move |run| (run * n / runs, (run + 1) * n / runs))
}
