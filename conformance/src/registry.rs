//! The requirements of the specification, embedded in the binary.

use std::collections::BTreeMap;

use serde::Deserialize;

const REQUIREMENTS: &str = include_str!("../../spec/registry/requirements.toml");

/// One numbered requirement.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Requirement {
    /// `AGX-...`.
    pub(crate) id: String,
    /// Key word of BCP 14.
    pub(crate) level: String,
    /// Whom it binds.
    pub(crate) roles: Vec<String>,
    /// Where it stands, relative to `spec/`.
    pub(crate) section: String,
    /// The clause.
    pub(crate) text: String,
}

/// All requirements, by id.
#[derive(Debug)]
pub(crate) struct Registry(BTreeMap<String, Requirement>);

#[derive(Deserialize)]
struct File {
    requirement: Vec<Requirement>,
}

impl Registry {
    /// The registry that is part of this binary.
    ///
    /// # Errors
    ///
    /// What is wrong with the file: a fault of the suite.
    pub(crate) fn embedded() -> Result<Self, String> {
        let file: File = toml::from_str(REQUIREMENTS).map_err(|error| error.to_string())?;
        let count = file.requirement.len();
        let by_id: BTreeMap<_, _> = file
            .requirement
            .into_iter()
            .map(|entry| (entry.id.clone(), entry))
            .collect();
        if by_id.len() == count {
            Ok(Self(by_id))
        } else {
            Err("an id stands twice in the registry".to_owned())
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&Requirement> {
        self.0.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Requirement> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_registry_reads() {
        let registry = Registry::embedded().unwrap();
        let first = registry.find("AGX-CALL-003").unwrap();
        assert_eq!(first.level, "MUST");
        assert!(first.roles.contains(&"runtime".to_owned()));
    }
}
