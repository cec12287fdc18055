//! A session over HTTP polling: bodies of packets joined by 0x1e, attachments in base64.

use std::sync::Arc;

use agentix_protocol::event::RuntimeEvent;
use agentix_protocol::packet::{EnginePacket, PollingItem, join_polling, split_polling};
use bytes::Bytes;

use crate::body::Pieces;
use crate::inbox::Inbox;
use crate::outbox::{Item, Next, Urgent};
use crate::session::{Fault, Session, rpc_header};
use crate::websocket::close_code;

/// Bytes after which a poll's answer takes no further event: 1 MiB.
const BODY_BYTES: usize = 1024 * 1024;
/// Packets that a poll's answer holds at most (AGX-CON-025); an event is two.
const BODY_PACKETS: usize = 16;
/// What separates packets.
const SEPARATOR: char = '\x1e';
/// Packets of one body that are taken before others have their turn.
const YIELD_PACKETS: usize = 64;

/// Takes the body of a POST, whatever it holds; what is malformed ends the session.
pub(crate) async fn take(session: &Arc<Session>, body: &Bytes) {
    if let Err(fault) = take_all(session, body).await {
        session.fail(&fault);
    }
}

async fn take_all(session: &Arc<Session>, body: &Bytes) -> Result<(), Fault> {
    if body.is_empty() {
        return Ok(());
    }
    let text = str::from_utf8(body).map_err(|_| Fault::NotUtf8)?;
    // One at a time: a body of separators alone must not become millions of packets in memory.
    for (n, part) in text.split(SEPARATOR).enumerate() {
        // A body of many small packets must not keep this thread from other connections.
        if n % YIELD_PACKETS == YIELD_PACKETS - 1 {
            tokio::task::yield_now().await;
        }
        for item in split_polling(part)? {
            match item {
                PollingItem::Text(text) => session.text(&text).await?,
                PollingItem::Binary(attachment) => session.binary(attachment).await?,
            }
        }
    }
    Ok(())
}

/// Waits until there is something to send, and makes a poll's answer of it.
///
/// When the host does not take the answer, the session ends: what it holds could not be sent
/// again, and a host that connects anew resumes its calls.
pub(crate) async fn poll(session: &Arc<Session>, inbox: &Inbox) -> Pieces {
    loop {
        tokio::select! {
            biased;
            () = session.upgraded() => return Pieces::new(EnginePacket::Noop.encode()),
            () = session.outbox.changed() => {}
        }
        let taken = Taken(Some(Arc::clone(session)));
        let items = drain(session, inbox).await;
        taken.sent();
        if !items.is_empty() {
            let session = Arc::clone(session);
            return Pieces::new(join_polling(&items)).or_else(move || session.leave());
        }
    }
}

/// Ends the session when it is dropped before [`Taken::sent`].
struct Taken(Option<Arc<Session>>);

impl Taken {
    fn sent(mut self) {
        self.0 = None;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(session) = &self.0 {
            session.leave();
        }
    }
}

async fn drain(session: &Session, inbox: &Inbox) -> Vec<PollingItem> {
    let mut items = Vec::new();
    let mut bytes = 0;
    while bytes < BODY_BYTES && items.len() + 2 <= BODY_PACKETS {
        let (text, attachment) = match session.outbox.next() {
            Next::Urgent(Urgent::Packet(text)) => (text.to_owned(), None),
            Next::Urgent(Urgent::Pong(text)) | Next::Item(Item::Text(text)) => (text, None),
            // A WebSocket whose upgrade did not happen.
            Next::Urgent(Urgent::SocketPong(_)) => continue,
            Next::Item(Item::Event(header, payload)) => ((*header).to_owned(), Some(payload)),
            Next::Item(Item::Rpc(event)) => rpc(&event),
            Next::Item(Item::Held(id)) => match inbox.fetch(id).await {
                Some(event) => rpc(&event),
                None => continue,
            },
            Next::Wait => break,
            Next::Closed(code) => {
                let last = match code {
                    close_code::SERVICE_RESTART => EnginePacket::Close,
                    // The host left; this only releases its poll.
                    _ => EnginePacket::Noop,
                };
                items.push(PollingItem::Text(last.encode()));
                break;
            }
        };
        bytes += text.len() + attachment.as_ref().map_or(0, Bytes::len);
        items.push(PollingItem::Text(text));
        items.extend(attachment.map(PollingItem::Binary));
    }
    items
}

fn rpc(event: &RuntimeEvent) -> (String, Option<Bytes>) {
    (rpc_header(event.name()), Some(event.payload().into()))
}
