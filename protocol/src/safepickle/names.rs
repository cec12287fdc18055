//! The part of the machine that takes names: of globals, of extensions, of what lies outside.

use std::hash::BuildHasher;

use super::arena::{Bytes, BytesFlags, GlobalData, Node, NodeId};
use super::error::{DecodeErrorKind, Malformed};
use super::known::Known;
use super::machine::{Machine, Step};
use super::policy::Admitted;
use super::text;
use super::types::record::Origin;
use super::value::{Kind, Text};

impl<'a> Machine<'_, 'a> {
    /// The next line of the stream, and where it lies.
    fn name_line(&mut self) -> Step<(Bytes, &'a [u8])> {
        let start = self.reader.at();
        let line = self.reader.line()?;
        // The input is below 4 GiB, so both fit.
        let bytes = Bytes {
            start: start as u32,
            len: line.len() as u32,
            flags: BytesFlags {
                owned: false,
                surrogates: text::generalised_utf8(line) == Some(true),
            },
        };
        Ok((bytes, line))
    }

    /// GLOBAL, and the first part of INST.
    pub(super) fn line_global(&mut self) -> Step<NodeId> {
        let (module_bytes, module) = self.name_line()?;
        let (qualname_bytes, qualname) = self.name_line()?;
        let known = self.admit(module, qualname)?;
        let is_text = |bytes| text::generalised_utf8(bytes).is_some();
        if !(is_text(module) && is_text(qualname)) {
            return Err(Malformed::Utf8.into());
        }
        self.global(module_bytes, qualname_bytes, known)
    }

    pub(super) fn stack_global(&mut self) -> Step<NodeId> {
        let operands: [NodeId; 2] = self.operands()?;
        let text = |id| match self.arena.node(id) {
            Node::Str(bytes) => Ok(bytes),
            _ => Err(Malformed::Operand {
                expected: Kind::Str.name(),
                found: self.arena.kind(id),
            }),
        };
        let (module, qualname) = (text(operands[0])?, text(operands[1])?);
        // The same long text may be named again and again.
        self.charge((u64::from(module.len) + u64::from(qualname.len)) / 4)?;
        let known = {
            let names = [module, qualname].map(|name| self.arena.bytes(name));
            let admitted = self.policy.look_up(names[0], names[1]);
            if self.observed || admitted.is_none() {
                self.named = Some((name(names[0]), name(names[1]), admitted.is_some()));
            }
            self.verdict(admitted)?
        };
        self.global(module, qualname, known)
    }

    /// What a name stands for, if the policy admits it.
    fn admit(&mut self, module: &[u8], qualname: &[u8]) -> Step<Option<Known>> {
        let admitted = self.policy.look_up(module, qualname);
        if self.observed || admitted.is_none() {
            self.named = Some((name(module), name(qualname), admitted.is_some()));
        }
        self.verdict(admitted)
    }

    fn verdict(&self, admitted: Option<Admitted>) -> Step<Option<Known>> {
        match (admitted, &self.named) {
            (Some(Admitted::Known(known)), _) => Ok(Some(known)),
            (Some(Admitted::Name), _) => Ok(None),
            (None, named) => {
                let (module, qualname, _) = named.clone().unwrap_or_default();
                Err(DecodeErrorKind::RefusedGlobal { module, qualname })
            }
        }
    }

    /// The object of a name: one for each name.
    fn global(&mut self, module: Bytes, qualname: Bytes, known: Option<Known>) -> Step<NodeId> {
        let names = [module, qualname].map(|name| self.arena.bytes(name));
        let hash = self.hasher.hash_one(names);
        let found = self.globals.get(&hash).into_iter().flatten().find(|id| {
            self.arena.global(**id).is_some_and(|global| {
                [global.module, global.qualname].map(|name| self.arena.bytes(name)) == names
            })
        });
        if let Some(id) = found {
            return Ok(*id);
        }
        self.room()?;
        let id = self
            .arena
            .push_global(GlobalData {
                module,
                qualname,
                known,
            })
            .map_err(|full| self.full(full))?;
        self.globals.entry(hash).or_default().push(id);
        Ok(id)
    }

    /// The object of a name that does not stand in the stream.
    pub(super) fn named_global(
        &mut self,
        module: &[u8],
        qualname: &[u8],
        known: Option<Known>,
    ) -> Step<NodeId> {
        let (globals, owned) = (self.arena.globals.len(), self.arena.owned.len());
        let surrogates = |text| text::generalised_utf8(text) == Some(true);
        let module = self.own(module, surrogates(module))?;
        let qualname = self.own(qualname, surrogates(qualname))?;
        let id = self.global(module, qualname, known)?;
        if self.arena.globals.len() == globals {
            // There was one already.
            self.arena.owned.truncate(owned);
        }
        Ok(id)
    }

    pub(super) fn extension(&mut self, code: i64) -> Step<()> {
        if !self.policy.is_inspect() {
            return Err(DecodeErrorKind::RefusedExtension { code });
        }
        self.push_int(code)?;
        let [code] = self.operands()?;
        self.outside(Origin::Extension, &[code])
    }

    /// Pushes a record that stands for what the stream does not hold.
    pub(super) fn outside(&mut self, origin: Origin, args: &[NodeId]) -> Step<()> {
        let span = self.new_span(args)?;
        let tuple = self.make(Node::Tuple(span))?;
        let record = self.record(origin, None, tuple, None)?;
        self.stack.push(record);
        Ok(())
    }
}

/// A name as it stands in a stream, readable whatever its bytes are.
pub(super) fn name(bytes: &[u8]) -> String {
    let Some(surrogates) = text::generalised_utf8(bytes) else {
        return bytes.escape_ascii().to_string();
    };
    let mut name = String::with_capacity(bytes.len());
    for point in Text::new(bytes, surrogates).code_points() {
        match char::from_u32(point) {
            Some(char) => name.push(char),
            None => name.push_str(&format!("\\u{point:04x}")),
        }
    }
    name
}
