//! First classes: grown around the individuals with the most records, who lose most in a bad class.
//!
//! The next member is one of those that widen the class least, and of these the one that would lose most elsewhere:
//! somebody with many records, or far from everybody else. Members that bring the class nearer to being valid are
//! preferred.

use super::cloud::Cloud;
use super::groups::Groups;
use super::judge::Judge;
use super::shape::Area;
use crate::algorithm::{Cancel, Cancelled};

/// Candidates for the next member, and candidates that help if none of those does.
const CANDIDATES: usize = 8;
const HELPERS: usize = 48;

/// Forms classes of the individuals in the cloud. Those of an unfinished last class are left without.
pub(super) fn grow(
    groups: &mut Groups<'_>,
    cloud: &mut Cloud<'_>,
    judge: &mut Judge<'_>,
    cancel: &Cancel,
) -> Result<(), Cancelled> {
    let block = groups.block();
    let mut seeds: Vec<u32> = (0..block.len() as u32).collect();
    seeds.sort_by_key(|individual| std::cmp::Reverse(block.records(*individual)));
    let mut growth = Growth {
        area: groups.shape().nothing(),
        found: vec![],
        slack: 0,
    };
    for seed in seeds {
        if !cloud.holds(seed) {
            continue;
        }
        let members = growth.class(seed, groups, cloud, judge, cancel)?;
        if judge.is_valid() {
            groups.add(members);
        }
    }
    Ok(())
}

struct Growth {
    area: Area,
    found: Vec<(u64, u32)>,
    /// How much more loss a member may add because it helps.
    slack: u64,
}

impl Growth {
    /// Grows a class until it is valid or nobody is left.
    fn class(
        &mut self,
        seed: u32,
        groups: &Groups<'_>,
        cloud: &mut Cloud<'_>,
        judge: &mut Judge<'_>,
        cancel: &Cancel,
    ) -> Result<Vec<u32>, Cancelled> {
        let shape = groups.shape();
        shape.empty(&mut self.area);
        judge.begin();
        // Where one member too many of a kind makes a class worse, it is worth going far for another kind.
        self.slack = match judge.grows_freely() {
            true => cloud.solitude(seed) / 6,
            false => cloud.solitude(seed).saturating_mul(2),
        };
        let mut members = vec![];
        let mut next = Some(seed);
        while let Some(individual) = next {
            cancel.check()?;
            cloud.take(individual);
            members.push(individual);
            shape.include(&mut self.area, individual, groups.point(individual));
            judge.add(individual);
            if judge.is_valid() {
                break;
            }
            next = self.next(groups, cloud, judge);
        }
        Ok(members)
    }

    fn next(
        &mut self,
        groups: &Groups<'_>,
        cloud: &mut Cloud<'_>,
        judge: &Judge<'_>,
    ) -> Option<u32> {
        let near = |least: u64| least.saturating_add(least / 2);
        cloud.nearest(&self.area, CANDIDATES, near, &mut self.found);
        let helper = self.best(groups, cloud, |individual| judge.helps(individual));
        if helper.is_some() {
            return helper;
        }
        let any = self.best(groups, cloud, |_| true);
        let slack = self.slack;
        let far = |least: u64| least.saturating_mul(2).saturating_add(slack);
        cloud.nearest(&self.area, HELPERS, far, &mut self.found);
        let helper = self.best(groups, cloud, |individual| judge.helps(individual));
        helper.or(any)
    }

    /// The candidate for whom the class costs least, compared with what it would lose elsewhere.
    fn best(
        &self,
        groups: &Groups<'_>,
        cloud: &Cloud<'_>,
        accept: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let accepted = self.found.iter().filter(|(_, i)| accept(*i));
        let score = |(added, individual): &(u64, u32)| {
            let records = i128::from(groups.block().records(*individual));
            let elsewhere = i128::from(cloud.solitude(*individual)) * 5 / 2;
            let here = i128::from(self.area.loss) + i128::from(*added);
            let others = i128::from(self.area.records) * i128::from(*added);
            (others + records * (here - elsewhere), *individual)
        };
        accepted.map(score).min().map(|(_, individual)| individual)
    }
}
