//! The runtime's server: one port, its connections, and an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agentix_protocol::link::LinkConfig;
use agentix_protocol::runtime::RuntimeConfig;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::command::WorkerCommand;
use crate::driver::Driver;
use crate::http::{Routes, Upgrade};
use crate::inbox::{self, Inbox, Input};
use crate::log;
use crate::outbox::Pressure;
use crate::process::Groups;
use crate::session::{PingTimes, Sessions};
use crate::websocket;

/// How long a connection may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long connections have to end after the worker has.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause after a connection could not be accepted, as when descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a runtime is made of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Name or address to listen on: `127.0.0.1`, because whoever reaches the port can run code.
    pub host: String,
    /// Port to listen on: 0, a free one.
    pub port: u16,
    /// The worker.
    pub worker: WorkerCommand,
    /// Time between pings to a host: 25 s (AGX-CON-012).
    pub ping_interval: Duration,
    /// Time after a ping without a sign of life: 300 s, for a host that is busy or far away.
    pub ping_timeout: Duration,
    /// Times of a worker's life.
    pub link: LinkConfig,
    /// Bounds on what is held.
    pub calls: RuntimeConfig,
}

impl Config {
    /// The defaults, with this worker.
    #[must_use]
    pub fn new(worker: WorkerCommand) -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            worker,
            ping_interval: Duration::from_secs(25),
            ping_timeout: Duration::from_secs(300),
            link: LinkConfig::default(),
            calls: RuntimeConfig::default(),
        }
    }
}

/// Why a runtime cannot start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The port is in use, or the address cannot be used.
    #[error("cannot listen on {host}:{port}: {source}")]
    Listen {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The operating system has no random bits to give.
    #[error("no random bits: {0}")]
    Random(getrandom::Error),
    /// A fault of the runtime itself; its worker was killed.
    #[error("internal fault: the driver ended early")]
    Driver,
}

/// A runtime that listens.
///
/// # Example
///
/// ```no_run
/// use agentix_reference_worker::{Config, Runtime, WorkerCommand};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::bind(Config::new(WorkerCommand::parse("agentix-worker")?)).await?;
/// println!("http://{}", runtime.local_addr());
/// runtime.serve(std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Runtime {
    listener: TcpListener,
    local_addr: SocketAddr,
    driver: Driver,
    inbox: Inbox,
    groups: Groups,
    sessions: Sessions,
    tick: Duration,
}

/// Ends a runtime's workers by force.
#[derive(Clone, Debug)]
pub struct KillHandle(Groups);

impl KillHandle {
    /// Kills the worker and everything in its process group. For whoever ends the process without
    /// waiting for [`Runtime::serve`].
    pub fn kill(&self) {
        self.0.kill_all();
    }
}

impl Runtime {
    /// Listens on the configured address. Connections wait until [`Runtime::serve`].
    ///
    /// # Errors
    ///
    /// [`ServeError::Listen`] when the address cannot be used.
    pub async fn bind(config: Config) -> Result<Self, ServeError> {
        let listen_error = |source| ServeError::Listen {
            host: config.host.clone(),
            port: config.port,
            source,
        };
        let listener = TcpListener::bind((config.host.as_str(), config.port))
            .await
            .map_err(listen_error)?;
        let local_addr = listener.local_addr().map_err(listen_error)?;
        let (inbox, inputs) = inbox::channel();
        let pressure = Pressure::new();
        let groups = Groups::default();
        let times = PingTimes {
            interval: config.ping_interval,
            timeout: config.ping_timeout,
        };
        let sessions = Sessions::new(times, inbox.clone(), pressure.clone());
        let driver = Driver::new(
            config.worker,
            config.calls,
            config.link,
            groups.clone(),
            pressure,
            (inbox.clone(), inputs),
        )
        .map_err(ServeError::Random)?;
        Ok(Self {
            listener,
            local_addr,
            driver,
            inbox,
            groups,
            sessions,
            tick: (config.ping_interval / 4)
                .clamp(Duration::from_millis(10), Duration::from_secs(1)),
        })
    }

    /// Where the runtime listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// A handle that ends the workers by force.
    #[must_use]
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle(self.groups.clone())
    }

    /// Serves until `shutdown` completes; then stops the worker, answers what waits, and closes
    /// the connections. Dropping this future kills the worker.
    ///
    /// # Errors
    ///
    /// [`ServeError::Driver`] after a fault of the runtime itself.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self {
            listener,
            driver,
            inbox,
            sessions,
            tick,
            ..
        } = self;
        let routes = Arc::new(Routes::new(sessions.clone(), inbox.clone()));
        // Both are aborted when they are dropped, and with the driver its workers are killed.
        let mut driver_task = JoinSet::new();
        driver_task.spawn(driver.run());
        let mut connections = JoinSet::new();
        let mut ticks = tokio::time::interval(tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(stream, Arc::clone(&routes)));
                    }
                    Err(error) => {
                        log::runtime(format_args!("a connection was not accepted: {error}"));
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
                _ = driver_task.join_next() => return Err(ServeError::Driver),
                _ = ticks.tick() => sessions.tick(),
                () = &mut shutdown => break,
            }
        }

        drop(listener);
        let (done, mut stopped) = oneshot::channel();
        inbox.control(Input::Shutdown(done));
        loop {
            tokio::select! {
                result = &mut stopped => match result {
                    Ok(()) => break,
                    Err(_) => return Err(ServeError::Driver),
                },
                Some(_) = connections.join_next() => {}
                _ = ticks.tick() => sessions.tick(),
            }
        }
        // Hosts and HTTP callers have the outcomes of their calls queued by now.
        sessions.close();
        routes.shut_down();
        let ended = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, ended).await;
        Ok(())
    }
}

/// Serves one connection, whatever it becomes.
async fn connection(stream: TcpStream, routes: Arc<Routes>) {
    // An error means that the connection is lost already.
    let _ = stream.set_nodelay(true);
    let (upgrades, mut upgraded) = mpsc::unbounded_channel();
    let shut_down = routes.is_shut_down();
    let service = service_fn({
        let routes = Arc::clone(&routes);
        move |request| {
            let (routes, upgrades) = (Arc::clone(&routes), upgrades.clone());
            async move { routes.answer(request, upgrades).await }
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    let result = tokio::select! {
        result = served.as_mut() => result,
        () = shut_down => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    let Ok(Upgrade { on, session, open }) = upgraded.try_recv() else {
        return;
    };
    let inbox = &routes.inbox;
    match (result, on.await) {
        (Ok(()), Ok(io)) => match open {
            Some(open) => websocket::serve(TokioIo::new(io), session, &open, inbox).await,
            None => websocket::upgrade(TokioIo::new(io), session, inbox).await,
        },
        // The 101 did not arrive: a session made for this WebSocket ends with it.
        _ if open.is_some() => session.leave(),
        _ => {}
    }
}
