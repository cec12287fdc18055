//! What a worker leaves behind when it ends.

use crate::names::WORKER_ID;
use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};

/// Rounds of looking for members: one that is forking while it is killed can leave another.
const ROUNDS: usize = 10;

/// Kills the other members of the worker's process group, if it was started by a runtime, which
/// says so in `AGENTIX_WORKER_ID`, and leads its group. Otherwise the members may be strangers, as
/// the other programs of a shell's pipeline are.
///
/// A runtime that lives kills the group itself once its worker has ended; this is for a worker
/// whose runtime is gone. Members are found in `/proc`: where there is none, nothing happens.
pub(super) fn kill_others() {
    let own = getpid();
    if getpgrp() != own || std::env::var_os(WORKER_ID).is_none() {
        return;
    }
    for _ in 0..ROUNDS {
        let members = members(own);
        if members.is_empty() {
            return;
        }
        for member in members {
            // An error means that it has just ended.
            let _ = kill_process(member, Signal::KILL);
        }
    }
}

/// The living processes of a group beside its leader.
fn members(group: Pid) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != group && group_of_living(*pid) == Some(group.as_raw_pid()))
        .collect()
}

/// Reads state and group from `/proc/PID/stat`: `PID (NAME) STATE PARENT GROUP …`.
fn group_of_living(pid: Pid) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // The name may hold anything, parentheses too.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(group)
}
