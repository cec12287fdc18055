//! A runtime inside of another program.

use agentix_protocol::http::CallReply;
use agentix_reference_worker::{Config, Runtime, ServeError, WorkerCommand};

use crate::support::{WORKER, call, http, is_alive, pid, until, value, within};

async fn worker_of(address: std::net::SocketAddr) -> i32 {
    let body = call(1, &pid {}).encode();
    let response = http(address, "POST", "/call", &[("prefer", "wait=60")], &body).await;
    value(CallReply::decode(response.status, &response.body).unwrap())
}

#[tokio::test]
async fn it_ends_when_it_is_told() {
    let config = Config::new(WorkerCommand::parse(WORKER).unwrap());
    let runtime = Runtime::bind(config).await.unwrap();
    let address = runtime.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = runtime.serve(async { drop(stopped.await) });
    let using = async {
        let worker = worker_of(address).await;
        drop(stop);
        worker
    };
    let (served, worker) = within("both", async { tokio::join!(serving, using) }).await;
    served.unwrap();
    assert!(!is_alive(worker));
}

#[tokio::test]
async fn its_worker_ends_when_it_is_dropped() {
    let config = Config::new(WorkerCommand::parse(WORKER).unwrap());
    let runtime = Runtime::bind(config).await.unwrap();
    let address = runtime.local_addr();
    let worker = tokio::select! {
        served = runtime.serve(std::future::pending()) => panic!("ended by itself: {served:?}"),
        worker = worker_of(address) => worker,
    };
    until("the worker's end", || !is_alive(worker)).await;
}

#[tokio::test]
async fn a_port_in_use_is_an_error() {
    let command = WorkerCommand::parse(WORKER).unwrap();
    let first = Runtime::bind(Config::new(command.clone())).await.unwrap();
    let mut config = Config::new(command);
    config.port = first.local_addr().port();
    assert!(matches!(
        Runtime::bind(config).await,
        Err(ServeError::Listen { .. })
    ));
}
