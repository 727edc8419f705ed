//! Texts that show damage: JSON and TOML with a checksum at their end.

/// The form of a text that ends with a checksum of what stands before it: 16 hexadecimal digits of its BLAKE3 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumForm {
    /// A JSON object; its last field is `checksum`.
    Json,
    /// TOML; its last line is a comment.
    Toml,
}

/// A text is not the one that its checksum was computed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "its checksum does not match its contents: it was damaged or edited since it was written; put back a copy of it, or remove it"
)]
pub struct WrongChecksum;

impl ChecksumForm {
    /// What stands before and behind the digits.
    const fn around(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => (",\"checksum\":\"", "\"}\n"),
            Self::Toml => ("# checksum: ", "\n"),
        }
    }

    /// The end of a text without a checksum that comes behind it.
    const fn end(self) -> &'static str {
        match self {
            Self::Json => "}",
            Self::Toml => "",
        }
    }

    /// The text with its checksum and a line's end.
    pub fn sign(self, text: &str) -> String {
        let (before, behind) = self.around();
        let body = match self {
            Self::Json => without_brace(text.trim_end()).trim_end(),
            Self::Toml => text,
        };
        format!("{body}{before}{}{behind}", digits_of(body))
    }

    /// The text without its checksum; none if it has none, as files of earlier versions don't.
    ///
    /// # Errors
    ///
    /// The checksum is another text's.
    pub fn open(self, text: &str) -> Result<Option<String>, WrongChecksum> {
        let (before, behind) = self.around();
        let parts = text.strip_suffix(behind);
        let Some((body, digits)) = parts.and_then(|text| text.rsplit_once(before)) else {
            return Ok(None);
        };
        if digits == digits_of(body) {
            Ok(Some(format!("{body}{}", self.end())))
        } else {
            Err(WrongChecksum)
        }
    }
}

impl ChecksumForm {
    /// The text of a file, without its checksum if it has one.
    ///
    /// # Errors
    ///
    /// In words: the bytes are no text, or its checksum is another text's.
    pub fn read(self, bytes: Vec<u8>) -> Result<String, String> {
        let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
        let opened = self.open(&text).map_err(|error| error.to_string())?;
        Ok(opened.unwrap_or(text))
    }
}

fn without_brace(object: &str) -> &str {
    object.strip_suffix('}').unwrap_or(object)
}

fn digits_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_byte_of_a_text_with_a_checksum_changes_its_contents() {
        let json = r#"{"games":40,"score":0.625}"#;
        let toml = "games = 40\nscore = 0.625\n";
        for (form, text) in [(ChecksumForm::Json, json), (ChecksumForm::Toml, toml)] {
            let kept = form.sign(text);
            assert!(kept.ends_with('\n'));
            assert_eq!(form.open(&kept), Ok(Some(text.to_owned())));
            assert_eq!(form.open(text), Ok(None));
            for place in 0..kept.len() {
                let mut bytes = kept.clone().into_bytes();
                bytes[place] ^= 1;
                let changed = String::from_utf8(bytes).unwrap();
                // Without the checksum, the rest must be as it was.
                match form.open(&changed) {
                    Err(WrongChecksum) => {}
                    Ok(None) => assert_eq!(changed[..20], text[..20], "byte {place}"),
                    Ok(Some(read)) => panic!("byte {place}: {read}"),
                }
            }
        }
        let pretty = "{\n  \"games\": 40\n}\n";
        let kept = ChecksumForm::Json.sign(pretty);
        let value: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(value["games"], 40);
        assert_eq!(value["checksum"].as_str().unwrap().len(), 16);
    }
}
