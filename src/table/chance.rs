//! How large random blocks must be for what holds of the whole table to hold of each.

/// −ln of the probability that a value's share of a block differs by more than is planned for. With ten million values
/// and a thousand blocks, one release in 10¹¹ meets such a block, and is refused.
const CERTAINTY: f64 = 50.0;

/// How many individuals a random block must have on average so that a share that is below a bound in the whole table
/// keeps half of that room in the block; infinite if there is none.
///
/// With share p of the whole table and a bound b, the members of a block sum up to m (b − p) of room on average, by terms
/// of at most 1 whose variance is at most v = p (1 − b)² + (1 − p) b². Bernstein's inequality for half of that room
/// gives m ≥ 8 c (v + (b − p) / 6) / (b − p)².
pub fn smallest_random_block(share: f64, bound: f64) -> f64 {
    let room = bound - share;
    let variance = share * (1.0 - bound).powi(2) + (1.0 - share) * bound.powi(2);
    match room > 0.0 {
        true => 8.0 * CERTAINTY * (variance + room / 6.0) / room.powi(2),
        false => f64::INFINITY,
    }
}
