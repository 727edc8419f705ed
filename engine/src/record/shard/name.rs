//! The names of shards.

use super::error::{ShardError, ShardFault};
use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The name of a shard: `GGG-NNNNNN.shard`, the generator's number and its sequence number with at least three and six digits.
/// Names are ordered by generator, then by sequence.
///
/// ```
/// use engine::record::ShardName;
/// let name = ShardName { generator: 2, sequence: 41 };
/// assert_eq!(name.to_string(), "002-000041.shard");
/// assert_eq!("002-000041.shard".parse(), Ok(name));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ShardName {
    /// The number of the generator that writes it.
    pub generator: u32,
    /// The generator's own count of its shards, from 0.
    pub sequence: u32,
}

impl fmt::Display for ShardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03}-{:06}.shard", self.generator, self.sequence)
    }
}

impl FromStr for ShardName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = || {
            let (generator, sequence) = text.strip_suffix(".shard")?.split_once('-')?;
            Some(Self {
                generator: generator.parse().ok()?,
                sequence: sequence.parse().ok()?,
            })
        };
        // Written back, so that each shard has one name: no missing zeros, no signs.
        parsed()
            .filter(|name| name.to_string() == text)
            .ok_or_else(|| ShardFault::Name.to_string())
    }
}

/// The shards of a folder by name, in order. Files that don't end in `.shard` are none of it; one that does and is not named as
/// a shard is an error, for it would be left out.
pub fn list_shards(folder: &Path) -> Result<BTreeMap<ShardName, PathBuf>, ShardError> {
    let entries = files::entries(folder).map_err(|error| ShardError::of_file(folder, error))?;
    let mut shards = BTreeMap::new();
    for path in entries {
        if path
            .extension()
            .is_none_or(|extension| extension != "shard")
        {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str());
        match name.map(str::parse) {
            Some(Ok(name)) => shards.insert(name, path),
            _ => return Err(ShardError::of_file(&path, ShardFault::Name)),
        };
    }
    Ok(shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_have_one_form() {
        let name = ShardName {
            generator: 1_234,
            sequence: 7_654_321,
        };
        assert_eq!(name.to_string(), "1234-7654321.shard");
        assert_eq!(name.to_string().parse(), Ok(name));
        for text in [
            "",
            "000-000000",
            "00-000000.shard",
            "000-00000.shard",
            "0000-000000.shard",
            "+00-000000.shard",
            "000-000000.shard.shard",
            "000.shard",
            "a-b.shard",
            "999-99999999999.shard",
        ] {
            assert!(text.parse::<ShardName>().is_err(), "{text}");
        }
    }

    #[test]
    fn folders_are_listed_by_number_and_stray_shards_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "1000-000000.shard",
            "000-000010.shard",
            "000-000009.shard",
            "999-000000.shard",
            ".shard-x.tmp",
            "notes.txt",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = list_shards(folder.path())
            .unwrap()
            .into_keys()
            .map(|name| name.to_string())
            .collect();
        assert_eq!(
            names,
            [
                "000-000009.shard",
                "000-000010.shard",
                "999-000000.shard",
                "1000-000000.shard"
            ]
        );
        std::fs::write(folder.path().join("copy.shard"), "").unwrap();
        let error = list_shards(folder.path()).unwrap_err();
        assert!(error.path.ends_with("copy.shard"), "{error}");
        let missing = list_shards(&folder.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("missing"), "{missing}");
    }
}
