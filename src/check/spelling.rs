//! Spellings of one value.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use unicode_normalization::UnicodeNormalization;

use super::codes::codes;

/// Texts as numbers, the same for those that differ in case, white space or Unicode form only; other values as they are.
///
/// What is checked after this counts two spellings as one value, as `normalize` asks for.
pub fn one_spelling(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !is_text(values.data_type()) {
        return Ok(Arc::clone(values));
    }
    let (of, different) = codes(std::slice::from_ref(values))?;
    let mut first: Vec<u32> = vec![0; different];
    for (row, code) in (0u32..).zip(&of) {
        first[*code as usize] = row;
    }
    let examples = take(values, &UInt32Array::from(first), None)?;
    let examples = cast(&examples, &DataType::Utf8)?;
    let mut known: HashMap<String, u32> = HashMap::new();
    let spelled = examples.as_string::<i32>().iter().map(|text| {
        let next = known.len() as u32;
        *known.entry(plain(text.unwrap_or_default())).or_insert(next)
    });
    let spelled: Vec<u32> = spelled.collect();
    let numbers = of.iter().map(|code| spelled[*code as usize]);
    let numbers: Vec<u32> = numbers.collect();
    Ok(Arc::new(UInt32Array::new(
        numbers.into(),
        values.logical_nulls(),
    )))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_text(value),
        DataType::RunEndEncoded(_, value) => is_text(value.data_type()),
        other => other.is_string(),
    }
}

/// A text without what may differ: its characters in one form and without case, with one blank between words.
fn plain(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut blank = false;
    // There and back, as a letter may have several capitals, and a capital several letters.
    let letters = text.nfkc().flat_map(char::to_lowercase);
    let letters = letters.flat_map(char::to_uppercase);
    let letters: String = letters.flat_map(char::to_lowercase).collect();
    for letter in letters.nfkc() {
        if letter.is_whitespace() {
            blank = true;
            continue;
        }
        if blank && !written.is_empty() {
            written.push(' ');
        }
        blank = false;
        written.push(letter);
    }
    written
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        DictionaryArray, Int64Array, LargeStringArray, StringArray, StringViewArray,
    };
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn spellings_of_one_value_are_one() {
        let texts = [
            Some("HIV"),
            Some(" hiv"),
            None,
            Some("h iv"),
            Some("ＨＩＶ"),
            Some("H\u{a0}\tIV"),
            Some("Straße"),
            Some("STRASSE"),
            Some("STRAẞE"),
            Some("ΟΔΟΣ"),
            Some("οδοσ"),
            Some("οδος"),
            Some("e\u{301}"),
            Some("É"),
            Some("ΐ"),
            Some("Ϊ\u{301}"),
            Some(""),
            Some("  "),
        ];
        let same = [0, 0, 9, 1, 0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 6, 6, 5, 5];
        let dictionary: DictionaryArray<Int32Type> = texts.into_iter().collect();
        let columns: [ArrayRef; 4] = [
            Arc::new(StringArray::from_iter(texts)),
            Arc::new(LargeStringArray::from_iter(texts)),
            Arc::new(StringViewArray::from_iter(texts)),
            Arc::new(dictionary),
        ];
        for column in columns {
            let spelled = one_spelling(&column).unwrap();
            let (codes, different) = codes(&[Arc::clone(&spelled)]).unwrap();
            assert_eq!(different, 8, "seven values and NULL");
            assert!(spelled.is_null(2));
            for (a, own) in same.iter().enumerate() {
                for (b, other) in same.iter().enumerate() {
                    assert_eq!(own == other, codes[a] == codes[b], "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn other_values_stay() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, Some(7)]));
        assert_eq!(&one_spelling(&numbers).unwrap(), &numbers);
    }
}
