//! Local search: changes to a few classes at a time, kept where they lose less and the model still holds.
//!
//! ```text
//!   for each class near which something has changed
//!     each member: go elsewhere, swap, or take part in an exchange of three     (chain)
//!     all members: dissolve the class into others, or split it                  (regroup)
//!     with the classes nearest to it: form all of them anew                     (regroup)
//! ```
//!
//! Every change lowers the total loss and suppresses nobody, so the result is never worse than where the search began.

use super::cloud::Neighbours;
use super::groups::{Groups, NONE};
use super::judge::Judge;
use crate::algorithm::{Cancel, Cancelled};

/// Steps of work per record and effort. A step is about the time to see what exchanging two individuals would cost.
const STEPS: u64 = 25;
/// Classes that the model is asked about for an individual without a class, cheapest first.
const ASKED: usize = 16;

/// Classes that are being improved.
pub(super) struct Search<'a> {
    pub(super) groups: Groups<'a>,
    pub(super) judge: Judge<'a>,
    neighbours: Neighbours,
    cancel: &'a Cancel,
    /// Whether something near a class has changed since it was looked at.
    dirty: Vec<bool>,
    /// Per individual, whether its class would stay valid without it, if known.
    spare: Vec<Option<bool>>,
    /// When each class was last listed.
    listed: Vec<u32>,
    lists: u32,
    steps: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        groups: Groups<'a>,
        judge: Judge<'a>,
        neighbours: Neighbours,
        cancel: &'a Cancel,
    ) -> Self {
        Self {
            dirty: vec![],
            spare: vec![None; groups.block().len()],
            listed: vec![],
            lists: 0,
            steps: 0,
            groups,
            judge,
            neighbours,
            cancel,
        }
    }

    /// Improves the classes until nothing can be improved or the work is done that the effort allows.
    pub(super) fn run(&mut self, effort: u64) -> Result<(), Cancelled> {
        let block = self.groups.block();
        let records = (0..block.len() as u32).map(|i| u64::from(block.records(i)));
        // Loss is counted by record, and so is the work to lower it.
        self.steps = records
            .sum::<u64>()
            .saturating_mul(effort.saturating_mul(STEPS));
        self.dirty = vec![true; self.groups.len()];
        let mut anew = false;
        while self.steps > 0 {
            self.place(0, false)?;
            if !self.round(anew)? {
                break;
            }
            anew = true;
        }
        Ok(())
    }

    /// Looks at every class near which something has changed, those that lose most first; says whether anything was
    /// improved.
    fn round(&mut self, anew: bool) -> Result<bool, Cancelled> {
        let mut improved = false;
        let mut classes: Vec<u32> = (0..self.groups.len() as u32).collect();
        classes.retain(|class| self.dirty[*class as usize]);
        classes.sort_by_cached_key(|class| std::cmp::Reverse(self.groups.cost(*class)));
        for class in classes {
            self.cancel.check()?;
            if self.steps == 0 {
                break;
            }
            if !std::mem::take(&mut self.dirty[class as usize]) {
                continue;
            }
            for member in self.groups.members(class).to_vec() {
                if self.groups.class_of(member) == class {
                    improved |= self.improve(member);
                }
            }
            improved |= self.dissolve(class)
                || self.split(class)
                || anew && self.regroup_with_nearest(class);
        }
        Ok(improved)
    }

    /// Gives individuals a class until only so many are left without; not where suppressing them costs less, unless
    /// `forced`. First those nearby are asked, then any.
    pub(super) fn place(&mut self, left: usize, forced: bool) -> Result<(), Cancelled> {
        let individuals = self.groups.suppressed();
        let few = individuals.len() * self.groups.len() <= 64 * self.groups.block().len();
        let mut without = individuals.len();
        for individual in individuals {
            self.cancel.check()?;
            if without <= left {
                break;
            }
            let mut near = vec![];
            self.begin_list();
            self.list_near(individual, &mut near);
            let all = 0..self.groups.len() as u32;
            let placed = self.place_in(individual, near, forced)
                || few && self.place_in(individual, all.collect(), forced);
            without -= usize::from(placed);
        }
        Ok(())
    }

    fn place_in(&mut self, individual: u32, classes: Vec<u32>, forced: bool) -> bool {
        let most = self.groups.cost_suppressed(individual);
        let groups = &self.groups;
        let there = classes
            .into_iter()
            .filter(|class| !groups.members(*class).is_empty());
        let added = |class| groups.cost_with(class, individual) - groups.cost(class);
        let mut choices: Vec<(i128, u32)> = there.map(|class| (added(class), class)).collect();
        choices.retain(|(added, _)| forced || *added <= most);
        choices.sort_unstable();
        choices.truncate(ASKED);
        let accepts = |(_, class): &(i128, u32)| self.accepts(*class, individual);
        let Some((_, class)) = choices.into_iter().find(accepts) else {
            return false;
        };
        self.replace(class, None, Some(individual));
        true
    }

    /// Begins a list of classes without repetition.
    pub(super) fn begin_list(&mut self) {
        self.lists = self.lists.wrapping_add(1);
        if self.lists == 0 {
            self.listed.fill(0);
            self.lists = 1;
        }
        self.listed.resize(self.groups.len(), 0);
    }

    /// Keeps a class out of the list.
    pub(super) fn unlist(&mut self, class: u32) {
        self.listed[class as usize] = self.lists;
    }

    /// Lists the classes of an individual's neighbours.
    pub(super) fn list_near(&mut self, individual: u32, list: &mut Vec<u32>) {
        for other in self.neighbours.of(individual) {
            let class = self.groups.class_of(other);
            if class != NONE && self.listed[class as usize] != self.lists {
                self.listed[class as usize] = self.lists;
                list.push(class);
            }
        }
    }

    /// Counts work.
    pub(super) fn work(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps as u64);
    }

    /// Whether the class of an individual is valid without it.
    pub(super) fn is_spare(&mut self, individual: u32) -> bool {
        if let Some(known) = self.spare[individual as usize] {
            return known;
        }
        let members = self.groups.members(self.groups.class_of(individual));
        let rest = members.iter().copied().filter(|i| *i != individual);
        let known = members.len() > self.judge.min_individuals() && self.judge.satisfied(rest);
        self.work(4 * self.groups.members(self.groups.class_of(individual)).len());
        self.spare[individual as usize] = Some(known);
        known
    }

    /// Whether an individual could be spared, as far as is known without asking the model.
    pub(super) fn may_be_spare(&self, individual: u32) -> bool {
        let members = self.groups.members(self.groups.class_of(individual));
        let known = self.spare[individual as usize];
        members.len() > self.judge.min_individuals() && known != Some(false)
    }

    /// Whether a class is valid with one more member.
    pub(super) fn accepts(&mut self, class: u32, individual: u32) -> bool {
        self.judge.grows_freely() || {
            self.work(4 * self.groups.members(class).len());
            let members = self.groups.members(class).iter().copied();
            self.judge.satisfied(members.chain([individual]))
        }
    }

    /// Whether the class of an individual is valid with another in its place.
    pub(super) fn exchanges(&mut self, less: u32, more: u32) -> bool {
        if self.judge.grows_freely() && self.spare[less as usize] == Some(true) {
            return true;
        }
        let class = self.groups.class_of(less);
        self.work(4 * self.groups.members(class).len());
        let members = self.groups.members(class).iter().copied();
        let members = members.filter(|i| *i != less).chain([more]);
        self.judge.satisfied(members)
    }

    /// Takes a member out of a class and puts another in.
    pub(super) fn replace(&mut self, class: u32, less: Option<u32>, more: Option<u32>) {
        let members = self.groups.members(class).iter().copied();
        let members = members.filter(|i| Some(*i) != less).chain(more).collect();
        self.groups.set(class, members);
        self.touch(class);
    }

    /// Takes note that a class has changed.
    pub(super) fn touch(&mut self, class: u32) {
        self.dirty.resize(self.groups.len(), true);
        self.begin_list();
        let mut near = vec![class];
        for member in self.groups.members(class).to_vec() {
            self.spare[member as usize] = None;
            self.list_near(member, &mut near);
        }
        self.work(4 * self.groups.members(class).len());
        for class in near {
            self.dirty[class as usize] = true;
        }
    }
}
