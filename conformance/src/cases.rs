//! What is tested, one module a subject.

mod runtime_bad_input;
mod runtime_call;
mod runtime_cancel;
mod runtime_connect;
mod runtime_death;
mod runtime_http;
mod runtime_http_input;
mod runtime_repeat;
mod scripted_calls;
mod scripted_framing;
mod scripted_hold;
mod scripted_life;
mod scripted_side;
mod worker_calls;
mod worker_cancel;
mod worker_errors;
mod worker_pipe;

use crate::case::Case;

/// Every case, in the order in which they run.
pub(crate) fn all() -> Vec<&'static Case> {
    let modules: &[&'static [Case]] = &[
        runtime_connect::CASES,
        runtime_call::CASES,
        runtime_bad_input::CASES,
        runtime_cancel::CASES,
        runtime_repeat::CASES,
        runtime_http::CASES,
        runtime_http_input::CASES,
        runtime_death::CASES,
        scripted_calls::CASES,
        scripted_framing::CASES,
        scripted_hold::CASES,
        scripted_life::CASES,
        scripted_side::CASES,
        worker_calls::CASES,
        worker_errors::CASES,
        worker_cancel::CASES,
        worker_pipe::CASES,
    ];
    modules.iter().flat_map(|cases| cases.iter()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;
    use crate::registry::Registry;

    #[test]
    fn ids_are_unique_and_say_their_role() {
        let mut seen = BTreeSet::new();
        for case in all() {
            assert!(seen.insert(case.id), "{} stands twice", case.id);
            assert!(case.id.starts_with(case.role().name()), "{}", case.id);
        }
    }

    #[test]
    fn cited_requirements_exist() {
        let registry = Registry::embedded().unwrap();
        for case in all() {
            for id in case.requirements {
                assert!(registry.find(id).is_some(), "{} cites {id}", case.id);
            }
        }
    }

    fn is_requirement(part: &str) -> bool {
        let number = part.rsplit('-').next().unwrap_or_default();
        part.starts_with("AGX-") && number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit())
    }

    /// Checks inside the cases name requirements too: they stand in quotes in the sources.
    #[test]
    fn requirements_named_in_checks_exist() {
        let registry = Registry::embedded().unwrap();
        let mut files = vec![std::path::PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src"
        ))];
        let mut found = 0;
        while let Some(path) = files.pop() {
            if path.is_dir() {
                files.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for quoted in text.split('"').filter(|part| is_requirement(part)) {
                assert!(
                    registry.find(quoted).is_some(),
                    "{} names {quoted}",
                    path.display()
                );
                found += 1;
            }
        }
        assert!(found > 0);
    }
}
