//! The command line.

use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::builtin;
use crate::case::{Case, Kind, Role, matches};
use crate::cases;
use crate::clock::Clock;
use crate::decoder;
use crate::peer::Endpoint;
use crate::registry::Registry;
use crate::report::{Format, Report, describe_case, describe_requirement, print_out};
use crate::runner::{self, exit};
use crate::testee::{Command, Functions, How, Testee};

/// Tests implementations of the Agentix RPC protocol by what comes over the wire.
///
/// Without a command, runs the built-in reference implementations.
#[derive(Debug, Parser)]
#[command(name = "agentix-conformance", version, after_help = EXIT_STATUSES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Action>,
}

const EXIT_STATUSES: &str = "\
Exit status: 0 conforms; 1 a case failed; 2 wrong usage; 4 inconclusive (nothing matched, or a required case did not
run); 5 the testee could not be started; 70 fault of the suite; 130 interrupted.";

const TESTEE_COMMANDS: &str = "\
The command of a runtime has {port} where its port goes, and {worker} where the command line of its worker goes, as
one argument: the suite puts in a worker of its own, and in some cases plays it. Without {worker}, the runtime brings
a worker that offers the functions of spec/prose/functions.md; in Python they are in the module `conformance`, whose
folder is in AGENTIX_PATH. The command of a worker is run as it is, and offers the same functions.

  agentix-conformance run runtime -- ./my-runtime --port {port} --worker {worker}
  agentix-conformance run worker -- ./my-worker

The decoder of pickles is built in. Its cases are the vectors of a file: one JSON object a line, as told in
spec/vectors/pickle/README.md. Each is decoded in a process that may use 2 s of processor time, 60 s on the clock and
256 MiB of memory for it.

  agentix-conformance run decoder --vectors spec/vectors/pickle/public.jsonl";

#[derive(Debug, Subcommand)]
enum Action {
    /// Runs the cases against a testee, or against the built-in reference implementations.
    #[command(after_help = TESTEE_COMMANDS)]
    Run(RunArgs),
    /// Lists the cases.
    List(Selection),
    /// Explains a requirement, a case, or all cases that a glob matches.
    Explain {
        /// `AGX-...`, or the id of a case.
        id: String,
    },
}

#[derive(Clone, Debug, Default, Args)]
struct Selection {
    /// Role of the testee.
    #[arg(value_enum)]
    role: Option<RoleArg>,
    /// Only cases, or vectors, whose id matches; `*` stands for any text. May be repeated.
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// Only cases that test this requirement. May be repeated.
    #[arg(long, value_name = "ID")]
    req: Vec<String>,
}

/// Two: most of what the suite does is wait, and more at a time would make slow machines look like slow testees.
const JOBS: NonZeroUsize = NonZeroUsize::new(2).unwrap();

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RoleArg {
    /// Serves HTTP and Socket.IO, and supervises a worker.
    Runtime,
    /// Speaks frames on standard input and output.
    Worker,
    /// Decodes pickles; needs --vectors.
    Decoder,
}

impl RoleArg {
    /// The role of cases; the decoder has vectors instead.
    fn of_cases(self) -> Option<Role> {
        match self {
            Self::Runtime => Some(Role::Runtime),
            Self::Worker => Some(Role::Worker),
            Self::Decoder => None,
        }
    }
}

#[derive(Clone, Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    selection: Selection,
    /// A runtime that runs already, as http://HOST:PORT.
    #[arg(long, conflicts_with = "testee_command")]
    url: Option<String>,
    /// File of vectors for the decoder.
    #[arg(long, value_name = "FILE")]
    vectors: Option<PathBuf>,
    /// Only built-in testees whose name matches. May be repeated.
    #[arg(long, value_name = "GLOB")]
    testee: Vec<String>,
    /// Leaves out the cases in which the suite plays the runtime's worker.
    #[arg(long)]
    no_script: bool,
    /// What goes to standard output.
    #[arg(long, value_enum, default_value_t = Format::Pretty)]
    format: Format,
    /// Folder for report.jsonl, summary.txt and a transcript of each case.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Multiplies every wait of the suite; above 1 for slow machines.
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    timeout_scale: f64,
    /// How many testees are tested at a time, the cases of one running one after the other; default 2. For the
    /// decoder, how many vectors are decoded at a time; default as many as the machine has processors.
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Command that starts the testee.
    #[arg(last = true, value_name = "CMD")]
    testee_command: Vec<OsString>,
}

impl Default for RunArgs {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            url: None,
            vectors: None,
            testee: Vec::new(),
            no_script: false,
            format: Format::Pretty,
            out: None,
            timeout_scale: 1.0,
            jobs: None,
            testee_command: Vec::new(),
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if scale > 0.0 && scale <= 1000.0 => Ok(scale),
        _ => Err("a number above 0, at most 1000".to_owned()),
    }
}

/// Runs the suite with a whole command line, the program's name first.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // Not in the help: how the suite starts itself as a testee or as a scripted worker.
    if let Some(code) = builtin::hidden(&args) {
        return code;
    }
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
    };
    let done = match cli
        .command
        .unwrap_or_else(|| Action::Run(RunArgs::default()))
    {
        Action::Run(run) => run_command(run),
        Action::List(selection) => list(&selection),
        Action::Explain { id } => explain(&id),
    };
    ExitCode::from(done.unwrap_or_else(|problem| {
        eprintln!("agentix-conformance: {}", problem.text);
        problem.status
    }))
}

/// Why nothing was run, and the exit status that says so.
struct Problem {
    text: String,
    status: u8,
}

impl Problem {
    fn usage(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            status: exit::USAGE,
        }
    }

    fn fault(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            status: exit::FAULT,
        }
    }
}

fn registry() -> Result<Registry, Problem> {
    Registry::embedded().map_err(|error| Problem::fault(format!("the embedded registry: {error}")))
}

fn select(selection: &Selection) -> Vec<&'static Case> {
    let role = selection.role.map(RoleArg::of_cases);
    let any = |patterns: &[String], hit: &dyn Fn(&str) -> bool| {
        patterns.is_empty() || patterns.iter().any(|pattern| hit(pattern))
    };
    let wanted = |case: &&Case| {
        role.is_none_or(|role| role == Some(case.role()))
            && any(&selection.case, &|pattern| matches(pattern, case.id))
            && any(&selection.req, &|id| case.requirements.contains(&id))
    };
    cases::all().into_iter().filter(wanted).collect()
}

fn run_command(args: RunArgs) -> Result<u8, Problem> {
    if args.selection.role == Some(RoleArg::Decoder) {
        return run_decoder(args);
    }
    if args.vectors.is_some() {
        return Err(Problem::usage(
            "--vectors is for the decoder: run decoder --vectors FILE",
        ));
    }
    let registry = registry()?;
    for id in &args.selection.req {
        if registry.find(id).is_none() {
            return Err(Problem::usage(format!("no requirement {id:?}")));
        }
    }
    let functions = Functions::write()
        .map_err(|error| Problem::fault(format!("a temporary folder: {error}")))?;
    let mut testees = testees(&args, &functions)?;
    if args.no_script {
        for testee in &mut testees {
            testee.kinds.retain(|kind| *kind != Kind::Scripted);
        }
        testees.retain(|testee| !testee.kinds.is_empty());
    }
    let cases = select(&args.selection);
    let mut report = Report::new(args.format, args.out.as_deref(), registry)
        .map_err(|error| Problem::usage(format!("--out: {error}")))?;
    let clock = Clock::new(args.timeout_scale);
    let jobs = args.jobs.unwrap_or(JOBS).get();
    until_interrupted(async {
        let run = runner::run(&testees, &cases, clock, jobs, &mut report).await;
        Ok(run.exit_status())
    })
}

fn run_decoder(args: RunArgs) -> Result<u8, Problem> {
    let path = args.vectors.ok_or_else(|| {
        Problem::usage(
            "the decoder is tested with vectors: say --vectors FILE, such as spec/vectors/pickle/public.jsonl",
        )
    })?;
    let meaningless = [
        ("--url", args.url.is_some()),
        ("--testee", !args.testee.is_empty()),
        ("--req", !args.selection.req.is_empty()),
        ("--no-script", args.no_script),
        ("a command", !args.testee_command.is_empty()),
    ];
    if let Some((option, _)) = meaningless.iter().find(|(_, given)| *given) {
        return Err(Problem::usage(format!(
            "the decoder is built in; leave out {option}"
        )));
    }
    let file = path.display().to_string();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Problem::usage(format!("{file}: {error}")))?;
    let mut vectors =
        decoder::read_vectors(&text).map_err(|error| Problem::usage(format!("{file}: {error}")))?;
    let wanted = &args.selection.case;
    vectors.retain(|vector| {
        wanted.is_empty() || wanted.iter().any(|pattern| matches(pattern, &vector.id))
    });
    let mut report = decoder::Report::new(args.format, args.out.as_deref(), file)
        .map_err(|error| Problem::usage(format!("--out: {error}")))?;
    let clock = Clock::new(args.timeout_scale);
    let processors = std::thread::available_parallelism().unwrap_or(JOBS);
    let jobs = args.jobs.unwrap_or(processors);
    until_interrupted(async {
        let status = decoder::run_builtin(&vectors, clock, jobs, &mut report).await;
        status.map_err(Problem::fault)
    })
}

/// Runs to the end, or until a signal comes: dropping the run kills every process group that it started.
fn until_interrupted(run: impl Future<Output = Result<u8, Problem>>) -> Result<u8, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Problem::fault(error.to_string()))?;
    runtime.block_on(async {
        // Before anything is started, so that nothing that was started outlives a signal.
        let interrupted =
            interruption().map_err(|error| Problem::fault(format!("signal handlers: {error}")))?;
        tokio::select! {
            status = run => status,
            () = interrupted => Ok(exit::INTERRUPTED),
        }
    })
}

/// Takes SIGINT and SIGTERM from now on; ends when one comes.
fn interruption() -> io::Result<impl Future<Output = ()>> {
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
        }
    })
}

fn testees(args: &RunArgs, functions: &Functions) -> Result<Vec<Testee>, Problem> {
    if args.url.is_none() && args.testee_command.is_empty() {
        let wanted = |testee: &Testee| {
            let role = args.selection.role.map(RoleArg::of_cases);
            let role = role.is_none_or(|role| role == Some(testee.role));
            role && (args.testee.is_empty()
                || args
                    .testee
                    .iter()
                    .any(|pattern| matches(pattern, &testee.name)))
        };
        let all = builtin::testees(functions).map_err(Problem::fault)?;
        return Ok(all.into_iter().filter(wanted).collect());
    }
    if !args.testee.is_empty() {
        return Err(Problem::usage(
            "--testee selects among the built-in testees; leave it out with --url or a command",
        ));
    }
    let role = args.selection.role.and_then(RoleArg::of_cases);
    let role = role.ok_or_else(|| {
        Problem::usage("say which role the testee has: run runtime ..., or run worker ...")
    })?;
    if let Some(url) = &args.url {
        if role != Role::Runtime {
            return Err(Problem::usage(
                "--url is for runtimes; a worker is given by its command",
            ));
        }
        let endpoint = Endpoint::parse(url).map_err(Problem::usage)?;
        return Ok(vec![Testee {
            name: format!("runtime at {endpoint}"),
            role,
            how: How::Url(endpoint),
            kinds: vec![Kind::Runtime, Kind::Scripted],
            repeat: format!("agentix-conformance run runtime --case {{case}} --url {url}"),
        }]);
    }
    let command = Command {
        argv: args.testee_command.clone(),
        env: vec![("AGENTIX_PATH".to_owned(), functions.path().into())],
        worker: Some(builtin::worker_command().map_err(Problem::fault)?),
    };
    if role == Role::Runtime && !command.takes_port() {
        return Err(Problem::usage(
            "the command of a runtime needs {port} where its port goes",
        ));
    }
    let words = args
        .testee_command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let words: Vec<_> = words.collect();
    let shown =
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    Ok(vec![Testee {
        name: format!(
            "{}: {}",
            role.name(),
            words.first().map_or("", String::as_str)
        ),
        role,
        how: How::Command(command),
        kinds: match role {
            Role::Runtime => vec![Kind::Runtime, Kind::Scripted],
            Role::Worker => vec![Kind::Worker],
        },
        repeat: format!(
            "agentix-conformance run {} --case {{case}} -- {shown}",
            role.name()
        ),
    }])
}

fn list(selection: &Selection) -> Result<u8, Problem> {
    if selection.role == Some(RoleArg::Decoder) {
        return Err(Problem::usage(
            "the decoder has no cases but the vectors of a file: run decoder --vectors FILE",
        ));
    }
    let registry = registry()?;
    let cases = select(selection);
    let width = cases.iter().map(|case| case.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for case in &cases {
        let role = case.role().name();
        out.push_str(&format!(
            "{:width$}  {role:7}  {}\n",
            case.id,
            case.requirements.join(" ")
        ));
    }
    let covered = registry.iter().filter(|entry| {
        cases
            .iter()
            .any(|case| case.requirements.contains(&&*entry.id))
    });
    let bound = registry.iter().filter(|entry| {
        entry
            .roles
            .iter()
            .any(|role| role == "runtime" || role == "worker")
    });
    out.push_str(&format!(
        "\n{} cases; they test {} requirements, of {} that bind runtimes or workers\n",
        cases.len(),
        covered.count(),
        bound.count()
    ));
    print_out(&out);
    Ok(if cases.is_empty() {
        exit::INCONCLUSIVE
    } else {
        exit::CONFORMS
    })
}

fn explain(id: &str) -> Result<u8, Problem> {
    let registry = registry()?;
    if let Some(requirement) = registry.find(id) {
        print_out(&describe_requirement(requirement));
        return Ok(exit::CONFORMS);
    }
    let found = cases::all().into_iter().filter(|case| matches(id, case.id));
    let found: Vec<_> = found.map(|case| describe_case(case, &registry)).collect();
    if found.is_empty() {
        return Err(Problem::usage(format!(
            "no requirement and no case {id:?}; `agentix-conformance list` names the cases"
        )));
    }
    print_out(&found.join("\n"));
    Ok(exit::CONFORMS)
}
