//! Changes to whole classes: dissolving one, splitting one, forming some anew.

use super::search::Search;

/// Classes with more members are not dissolved or formed anew: that takes quadratic time.
const MOST_DISSOLVED: usize = 64;
const MOST_REGROUPED: usize = 192;
/// Classes that are formed anew together with one.
const NEAREST: usize = 2;

impl Search<'_> {
    /// Gives all members of a class to others, if that loses less.
    pub(super) fn dissolve(&mut self, class: u32) -> bool {
        let members = self.groups.members(class).to_vec();
        if members.is_empty() || members.len() > MOST_DISSOLVED || !self.hopes_to_dissolve(class) {
            return false;
        }
        let mut gain = self.groups.cost(class);
        let mut undo: Vec<(u32, Vec<u32>)> = vec![];
        for member in &members {
            let target = self.best_target(class, *member);
            gain -= target.map_or(gain, |(added, _)| added);
            let Some((_, target)) = target.filter(|_| gain > 0) else {
                // As it was: no class has been touched yet.
                undo.push((class, members));
                for (class, members) in undo {
                    self.groups.set(class, members);
                }
                return false;
            };
            let mut with = self.groups.members(target).to_vec();
            if !undo.iter().any(|(class, _)| *class == target) {
                undo.push((target, with.clone()));
            }
            with.push(*member);
            self.groups.set(target, with);
        }
        self.groups.set(class, vec![]);
        for (class, _) in undo {
            self.touch(class);
        }
        true
    }

    /// Whether it would be worth dissolving a class if no member minded the others.
    fn hopes_to_dissolve(&mut self, class: u32) -> bool {
        let mut gain = self.groups.cost(class);
        for member in self.groups.members(class).to_vec() {
            let added = self.targets(class, member).into_iter().min();
            gain -= added.map_or(gain, |(added, _)| added);
            if gain <= 0 {
                return false;
            }
        }
        true
    }

    fn best_target(&mut self, class: u32, member: u32) -> Option<(i128, u32)> {
        let mut targets = self.targets(class, member);
        targets.sort_unstable();
        let mut targets = targets.into_iter();
        targets.find(|(_, target)| self.accepts(*target, member))
    }

    /// The classes near a member, with what it would add to their cost.
    fn targets(&mut self, class: u32, member: u32) -> Vec<(i128, u32)> {
        self.begin_list();
        self.unlist(class);
        let mut near = vec![];
        self.list_near(member, &mut near);
        self.work(near.len());
        let added = |to: u32| self.groups.cost_with(to, member) - self.groups.cost(to);
        near.into_iter().map(|to| (added(to), to)).collect()
    }

    /// Makes two or more classes of one, if that loses less.
    pub(super) fn split(&mut self, class: u32) -> bool {
        self.groups.members(class).len() >= 2 * self.judge.min_individuals()
            && self.regroup(&[class], Seed::Heaviest)
    }

    /// Forms a class anew together with the classes nearest to it, if that loses less.
    pub(super) fn regroup_with_nearest(&mut self, class: u32) -> bool {
        self.begin_list();
        self.unlist(class);
        let mut near = vec![];
        for member in self.groups.members(class).to_vec() {
            self.list_near(member, &mut near);
        }
        self.work(near.len());
        let shape = self.groups.shape();
        let words = &self.groups.area(class).words;
        let joined = |other: &u32| (shape.joined(words, &self.groups.area(*other).words), *other);
        near.sort_by_cached_key(joined);
        near.truncate(NEAREST);
        near.push(class);
        near.len() > NEAREST
            && (self.regroup(&near, Seed::Heaviest) || self.regroup(&near, Seed::Farthest))
    }

    /// Forms the members of classes anew, if that loses less.
    fn regroup(&mut self, classes: &[u32], seed: Seed) -> bool {
        let members = |class: &u32| self.groups.members(*class).iter().copied();
        let pool: Vec<u32> = classes.iter().flat_map(members).collect();
        let before: i128 = classes.iter().map(|class| self.groups.cost(*class)).sum();
        if pool.is_empty() || pool.len() > MOST_REGROUPED {
            return false;
        }
        let Some(parts) = self.parts_of(pool, before, seed) else {
            return false;
        };
        let mut numbers = classes.to_vec();
        let mut changed = vec![];
        for part in parts {
            changed.push(match numbers.pop() {
                Some(number) => {
                    self.groups.set(number, part);
                    number
                }
                None => self.groups.add(part),
            });
        }
        for number in numbers {
            self.groups.set(number, vec![]);
        }
        for class in changed {
            self.touch(class);
        }
        true
    }

    /// Forms classes of a few individuals that cost less than `limit`, as the first classes were formed.
    fn parts_of(&mut self, mut pool: Vec<u32>, limit: i128, seed: Seed) -> Option<Vec<Vec<u32>>> {
        let block = self.groups.block();
        pool.sort_unstable_by_key(|i| (block.records(*i), std::cmp::Reverse(*i)));
        if seed == Seed::Farthest {
            self.farthest_last(&mut pool);
        }
        let mut parts: Vec<Vec<u32>> = vec![];
        let mut spent = 0;
        while let Some(seed) = pool.pop() {
            let part = self.part_of(seed, &mut pool, limit - spent)?;
            if self.judge.is_valid() {
                spent += self.groups.area_of(&part).cost();
                parts.push(part);
            } else {
                for individual in part {
                    self.join_part(&mut parts, individual)?;
                }
            }
        }
        let cost = |part: &Vec<u32>| self.groups.area_of(part).cost();
        (parts.iter().map(cost).sum::<i128>() < limit).then_some(parts)
    }

    /// Puts the individual last that is farthest from the last.
    fn farthest_last(&self, pool: &mut [u32]) {
        let shape = self.groups.shape();
        let Some((last, rest)) = pool.split_last_mut() else {
            return;
        };
        let point = self.groups.point(*last);
        let far = |i: &&mut u32| shape.joined(point, self.groups.point(**i));
        if let Some(farthest) = rest.iter_mut().max_by_key(far) {
            std::mem::swap(farthest, last);
        }
    }

    /// Grows a class from one individual until it is valid or the pool is empty; nothing if it costs too much.
    fn part_of(&mut self, seed: u32, pool: &mut Vec<u32>, limit: i128) -> Option<Vec<u32>> {
        let shape = self.groups.shape();
        let mut area = shape.nothing();
        let mut part = vec![];
        let mut next = seed;
        self.judge.begin();
        loop {
            part.push(next);
            shape.include(&mut area, next, self.groups.point(next));
            if area.cost() >= limit {
                return None;
            }
            self.judge.add(next);
            if self.judge.is_valid() || pool.is_empty() {
                return Some(part);
            }
            let (mut any, mut helper) = ((u64::MAX, 0), (u64::MAX, 0));
            for (at, individual) in pool.iter().enumerate() {
                let wide = || shape.wide_loss(&area, None, Some(*individual));
                let point = self.groups.point(*individual);
                let loss = shape.extended(area.loss, &area.words, point, wide);
                let added = loss.saturating_sub(area.loss);
                any = any.min((added, at));
                if added < helper.0 && self.judge.helps(*individual) {
                    helper = (added, at);
                }
            }
            self.work(2 * pool.len());
            let near = helper.0 <= any.0.saturating_add(any.0 / 2);
            next = pool.swap_remove(if near { helper.1 } else { any.1 });
        }
    }

    /// Puts an individual into the part where it costs least, if that part stays valid.
    fn join_part(&mut self, parts: &mut [Vec<u32>], individual: u32) -> Option<()> {
        let added = |part: &Vec<u32>| {
            let area = self.groups.area_of(part);
            let mut with = area.clone();
            let shape = self.groups.shape();
            shape.include(&mut with, individual, self.groups.point(individual));
            with.cost() - area.cost()
        };
        let best = parts.iter_mut().min_by_key(|part| added(part))?;
        best.push(individual);
        let valid = self.judge.grows_freely() || self.judge.satisfied(best.iter().copied());
        valid.then_some(())
    }
}

/// From whom the first class is grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seed {
    /// The individual with the most records.
    Heaviest,
    /// The individual farthest from that one.
    Farthest,
}
