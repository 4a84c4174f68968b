//! The classes of a block while they are improved, and what changes to them would cost.

use super::shape::{Area, Shape, cost};
use crate::algorithm::Classes;
use crate::table::Block;

/// No class.
pub(super) const NONE: u32 = u32::MAX;

/// Classes, and individuals that are in none.
pub(super) struct Groups<'a> {
    block: &'a Block,
    shape: &'a Shape<'a>,
    points: &'a [u64],
    width: usize,
    classes: Vec<Class>,
    /// Numbers without a class.
    free: Vec<u32>,
    /// The class of each individual.
    class_of: Vec<u32>,
    /// Per individual the words of its class without it, and what a record would lose there.
    rests: Vec<u64>,
    losses: Vec<u64>,
    buffer: Vec<u64>,
}

/// A class; one without members is not there.
struct Class {
    members: Vec<u32>,
    area: Area,
}

impl<'a> Groups<'a> {
    /// No classes yet.
    pub(super) fn new(block: &'a Block, shape: &'a Shape<'a>, points: &'a [u64]) -> Self {
        let width = shape.width();
        Self {
            block,
            shape,
            points,
            width,
            classes: vec![],
            free: vec![],
            class_of: vec![NONE; block.len()],
            rests: vec![0; block.len() * width],
            losses: vec![0; block.len()],
            buffer: vec![0; width],
        }
    }

    pub(super) fn block(&self) -> &'a Block {
        self.block
    }

    pub(super) fn shape(&self) -> &'a Shape<'a> {
        self.shape
    }

    /// The words of an individual.
    pub(super) fn point(&self, individual: u32) -> &'a [u64] {
        &self.points[individual as usize * self.width..][..self.width]
    }

    /// All numbers of classes are below this.
    pub(super) fn len(&self) -> usize {
        self.classes.len()
    }

    pub(super) fn class_of(&self, individual: u32) -> u32 {
        self.class_of[individual as usize]
    }

    pub(super) fn members(&self, class: u32) -> &[u32] {
        &self.classes[class as usize].members
    }

    pub(super) fn area(&self, class: u32) -> &Area {
        &self.classes[class as usize].area
    }

    fn records(&self, individual: u32) -> u64 {
        u64::from(self.block.records(individual))
    }

    fn rest(&self, individual: u32) -> &[u64] {
        &self.rests[individual as usize * self.width..][..self.width]
    }

    /// What the records of a class lose.
    pub(super) fn cost(&self, class: u32) -> i128 {
        self.area(class).cost()
    }

    /// What the records of all classes lose, and those of all individuals without one.
    pub(super) fn total(&self) -> i128 {
        let classes = (0..self.len() as u32).map(|class| self.cost(class));
        let suppressed = self.suppressed().into_iter();
        classes.sum::<i128>() + suppressed.map(|i| self.cost_suppressed(i)).sum::<i128>()
    }

    /// The individuals without a class.
    pub(super) fn suppressed(&self) -> Vec<u32> {
        let all = 0..self.class_of.len() as u32;
        all.filter(|i| self.class_of(*i) == NONE).collect()
    }

    /// What the records of a suppressed individual lose.
    pub(super) fn cost_suppressed(&self, individual: u32) -> i128 {
        let columns = self.block.quasi_identifiers().len() as i128;
        i128::from(self.records(individual)) * columns * i128::from(self.block.full())
    }

    /// What the class of an individual costs without it.
    pub(super) fn cost_without(&self, individual: u32) -> i128 {
        let records = self.area(self.class_of(individual)).records;
        cost(
            records - self.records(individual),
            self.losses[individual as usize],
        )
    }

    /// What a class costs with one more individual.
    #[inline]
    pub(super) fn cost_with(&self, class: u32, individual: u32) -> i128 {
        let area = self.area(class);
        let wide = || self.shape.wide_loss(area, None, Some(individual));
        let point = self.point(individual);
        let loss = self.shape.extended(area.loss, &area.words, point, wide);
        cost(area.records + self.records(individual), loss)
    }

    /// What the class of an individual costs with another in its place.
    #[inline]
    pub(super) fn cost_exchanged(&self, individual: u32, other: u32) -> i128 {
        let area = self.area(self.class_of(individual));
        let wide = || self.shape.wide_loss(area, Some(individual), Some(other));
        let (rest, without) = (self.rest(individual), self.losses[individual as usize]);
        let loss = self.shape.extended(without, rest, self.point(other), wide);
        let records = area.records - self.records(individual) + self.records(other);
        cost(records, loss)
    }

    /// At most [`Groups::cost_exchanged`], at once.
    #[inline]
    pub(super) fn cost_exchanged_at_least(&self, individual: u32, other: u32) -> i128 {
        let records = self.area(self.class_of(individual)).records;
        cost(
            records - self.records(individual) + self.records(other),
            self.losses[individual as usize],
        )
    }

    /// The area of individuals as a class.
    pub(super) fn area_of(&self, members: &[u32]) -> Area {
        let mut area = self.shape.nothing();
        for member in members {
            self.shape.include(&mut area, *member, self.point(*member));
        }
        area
    }

    /// Adds a class of individuals that are in none.
    pub(super) fn add(&mut self, members: Vec<u32>) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.classes.push(Class {
                members: vec![],
                area: self.shape.nothing(),
            });
            self.classes.len() as u32 - 1
        });
        self.set(number, members);
        number
    }

    /// Gives a class other members; without members it is gone. Who was a member must be set as one elsewhere.
    pub(super) fn set(&mut self, number: u32, mut members: Vec<u32>) {
        members.sort_unstable();
        if members.is_empty() {
            self.free.push(number);
        }
        for member in &members {
            self.class_of[*member as usize] = number;
        }
        self.classes[number as usize].area = self.area_of(&members);
        self.derive_rests(number, &members);
        self.classes[number as usize].members = members;
    }

    /// Unites, for each member, all before and all behind it.
    fn derive_rests(&mut self, number: u32, members: &[u32]) {
        let width = self.width;
        let mut so_far = std::mem::take(&mut self.buffer);
        self.shape.clear(&mut so_far);
        for member in members {
            self.rests[*member as usize * width..][..width].copy_from_slice(&so_far);
            self.shape.unite(&mut so_far, self.point(*member));
        }
        self.shape.clear(&mut so_far);
        for member in members.iter().rev() {
            let rest = &mut self.rests[*member as usize * width..][..width];
            self.shape.unite(rest, &so_far);
            self.shape.unite(&mut so_far, self.point(*member));
            let rest = self.rest(*member);
            let area = &self.classes[number as usize].area;
            let wide = self.shape.wide_loss(area, Some(*member), None);
            self.losses[*member as usize] = self.shape.joined(rest, rest).wrapping_add(wide);
        }
        self.buffer = so_far;
    }

    /// All classes by their smallest member, and the individuals in none.
    pub(super) fn into_classes(self) -> Classes {
        let suppressed = self.suppressed();
        let all = self.classes.into_iter().map(|class| class.members);
        let mut classes: Vec<Vec<u32>> = all.filter(|members| !members.is_empty()).collect();
        classes.sort_unstable_by_key(|members| members[0]);
        Classes {
            classes,
            suppressed,
            ..Classes::default()
        }
    }
}
