//! Local numbers for sensitive values.

/// Numbers the values of a family in the order of their first appearance. Forgetting all is free.
#[derive(Debug, Clone)]
pub(super) struct ValueIndex {
    slots: Vec<Slot>,
    len: u32,
    epoch: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    epoch: u32,
    code: u32,
    value: u32,
}

impl ValueIndex {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![Slot::default(); 256],
            len: 0,
            epoch: 1,
        }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.slots.fill(Slot::default());
            self.epoch = 1;
        }
    }

    /// The number of a code; the next one if it is new.
    pub(super) fn number(&mut self, code: u32) -> u32 {
        if self.len as usize * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.find(code);
        if self.slots[slot].epoch != self.epoch {
            self.slots[slot] = Slot {
                epoch: self.epoch,
                code,
                value: self.len,
            };
            self.len += 1;
        }
        self.slots[slot].value
    }

    /// The number of a code that has one.
    pub(super) fn known(&self, code: u32) -> Option<u32> {
        let slot = self.slots[self.find(code)];
        (slot.epoch == self.epoch).then_some(slot.value)
    }

    fn find(&self, code: u32) -> usize {
        let last = self.slots.len() - 1;
        // Fibonacci hashing: codes are dense small numbers, any odd multiplier spreads them.
        let mut slot = (u64::from(code).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & last;
        while self.slots[slot].epoch == self.epoch && self.slots[slot].code != code {
            slot = (slot + 1) & last;
        }
        slot
    }

    fn grow(&mut self) {
        let wide = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, wide);
        for entry in old.into_iter().filter(|slot| slot.epoch == self.epoch) {
            let slot = self.find(entry.code);
            self.slots[slot] = entry;
        }
    }
}
