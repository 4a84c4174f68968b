//! Regions as a tree stores them.

/// Items in columns.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) item: Vec<u32>,
    pub(super) key: Vec<u32>,
    pub(super) records: Vec<u64>,
    pub(super) loss: Vec<u64>,
    pub(super) words: Vec<u64>,
}

/// A region as a tree stores it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) number: u32,
    pub(super) key: u32,
    pub(super) records: u64,
    pub(super) loss: u64,
    pub(super) words: &'a [u64],
}

impl Slots {
    #[inline(always)]
    pub(super) fn of(&self, slot: usize, words: usize) -> Item<'_> {
        Item {
            number: self.item[slot],
            key: self.key[slot],
            records: self.records[slot],
            loss: self.loss[slot],
            words: &self.words[slot * words..][..words],
        }
    }

    pub(super) fn push(&mut self, item: Item<'_>) {
        self.item.push(item.number);
        self.key.push(item.key);
        self.records.push(item.records);
        self.loss.push(item.loss);
        self.words.extend_from_slice(item.words);
    }

    pub(super) fn set(&mut self, slot: usize, item: Item<'_>) {
        let words = item.words.len();
        self.item[slot] = item.number;
        self.key[slot] = item.key;
        self.records[slot] = item.records;
        self.loss[slot] = item.loss;
        self.words[slot * words..][..words].copy_from_slice(item.words);
    }

    pub(super) fn copy(&mut self, from: usize, to: usize, words: usize) {
        self.item[to] = self.item[from];
        self.key[to] = self.key[from];
        self.records[to] = self.records[from];
        self.loss[to] = self.loss[from];
        self.words
            .copy_within(from * words..(from + 1) * words, to * words);
    }

    pub(super) fn resize(&mut self, slots: usize, words: usize) {
        self.item.resize(slots, 0);
        self.key.resize(slots, 0);
        self.records.resize(slots, 0);
        self.loss.resize(slots, 0);
        self.words.resize(slots * words, 0);
    }
}
