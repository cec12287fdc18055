//! The suite against testees that implement nothing: no case may pass, and the exit status has to say so.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use support::{Run, suite};

/// Serves every connection with `answer` until the test ends; gives the URL.
fn serve(answer: fn(TcpStream)) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

/// Reads one request and gives its method and path.
fn request(stream: &mut TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap_or_default();
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|len| len > 2) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let _ = reader.take(length).read_to_end(&mut Vec::new());
    let mut words = first.split(' ').map(str::to_owned);
    (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    )
}

fn respond(mut stream: TcpStream, status: &str, kind: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

fn runtime_at(url: &str) -> Run {
    suite(&[
        "run",
        "runtime",
        "--url",
        url,
        "--timeout-scale",
        "0.01",
        "--format",
        "json",
    ])
}

#[test]
fn a_port_that_says_nothing() {
    let run = runtime_at(&serve(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    }));
    assert_eq!(run.exit_status, 5);
    assert_eq!(run.passed(), Vec::<String>::new());
}

#[test]
fn a_port_where_nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let run = runtime_at(&format!("http://127.0.0.1:{port}"));
    assert_eq!(run.exit_status, 5);
    assert_eq!(run.passed(), Vec::<String>::new());
}

#[test]
fn a_plain_web_server() {
    let run = runtime_at(&serve(|mut stream| {
        request(&mut stream);
        respond(stream, "200 OK", "text/html", b"<p>hello</p>");
    }));
    assert_eq!(run.exit_status, 1);
    assert_eq!(run.passed(), Vec::<String>::new());
    assert!(run.failed().len() > 100);
}

#[test]
fn a_server_that_answers_everything_with_one_error() {
    let run = runtime_at(&serve(|mut stream| {
        request(&mut stream);
        let error = b"\x82\xa2ok\xc2\xa5error\x85\xa4type\xaaBadRequest\xa7message\xa0\xa9traceback\xc0\xa9cancelled\xc2\xaareturncode\xc0";
        respond(stream, "400 Bad Request", "application/msgpack", error);
    }));
    assert_eq!(run.exit_status, 1);
    assert_eq!(run.passed(), Vec::<String>::new());
}

/// It is healthy, and nothing else: just the case about that passes.
#[test]
fn a_server_that_is_only_healthy() {
    let run = runtime_at(&serve(|mut stream| match request(&mut stream) {
        (method, path) if method == "GET" && path == "/health" => {
            let body = br#"{"status":"ok","version":"1","protocol":"1.0"}"#;
            respond(stream, "200 OK", "application/json", body);
        }
        _ => respond(stream, "404 Not Found", "text/plain", b""),
    }));
    assert_eq!(run.exit_status, 1);
    assert_eq!(run.passed(), ["runtime/health/body"]);
}

fn worker(command: &[&str]) -> Run {
    let args = [
        "run",
        "worker",
        "--timeout-scale",
        "0.01",
        "--format",
        "json",
        "--",
    ];
    suite(&[&args[..], command].concat())
}

#[test]
fn programs_that_are_no_worker() {
    let ready_and_deaf = r"printf '\014\000\000\000\201\244type\245ready'; exec cat >/dev/null";
    let ready_and_gone = r"printf '\014\000\000\000\201\244type\245ready'; exit 0";
    let programs = [
        &["cat"][..],
        &["true"],
        &["false"],
        &["sleep", "1000"],
        &["yes"],
        &["sh", "-c", ready_and_deaf],
        &["sh", "-c", ready_and_gone],
    ];
    std::thread::scope(|scope| {
        for command in programs {
            scope.spawn(move || {
                let run = worker(command);
                assert_eq!(run.exit_status, 1, "{command:?}");
                assert_eq!(run.passed(), Vec::<String>::new(), "{command:?}");
            });
        }
    });
}
