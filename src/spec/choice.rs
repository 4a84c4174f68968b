//! The choices a publisher makes by name: how missing or contradictory values are treated, how values are printed.

use serde::{Deserialize, Serialize};

/// A choice among named alternatives, given as text.
pub trait Choice: Sized + Copy + PartialEq + 'static {
    /// Every alternative with its name; the first is the default.
    const ALTERNATIVES: &'static [(&'static str, Self)];

    /// The names of all alternatives, in the same order.
    const NAMES: &'static [&'static str];

    /// The alternative of that name.
    fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALTERNATIVES.iter();
        all.find(|(n, _)| *n == name).map(|(_, choice)| *choice)
    }

    /// The name of this alternative.
    fn name(&self) -> &'static str {
        let mut all = Self::ALTERNATIVES.iter();
        all.find(|(_, choice)| choice == self)
            .map_or("", |(name, _)| *name)
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$alternative_doc:meta])* $alternative:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$alternative_doc])* $alternative),+ }

        impl Choice for $name {
            const ALTERNATIVES: &'static [(&'static str, Self)] = &[$(($text, Self::$alternative)),+];
            const NAMES: &'static [&'static str] = &[$($text),+];
        }

        impl Default for $name {
            fn default() -> Self {
                Self::ALTERNATIVES[0].1
            }
        }
    };
}

choice! {
    /// What to do with records whose id is NULL.
    NullId {
        /// Refuse the table.
        Error = "error",
        /// Leave the records out.
        Drop = "drop",
    }
}

choice! {
    /// What to do with records whose sensitive value is NULL.
    NullSensitive {
        /// Refuse the table.
        Error = "error",
        /// Leave the records out, and individuals that have no other.
        DropRows = "drop_rows",
        /// Publish them, but let them add nothing to diversity; individuals without any value are left out.
        Conservative = "conservative",
    }
}

choice! {
    /// What to do with individuals whose records disagree on a quasi-identifier.
    Contradictory {
        /// Refuse the table.
        Error = "error",
        /// Publish one generalized value that covers all of the individual's values.
        Cover = "cover",
        /// Leave the individuals out.
        Drop = "drop",
    }
}

choice! {
    /// What has a row where fingerprints are published.
    FingerprintRows {
        /// Each label of an individual.
        Records = "records",
        /// Each individual, with a list of its labels.
        Individuals = "individuals",
    }
}

choice! {
    /// How generalized values are published.
    Notation {
        /// Intervals as `Struct<lo, hi>`, sets as lists.
        Typed = "typed",
        /// Text such as `[33, 34]`, `{10070, 10073}`, `*`.
        Text = "text",
    }
}

choice! {
    /// How local groups are formed.
    LocalStrategy {
        /// By dividing between two distant individuals, so that little is lost.
        Ncp = "ncp",
        /// By cutting the widest column near its median: quick, and even groups.
        Mdp = "mdp",
    }
}

choice! {
    /// What to do with individuals who keep secret what fewer than k do.
    SmallPatterns {
        /// Leave them out.
        Drop = "drop",
        /// Pool them, and publish nothing of the semi-sensitive columns in which they differ.
        Mask = "mask",
    }
}

choice! {
    /// How buckets are published.
    Output {
        /// Permuted: each record shows the value of somebody in its bucket.
        Rows = "rows",
        /// On their own: records show bucket ids, and further rows the values of each bucket.
        Detached = "detached",
    }
}
