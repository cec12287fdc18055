//! `_codecs.encode`, by which protocols 0 to 2 write bytes.

use super::super::arena::{Node, NodeId};
use super::super::construct::Args;
use super::super::error::Malformed;
use super::super::machine::{Machine, Step};
use super::super::text;

impl Machine<'_, '_> {
    /// `_codecs.encode(text, "latin1")`: a byte for each code point.
    pub(in super::super) fn encode_latin1(&mut self, args: Args) -> Step<NodeId> {
        let [content, encoding] = args.exactly(&self.arena)?;
        let content = match [content, encoding].map(|id| self.arena.node(id)) {
            [Node::Str(content), Node::Str(encoding)]
                if self.arena.bytes(encoding) == b"latin1" =>
            {
                content
            }
            _ => return Err(Malformed::Arguments.into()),
        };
        // The same long text may be encoded again and again, and is owned each time; or it may fail each time
        // at its end, which ends nothing under inspection.
        self.charge(u64::from(content.len) / 4)?;
        let mut rest = self.arena.bytes(content);
        let mut encoded = Vec::with_capacity(rest.len());
        while let Some((point, after)) = text::next_code_point(rest) {
            encoded.push(u8::try_from(point).map_err(|_| Malformed::Arguments)?);
            rest = after;
        }
        let bytes = self.own(&encoded, false)?;
        self.make(Node::Bytes(bytes))
    }
}
