//! What a worker leaves behind when it ends.

use crate::names::WORKER_ID;
use crate::proc_stat::ProcStat;
use rustix::process::{Pid, Signal, getpid, kill_process};

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
    let leads = ProcStat::own().is_some_and(|stat| stat.group == Some(own));
    if !leads || std::env::var_os(WORKER_ID).is_none() {
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
        .filter(|pid| {
            let stat = ProcStat::of(*pid);
            *pid != group && stat.is_some_and(|stat| stat.lives && stat.group == Some(group))
        })
        .collect()
}
