//! A process as `/proc` shows it.
//!
//! The system calls that name a group or a session answer 0 for one that leads from outside of the
//! own process namespace, as in a container that was entered without a new session; `rustix` takes
//! 0 for a fault of the kernel. Text has no such trap.

use rustix::process::{Pid, getpid};

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcStat {
    /// It has not ended: neither a zombie nor dead.
    pub(crate) lives: bool,
    /// Its process group; `None` when the group's id belongs to an outer namespace.
    pub(crate) group: Option<Pid>,
    /// Its session; `None` as with `group`.
    pub(crate) session: Option<Pid>,
}

impl ProcStat {
    /// Looks at the own process; `None` where there is no `/proc`, or one of another namespace,
    /// whose numbers mean other processes.
    pub(crate) fn own() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let (pid, _) = stat.split_once(' ')?;
        (pid.parse() == Ok(getpid().as_raw_pid())).then(|| Self::parse(&stat))?
    }

    /// Looks at a process; `None` where there is no such process or no `/proc`.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let path = format!("/proc/{}/stat", pid.as_raw_pid());
        Self::parse(&std::fs::read_to_string(path).ok()?)
    }

    /// Reads `PID (NAME) STATE PARENT GROUP SESSION …`; the name may hold anything, parentheses
    /// and blanks too.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?;
        let group: i32 = fields.nth(1)?.parse().ok()?;
        let session: i32 = fields.next()?.parse().ok()?;
        Some(Self {
            lives: !matches!(state, "Z" | "X"),
            group: positive(group),
            session: positive(session),
        })
    }
}

/// `Pid::from_raw` admits negative numbers in release builds only.
fn positive(raw: i32) -> Option<Pid> {
    (raw > 0).then(|| Pid::from_raw(raw)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_and_outer_leaders() {
        let stat = ProcStat::parse("12 (a) b (c)) S 1 0 0 0 -1 4194560 142").unwrap();
        let expected = ProcStat {
            lives: true,
            group: None,
            session: None,
        };
        assert_eq!(stat, expected);
        let stat = ProcStat::parse("12 (sh) Z 1 12 -1 0").unwrap();
        assert_eq!((stat.lives, stat.group), (false, Pid::from_raw(12)));
        assert_eq!(stat.session, None);
        for cut in ["", "12 (sh", "12 (sh)", "12 (sh) S 1", "12 (sh) S 1 x 3"] {
            assert_eq!(ProcStat::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn the_own_process_is_found_where_there_is_proc() {
        if let Some(own) = ProcStat::own() {
            assert!(own.lives);
            assert_eq!(ProcStat::of(getpid()), Some(own));
        }
    }
}
