//! The corpora of the fuzz targets: `corpus/TARGET.jsonl` has a line for each input, a JSON string with a character for each byte.
//! `scripts/fuzz` adds to them.

/// The inputs in a file, one at least.
pub(crate) fn inputs(path: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(path).unwrap();
    let inputs: Vec<Vec<u8>> = text.lines().map(input).collect();
    assert!(!inputs.is_empty());
    inputs
}

fn input(line: &str) -> Vec<u8> {
    let characters: String = serde_json::from_str(line).unwrap();
    let bytes = characters.chars().map(|c| u8::try_from(u32::from(c)));
    bytes.collect::<Result<_, _>>().unwrap()
}
