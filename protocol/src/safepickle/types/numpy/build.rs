//! How a dtype is made: by its name, and by the state that completes it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::super::arena::{Node, NodeId};
use super::super::super::construct::Args;
use super::super::super::error::{DecodeErrorKind, Malformed};
use super::super::super::machine::{Machine, Step};
use super::super::super::object::Object;
use super::super::super::value::Kind;
use super::dtype::{ByteOrder, DatetimeUnit, DtypeData, DtypeKind, DtypeLabel, Unit, built};
use super::rule::NumpyRule;
use super::{MAX_DEPTH, dimensions, element_count};

impl From<NumpyRule> for DecodeErrorKind {
    fn from(rule: NumpyRule) -> Self {
        Malformed::Numpy(rule).into()
    }
}

/// What the fields of a structure make of it.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    /// All of theirs.
    flags: u8,
    depth: u8,
}

impl Parts {
    fn add(&mut self, part: &DtypeData) {
        self.flags |= part.label.flags;
        // At most `MAX_DEPTH`.
        self.depth = self.depth.max(part.depth + 1);
    }
}

impl Machine<'_, '_> {
    /// `numpy.dtype(name, False, True)`, the only form that numpy writes; older ones write 0 and 1.
    pub(in crate::safepickle) fn dtype(&mut self, args: Args) -> Step<NodeId> {
        let [name, align, copy] = args.exactly(&self.arena)?;
        let flags = [self.arena.node(align), self.arena.node(copy)];
        let fits = matches!(
            flags,
            [
                Node::Bool(false) | Node::Int(0),
                Node::Bool(true) | Node::Int(1)
            ]
        );
        let label = match self.arena.node(name) {
            Node::Str(name) if fits => DtypeLabel::from_name(self.arena.bytes(name)),
            _ => return Err(Malformed::Arguments.into()),
        };
        let label = label.ok_or(NumpyRule::TypeString)?;
        let id = self.make_object(Object::Dtype(Box::new(DtypeData::new(label))))?;
        self.expect_build(id);
        Ok(id)
    }

    /// Gives a dtype its state. That it gets one only, and that its parts must have got theirs, leaves
    /// no way for a dtype to be part of itself.
    pub(in crate::safepickle) fn build_dtype(&mut self, id: NodeId, state: NodeId) -> Step<()> {
        let mut data = match self.arena.object(id) {
            Some(Object::Dtype(data)) if !data.built => DtypeData::new(data.label),
            _ => return Err(Malformed::NoState(Kind::Dtype).into()),
        };
        let Node::Tuple(span) = self.arena.node(state) else {
            return Err(NumpyRule::DtypeState.into());
        };
        let state = self.arena.span(span);
        let (
            &[
                version,
                order,
                subarray,
                names,
                fields,
                itemsize,
                alignment,
                flags,
            ],
            rest,
        ) = state
            .split_first_chunk::<8>()
            .ok_or(NumpyRule::DtypeState)?;
        let extra = match (self.arena.node(version), rest) {
            (Node::Int(3), []) => None,
            (Node::Int(4), [extra]) => Some(*extra),
            _ => return Err(NumpyRule::DtypeState.into()),
        };
        let is_none = |id| matches!(self.arena.node(id), Node::None);

        self.set_order(&mut data.label, order)?;
        let sizes = [itemsize, alignment].map(|id| self.arena.node(id));
        self.set_sizes(&mut data.label, sizes)?;
        self.set_extra(&mut data, extra)?;

        let mut parts = Parts::default();
        let is_structure = !is_none(names) || !is_none(fields);
        if !is_none(subarray) {
            let base = self.subarray(&data.label, subarray)?;
            parts.add(base);
            // Those of what it is made of.
            data.label.flags = base.label.flags;
            data.subarray = Some(subarray);
        }
        if is_structure {
            if data.label.kind != DtypeKind::Void || data.subarray.is_some() {
                return Err(NumpyRule::Fields.into());
            }
            let (pairs, of_fields) = self.fields(names, fields, data.label.itemsize)?;
            parts = of_fields;
            data.fields = Some(self.hidden_tuple(&pairs)?);
        }
        data.label.flags = match self.arena.node(flags) {
            Node::Int(flags) => data
                .label
                .check_flags(flags, is_structure.then_some(parts.flags))
                .ok_or(NumpyRule::Flags)?,
            _ => return Err(NumpyRule::Flags.into()),
        };
        if parts.depth > MAX_DEPTH {
            return Err(NumpyRule::Depth.into());
        }
        data.depth = parts.depth;
        data.built = true;
        if let Some(Object::Dtype(kept)) = self.arena.object_mut(id) {
            **kept = data;
        }
        self.built(id);
        Ok(())
    }

    fn set_order(&self, label: &mut DtypeLabel, order: NodeId) -> Step<()> {
        let order = match self.arena.node(order) {
            Node::Str(order) => match self.arena.bytes(order) {
                b"<" => ByteOrder::Little,
                b">" => ByteOrder::Big,
                b"|" => ByteOrder::NotApplicable,
                _ => return Err(NumpyRule::ByteOrder.into()),
            },
            _ => return Err(NumpyRule::ByteOrder.into()),
        };
        // The name alone says whether there is an order.
        let ordered = |order| order != ByteOrder::NotApplicable;
        if ordered(order) != ordered(label.order) {
            return Err(NumpyRule::ByteOrder.into());
        }
        label.order = order;
        Ok(())
    }

    fn set_sizes(&self, label: &mut DtypeLabel, sizes: [Node; 2]) -> Step<()> {
        let [Node::Int(itemsize), Node::Int(alignment)] = sizes else {
            return Err(NumpyRule::DtypeState.into());
        };
        if !label.kind.is_flexible() {
            return match (itemsize, alignment) {
                (-1, -1) => Ok(()),
                _ => Err(NumpyRule::Itemsize.into()),
            };
        }
        if itemsize != i64::from(label.itemsize) {
            return Err(NumpyRule::Itemsize.into());
        }
        match (label.kind, u8::try_from(alignment)) {
            // 16 is what a long double asks for.
            (DtypeKind::Void, Ok(alignment @ (1 | 2 | 4 | 8 | 16))) => label.alignment = alignment,
            (_, Ok(alignment)) if alignment == label.alignment => {}
            _ => return Err(NumpyRule::Alignment.into()),
        }
        Ok(())
    }

    /// Takes in what the longer form of a state has: the unit of dates and durations, and metadata.
    fn set_extra(&self, data: &mut DtypeData, extra: Option<NodeId>) -> Step<()> {
        let is_counted = data.label.kind.is_counted();
        let Some(extra) = extra else {
            return if is_counted {
                Err(NumpyRule::Unit.into())
            } else {
                Ok(())
            };
        };
        let metadata = if is_counted {
            let &[metadata, unit] = self.arena.children(extra) else {
                return Err(NumpyRule::Unit.into());
            };
            data.label.unit = Some(self.unit(unit).ok_or(NumpyRule::Unit)?);
            metadata
        } else {
            extra
        };
        data.metadata = match self.arena.node(metadata) {
            Node::None if is_counted => None,
            Node::Dict(_) => Some(metadata),
            _ => return Err(NumpyRule::DtypeState.into()),
        };
        Ok(())
    }

    /// Its name, a count, and what is 1 since numpy 1.7.
    fn unit(&self, unit: NodeId) -> Option<Unit> {
        let Node::Tuple(_) = self.arena.node(unit) else {
            return None;
        };
        let &[name, count, divisor, event] = self.arena.children(unit) else {
            return None;
        };
        let rest = [divisor, event].map(|id| self.arena.node(id));
        let name = match (self.arena.node(name), rest) {
            (Node::Bytes(name), [Node::Int(1), Node::Int(1)]) => self.arena.bytes(name),
            _ => return None,
        };
        let unit = DatetimeUnit::from_name(name)?;
        match self.arena.node(count) {
            Node::Int(count) if unit != DatetimeUnit::Generic || count == 1 => {
                let count = i32::try_from(count).ok().filter(|count| *count > 0)?;
                Some(Unit {
                    unit,
                    count: count.unsigned_abs(),
                })
            }
            _ => None,
        }
    }

    /// The dtype that a subarray is of.
    fn subarray(&self, label: &DtypeLabel, subarray: NodeId) -> Step<&DtypeData> {
        let parts = match self.arena.node(subarray) {
            Node::Tuple(span) if label.kind == DtypeKind::Void => self.arena.span(span),
            _ => return Err(NumpyRule::Subarray.into()),
        };
        let &[base, shape] = parts else {
            return Err(NumpyRule::Subarray.into());
        };
        let base = built(&self.arena, base).ok_or(NumpyRule::NoDtype)?;
        let dimensions = dimensions(&self.arena, shape).ok_or(NumpyRule::Subarray)?;
        let count = element_count(&self.arena, dimensions, base.label.itemsize);
        let size = count.and_then(|count| count.checked_mul(base.label.itemsize.into()));
        if dimensions.is_empty() || size != Some(label.itemsize.into()) {
            return Err(NumpyRule::Subarray.into());
        }
        Ok(base)
    }

    /// The fields of a structure: name and details of each in turn, and what they make of it.
    fn fields(
        &mut self,
        names: NodeId,
        fields: NodeId,
        itemsize: u32,
    ) -> Step<(Vec<NodeId>, Parts)> {
        let [Node::Tuple(names), Node::Dict(fields)] =
            [names, fields].map(|id| self.arena.node(id))
        else {
            return Err(NumpyRule::Fields.into());
        };
        // Names are looked up and copied again for each dtype that has them.
        self.charge(2 * u64::from(names.len) + 2 * u64::from(fields.len))?;
        let text = self.arena.span(fields).iter().step_by(2);
        let text: u64 = text
            .map(|name| match self.arena.node(*name) {
                Node::Str(name) => u64::from(name.len),
                _ => 0,
            })
            .sum();
        self.charge(text / 8)?;
        let mut by_name: BTreeMap<&[u8], NodeId> = BTreeMap::new();
        for entry in self.arena.span(fields).chunks_exact(2) {
            let Node::Str(name) = self.arena.node(entry[0]) else {
                return Err(NumpyRule::Fields.into());
            };
            by_name.insert(self.arena.bytes(name), entry[1]);
        }

        let mut pairs = Vec::with_capacity(2 * names.len as usize);
        let mut parts = Parts::default();
        let mut extents = Vec::new();
        let mut titled = BTreeSet::new();
        for name in self.arena.span(names) {
            let Node::Str(text) = self.arena.node(*name) else {
                return Err(NumpyRule::Fields.into());
            };
            // A name that is there twice is not found the second time.
            let details = by_name.remove(self.arena.bytes(text));
            let details = details.ok_or(NumpyRule::Fields)?;
            let (dtype, offset, title) = match self.arena.node(details) {
                Node::Tuple(span) => match *self.arena.span(span) {
                    [dtype, offset] => (dtype, offset, None),
                    [dtype, offset, title] => (dtype, offset, Some(title)),
                    _ => return Err(NumpyRule::Fields.into()),
                },
                _ => return Err(NumpyRule::Fields.into()),
            };
            let dtype = built(&self.arena, dtype).ok_or(NumpyRule::NoDtype)?;
            let offset = match self.arena.node(offset) {
                Node::Int(offset) => u32::try_from(offset).map_err(|_| NumpyRule::FieldOffset)?,
                _ => return Err(NumpyRule::Fields.into()),
            };
            let end = u64::from(offset) + u64::from(dtype.label.itemsize);
            if end > itemsize.into() {
                return Err(NumpyRule::FieldOffset.into());
            }
            match title.map(|title| self.arena.kind(title)) {
                Some(Kind::Str) if titled.insert(details) => {}
                Some(Kind::Str | Kind::None) => return Err(NumpyRule::Fields.into()),
                _ => {}
            }
            parts.add(dtype);
            extents.push((u64::from(offset), end));
            pairs.extend([*name, details]);
        }

        // What is left are the titles that are strs, under which a field can be found as well.
        for (title, details) in by_name {
            let text = self
                .arena
                .children(details)
                .get(2)
                .map(|id| self.arena.node(*id));
            let fits = matches!(text, Some(Node::Str(text)) if self.arena.bytes(text) == title);
            if !fits || !titled.remove(&details) {
                return Err(NumpyRule::Fields.into());
            }
        }
        if !titled.is_empty() {
            return Err(NumpyRule::Fields.into());
        }
        if DtypeLabel::has_object_flags(parts.flags) {
            extents.sort_unstable();
            if extents.windows(2).any(|pair| pair[0].1 > pair[1].0) {
                return Err(NumpyRule::FieldOverlap.into());
            }
        }
        Ok((pairs, parts))
    }
}
