//! How a runtime starts its worker.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, access};
use tempfile::TempDir;

/// The Python worker, one file for the standard library of Python 3.9 and newer.
pub const PYTHON_WORKER: &str = include_str!("../python/agentix_worker.py");

const SCRIPT_NAME: &str = "agentix_worker.py";

/// The command that a runtime runs as its worker.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    arguments: Vec<OsString>,
    /// Where the Python worker's script lies, as long as somebody may run it.
    script: Option<Arc<TempDir>>,
}

/// A worker command that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCommand {
    /// The command line has an open quotation mark, or ends in a backslash.
    #[error("worker command {0:?} has an open quotation mark or ends in a backslash")]
    Quoting(String),
    /// The command line holds no word.
    #[error("the worker command is empty; give a program and its arguments")]
    Empty,
    /// There is no such program.
    #[error("worker program {0:?} was not found; give a path, or a name that is found in PATH")]
    NotFound(OsString),
    /// The file is there and cannot be run.
    #[error("worker program {0:?} cannot be executed: {1}")]
    NotExecutable(PathBuf, io::Error),
    /// The script of the Python worker cannot be written.
    #[error("the script of the Python worker cannot be written to a temporary folder: {0}")]
    Script(io::Error),
}

impl WorkerCommand {
    /// A program and its arguments.
    ///
    /// # Errors
    ///
    /// [`InvalidCommand::Empty`] when there is no program.
    pub fn new(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, InvalidCommand> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        if arguments.first().is_none_or(|program| program.is_empty()) {
            return Err(InvalidCommand::Empty);
        }
        Ok(Self {
            arguments,
            script: None,
        })
    }

    /// Takes a command line apart as a POSIX shell does, without running a shell.
    ///
    /// # Errors
    ///
    /// [`InvalidCommand::Quoting`] or [`InvalidCommand::Empty`].
    ///
    /// # Example
    ///
    /// ```
    /// use agentix_reference_worker::WorkerCommand;
    ///
    /// let command = WorkerCommand::parse("agentix-worker --name 'a b'")?;
    /// assert_eq!(command.to_string(), "agentix-worker");
    /// assert!(WorkerCommand::parse("'").is_err());
    /// # Ok::<(), agentix_reference_worker::InvalidCommand>(())
    /// ```
    pub fn parse(line: &str) -> Result<Self, InvalidCommand> {
        let words = shlex::split(line).ok_or_else(|| InvalidCommand::Quoting(line.to_owned()))?;
        Self::new(words.into_iter().map(OsString::from))
    }

    /// The Python worker, run by the interpreter `python`, which imports from `paths` first. Its
    /// script lies in a private temporary folder until the last clone of this is dropped.
    ///
    /// # Errors
    ///
    /// [`InvalidCommand::Script`] when the script cannot be written.
    pub fn python(
        python: impl Into<OsString>,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, InvalidCommand> {
        let folder = tempfile::Builder::new()
            .prefix("agentix-")
            .tempdir()
            .map_err(InvalidCommand::Script)?;
        let script = folder.path().join(SCRIPT_NAME);
        std::fs::write(&script, PYTHON_WORKER).map_err(InvalidCommand::Script)?;
        let mut arguments = vec![python.into(), "-u".into(), script.into()];
        for path in paths {
            arguments.push("--path".into());
            arguments.push(path.into());
        }
        Ok(Self {
            script: Some(Arc::new(folder)),
            ..Self::new(arguments)?
        })
    }

    /// Writes the script of the Python worker again where somebody has cleaned it away.
    ///
    /// # Errors
    ///
    /// When it is gone and cannot be written.
    pub(crate) fn restore_script(&self) -> io::Result<()> {
        let Some(folder) = &self.script else {
            return Ok(());
        };
        let script = folder.path().join(SCRIPT_NAME);
        if script.is_file() {
            return Ok(());
        }
        if !folder.path().is_dir() {
            // Fails where another user was faster: nothing of theirs is run.
            std::fs::DirBuilder::new()
                .mode(0o700)
                .create(folder.path())?;
        }
        std::fs::write(script, PYTHON_WORKER)
    }

    /// Removes the script of the Python worker now: at the end of a process, clones of this may
    /// be left in tasks that are never dropped. No worker can be started afterwards.
    pub(crate) fn remove_script(&self) {
        if let Some(folder) = &self.script {
            // What cannot be removed stays; there is nobody to tell at the end.
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }

    /// Checks that the program is there and may be executed, as a start would find it.
    ///
    /// # Errors
    ///
    /// [`InvalidCommand::NotFound`] or [`InvalidCommand::NotExecutable`].
    pub fn check(&self) -> Result<(), InvalidCommand> {
        let program = self.program();
        let path = Path::new(program);
        if path.components().count() > 1 || path.is_absolute() {
            if !path.is_file() {
                return Err(InvalidCommand::NotFound(program.to_owned()));
            }
            return access(path, Access::EXEC_OK)
                .map_err(|e| InvalidCommand::NotExecutable(path.to_owned(), e.into()));
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders)
            .map(|folder| folder.join(program))
            .any(|path| path.is_file() && access(&path, Access::EXEC_OK).is_ok());
        if found {
            Ok(())
        } else {
            Err(InvalidCommand::NotFound(program.to_owned()))
        }
    }

    /// The program and its arguments.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    fn program(&self) -> &OsStr {
        // `new` refuses an empty list.
        self.arguments.first().map_or(OsStr::new(""), |word| word)
    }
}

impl fmt::Display for WorkerCommand {
    /// Writes the program.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program().display())?;
        match self.script {
            Some(_) => f.write_str(" (Python worker)"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_are_split_as_a_shell_does() {
        let command = WorkerCommand::parse(r#"a 'b c' "d\"e" f\ g"#).unwrap();
        assert_eq!(command.arguments(), ["a", "b c", "d\"e", "f g"]);
        assert!(matches!(
            WorkerCommand::parse("a 'b"),
            Err(InvalidCommand::Quoting(_))
        ));
        for empty in ["", "  ", "''"] {
            assert!(matches!(
                WorkerCommand::parse(empty),
                Err(InvalidCommand::Empty)
            ));
        }
    }

    #[test]
    fn programs_are_looked_up() {
        let check = |line: &str| WorkerCommand::parse(line).unwrap().check();
        check("sh -c true").unwrap();
        check("/bin/sh").unwrap();
        assert!(matches!(
            check("agentix-no-such-program"),
            Err(InvalidCommand::NotFound(_))
        ));
        assert!(matches!(
            check("./agentix-no-such-program"),
            Err(InvalidCommand::NotFound(_))
        ));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(
            check(file.path().to_str().unwrap()),
            Err(InvalidCommand::NotExecutable(..))
        ));
    }

    /// Whoever cleans temporary folders does not end the Python worker for good.
    #[test]
    fn a_script_that_was_cleaned_away_is_written_again() {
        let command = WorkerCommand::python("python3", []).unwrap();
        let script = PathBuf::from(&command.arguments()[2]);
        std::fs::remove_dir_all(script.parent().unwrap()).unwrap();
        command.restore_script().unwrap();
        assert_eq!(std::fs::read_to_string(&script).unwrap(), PYTHON_WORKER);
        std::fs::remove_file(&script).unwrap();
        command.restore_script().unwrap();
        assert_eq!(std::fs::read_to_string(&script).unwrap(), PYTHON_WORKER);
        command.remove_script();
        assert!(!script.exists());
    }

    #[test]
    fn the_script_goes_with_its_last_user() {
        let command = WorkerCommand::python("python3", ["a".into(), "b".into()]).unwrap();
        let script = PathBuf::from(&command.arguments()[2]);
        assert_eq!(std::fs::read_to_string(&script).unwrap(), PYTHON_WORKER);
        assert_eq!(command.arguments()[3..], ["--path", "a", "--path", "b"]);
        let clone = command.clone();
        drop(command);
        assert!(script.exists());
        drop(clone);
        assert!(!script.exists());
    }
}
