//! k-medoid clustering of columns.

/// Clusters columns by their coefficients: each cluster has a medoid, and every column belongs to the medoid with which
/// it hangs together most.
///
/// Medoids are chosen greedily, then swapped with other columns while that brings columns and medoids nearer. Ties go to
/// the smaller number. Clusters come by their medoid, and columns in a cluster by their number.
pub(super) fn cluster(coefficients: &[Vec<f64>], clusters: usize) -> Vec<Vec<usize>> {
    let medoids = medoids(coefficients, clusters);
    let mut members = vec![vec![]; medoids.len()];
    for column in 0..coefficients.len() {
        let (cluster, _) = home(coefficients, &medoids, column);
        members[cluster].push(column);
    }
    members
}

fn medoids(coefficients: &[Vec<f64>], clusters: usize) -> Vec<usize> {
    let columns = coefficients.len();
    let mut medoids: Vec<usize> = vec![];
    while medoids.len() < clusters {
        let candidates = (0..columns).filter(|c| !medoids.contains(c));
        let with = |c: usize| [medoids.as_slice(), &[c]].concat();
        match nearest(coefficients, candidates.map(with)) {
            Some((_, chosen)) => medoids = chosen,
            None => break,
        }
    }
    let mut cost = distance(coefficients, &medoids);
    loop {
        let swaps = (0..medoids.len()).flat_map(|at| {
            let medoids = &medoids;
            let candidates = (0..columns).filter(move |c| !medoids.contains(c));
            candidates.map(move |c| {
                let mut swapped = medoids.clone();
                swapped[at] = c;
                swapped
            })
        });
        match nearest(coefficients, swaps) {
            Some((better, swapped)) if better < cost => {
                cost = better;
                medoids = swapped;
            }
            _ => break,
        }
    }
    medoids.sort_unstable();
    medoids
}

/// The first of the choices with the smallest distance.
fn nearest(
    coefficients: &[Vec<f64>],
    choices: impl Iterator<Item = Vec<usize>>,
) -> Option<(f64, Vec<usize>)> {
    let measured = choices.map(|medoids| (distance(coefficients, &medoids), medoids));
    measured.reduce(|best, next| if next.0 < best.0 { next } else { best })
}

/// The sum of all columns' distances from their medoid.
fn distance(coefficients: &[Vec<f64>], medoids: &[usize]) -> f64 {
    let of = |column| home(coefficients, medoids, column).1;
    (0..coefficients.len()).map(of).sum()
}

/// Which medoid is nearest to a column, and its distance 1 − φ². A medoid is its own.
fn home(coefficients: &[Vec<f64>], medoids: &[usize], column: usize) -> (usize, f64) {
    if let Some(own) = medoids.iter().position(|m| *m == column) {
        return (own, 0.0);
    }
    let mut best = (0, f64::INFINITY);
    for (at, medoid) in medoids.iter().enumerate() {
        let distance = 1.0 - coefficients[column][*medoid];
        if distance < best.1 {
            best = (at, distance);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Coefficients of five columns, of which 0, 2 and 4 hang together, and 1 and 3.
    fn two_bundles() -> Vec<Vec<f64>> {
        let of = |a: usize, b: usize| if a % 2 == b % 2 { 0.8 } else { 0.1 };
        (0..5).map(|a| (0..5).map(|b| of(a, b)).collect()).collect()
    }

    #[test]
    fn bundles_are_found() {
        assert_eq!(cluster(&two_bundles(), 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(cluster(&two_bundles(), 5).len(), 5);
        assert_eq!(cluster(&two_bundles(), 1), [[0, 1, 2, 3, 4]]);
    }

    #[test]
    fn no_swap_brings_columns_nearer() {
        for seed in 0..300u64 {
            let of = |a: usize, b: usize| {
                let pair = (a.min(b) * 6 + a.max(b)) as u64;
                (crate::system::anatomy::slppa::mix::mix(seed * 36 + pair) % 1000) as f64 / 1000.0
            };
            let row = |a: usize| (0..6).map(|b| of(a, b)).collect();
            let coefficients: Vec<Vec<f64>> = (0..6).map(row).collect();
            let found = medoids(&coefficients, 3);
            let cost = distance(&coefficients, &found);
            for at in 0..3 {
                for column in (0..6).filter(|c| !found.contains(c)) {
                    let mut swapped = found.clone();
                    swapped[at] = column;
                    assert!(distance(&coefficients, &swapped) >= cost);
                }
            }
            let everybody: usize = cluster(&coefficients, 3).iter().map(Vec::len).sum();
            assert_eq!(everybody, 6);
        }
    }
}
