//! Side-channel events on the pipe.

use agentix_protocol::frame::{FromWorker, ToWorker};
use agentix_protocol::ident::Namespace;
use agentix_protocol::link::{Exit, LinkOutput, Notice};

use crate::messages::value;
use crate::pipe::{FIRST, Pipe, SECOND, event, write};

#[test]
fn agx_pipe_023_reserved_namespaces_are_refused() {
    let mut p = Pipe::running();
    for reserved in ["/", "/rpc"] {
        let namespace = Namespace::new(reserved).unwrap();
        let refused = [LinkOutput::Notice(Notice::Reserved(namespace.clone()))];
        assert_eq!(
            p.frame(FIRST, &FromWorker::SioEmit(event(reserved, 1))),
            refused
        );
        assert_eq!(p.frame(FIRST, &FromWorker::SioOpen(namespace)), refused);
    }
    // A name that is none: {"type": "sio_open", "namespace": "app"}
    let outputs = p.body(
        FIRST,
        b"\x82\xa4type\xa8sio_open\xa9namespace\xa3app".to_vec(),
    );
    assert!(
        matches!(outputs[..], [LinkOutput::Notice(Notice::BadFrame(_))]),
        "{outputs:?}"
    );
}

#[test]
fn agx_pipe_026_what_a_worker_sends_keeps_its_order() {
    let mut p = Pipe::running();
    p.call(2);
    let frames = [
        FromWorker::SioEmit(event("/app", 1)),
        FromWorker::Outcome(value(2)),
        FromWorker::SioEmit(event("/log", 2)),
        FromWorker::Outcome(value(1)),
    ];
    for frame in &frames {
        let body = frame.encode();
        p.link.frame(FIRST, &body.into(), p.now);
    }
    assert_eq!(
        p.drain(),
        [
            LinkOutput::Emit(event("/app", 1)),
            LinkOutput::Outcome(value(2)),
            LinkOutput::Emit(event("/log", 2)),
            LinkOutput::Outcome(value(1))
        ]
    );
}

#[test]
fn events_are_held_until_the_worker_opens_their_namespace() {
    let mut p = Pipe::running();
    let app = Namespace::new("/app").unwrap();
    assert_eq!(p.event(event("/app", 1)), []);
    assert_eq!(p.event(event("/app", 2)), []);
    assert_eq!(
        p.frame(FIRST, &FromWorker::SioOpen(app)),
        [
            write(FIRST, &ToWorker::SioInbound(event("/app", 1))),
            write(FIRST, &ToWorker::SioInbound(event("/app", 2)))
        ]
    );
    assert_eq!(
        p.event(event("/app", 3)),
        [write(FIRST, &ToWorker::SioInbound(event("/app", 3)))]
    );
    // A new worker has opened nothing.
    p.ends(FIRST, Exit::Code(0));
    p.call(2);
    p.frame(SECOND, &FromWorker::Ready);
    assert_eq!(p.event(event("/app", 5)), []);
}

/// At most 1,024 events or 1 MiB for a namespace that is not open, said once.
#[test]
fn held_events_are_bounded() {
    for (size, kept) in [(1, 1024), (1 << 18, 3)] {
        let mut p = Pipe::running();
        for _ in 0..1100 {
            p.link.event(event("/app", size));
        }
        assert!(matches!(
            p.drain()[..],
            [LinkOutput::Notice(Notice::HeldDropped { .. })]
        ));
        let app = Namespace::new("/app").unwrap();
        assert_eq!(p.frame(FIRST, &FromWorker::SioOpen(app)).len(), kept);
    }
    // So is the number of namespaces.
    let mut p = Pipe::running();
    for n in 0..1025 {
        p.link.event(event(&format!("/n{n}"), 1));
    }
    assert!(matches!(
        p.drain()[..],
        [LinkOutput::Notice(Notice::HeldDropped { .. })]
    ));
}
