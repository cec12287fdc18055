//! Pickles of plain values, as the suite writes arguments and reads results.
//!
//! A reader of its own, so that a result is not judged by the decoder of the protocol crate. It knows the opcodes that
//! picklers write for plain values at protocols 2 to 5 and refuses everything else.

use std::collections::HashMap;

/// A plain Python value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    /// In order of insertion.
    Dict(Vec<(Value, Value)>),
}

/// A str.
pub(crate) fn text(value: &str) -> Value {
    Value::Str(value.to_owned())
}

/// `(args, {})`, pickled at protocol 4.
pub(crate) fn args<const N: usize>(positional: [Value; N]) -> Vec<u8> {
    call_arguments(positional.into(), Vec::new())
}

/// `(args, kwargs)`, pickled at protocol 4.
pub(crate) fn call_arguments(positional: Vec<Value>, keywords: Vec<(&str, Value)>) -> Vec<u8> {
    let keywords = keywords
        .into_iter()
        .map(|(name, value)| (text(name), value));
    Value::Tuple(vec![
        Value::Tuple(positional),
        Value::Dict(keywords.collect()),
    ])
    .dump()
}

impl Value {
    /// This value at protocol 4, without frames and memo: every unpickler reads that.
    pub(crate) fn dump(&self) -> Vec<u8> {
        let mut out = vec![0x80, 4];
        self.write(&mut out);
        out.push(b'.');
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => out.push(b'N'),
            Self::Bool(value) => out.push(if *value { 0x88 } else { 0x89 }),
            Self::Int(value) => match (u8::try_from(*value), i32::try_from(*value)) {
                (Ok(small), _) => out.extend([b'K', small]),
                (_, Ok(middle)) => {
                    out.push(b'J');
                    out.extend(middle.to_le_bytes());
                }
                _ => {
                    out.extend([0x8a, 8]);
                    out.extend(value.to_le_bytes());
                }
            },
            Self::Float(value) => {
                out.push(b'G');
                out.extend(value.to_be_bytes());
            }
            Self::Str(value) => {
                out.push(b'X');
                out.extend((value.len() as u32).to_le_bytes());
                out.extend_from_slice(value.as_bytes());
            }
            Self::Bytes(value) => {
                out.push(b'B');
                out.extend((value.len() as u32).to_le_bytes());
                out.extend_from_slice(value);
            }
            Self::List(items) => {
                out.extend(b"](");
                items.iter().for_each(|item| item.write(out));
                out.push(b'e');
            }
            Self::Tuple(items) => {
                out.push(b'(');
                items.iter().for_each(|item| item.write(out));
                out.push(b't');
            }
            Self::Dict(entries) => {
                out.extend(b"}(");
                for (key, value) in entries {
                    key.write(out);
                    value.write(out);
                }
                out.push(b'u');
            }
        }
    }

    /// Reads a pickle of a plain value.
    ///
    /// # Errors
    ///
    /// A sentence with the offset of what could not be read.
    pub(crate) fn load(bytes: &[u8]) -> Result<Self, String> {
        let mut machine = Machine {
            bytes,
            at: 0,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        machine.run()
    }
}

/// A value under construction. Containers name their elements by number, since the memo shares them: so neither depth nor
/// cycles reach the machine stack.
enum Node {
    Plain(Value),
    List(Vec<usize>),
    Tuple(Vec<usize>),
    Dict(Vec<(usize, usize)>),
}

/// Twice the depth of what the conformance functions give.
const MAX_DEPTH: usize = 200;
/// Values of a result, each mention of a shared one counted.
const MAX_VALUES: usize = 1_000_000;

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<usize>,
    marks: Vec<usize>,
    memo: HashMap<usize, usize>,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Value, String> {
        loop {
            let offset = self.at;
            let opcode = self.take(1)?[0];
            if opcode == b'.' {
                let root = self.pop()?;
                let result = self.value(root, 0, &mut 0)?;
                return if self.at == self.bytes.len() {
                    Ok(result)
                } else {
                    let extra = self.bytes.len() - self.at;
                    Err(format!("{extra} bytes after the end of the pickle"))
                };
            }
            self.step(opcode)
                .map_err(|reason| format!("opcode 0x{opcode:02x} at byte {offset}: {reason}"))?;
        }
    }

    fn value(&self, node: usize, depth: usize, values: &mut usize) -> Result<Value, String> {
        *values += 1;
        if depth > MAX_DEPTH || *values > MAX_VALUES {
            return Err(format!(
                "deeper than {MAX_DEPTH}, or more than {MAX_VALUES} values"
            ));
        }
        let mut each = |items: &[usize]| -> Result<Vec<Value>, String> {
            items
                .iter()
                .map(|item| self.value(*item, depth + 1, values))
                .collect()
        };
        Ok(match &self.nodes[node] {
            Node::Plain(value) => value.clone(),
            Node::List(items) => Value::List(each(items)?),
            Node::Tuple(items) => Value::Tuple(each(items)?),
            Node::Dict(entries) => {
                let mut pairs = Vec::new();
                for (key, value) in entries {
                    pairs.push((
                        self.value(*key, depth + 1, values)?,
                        self.value(*value, depth + 1, values)?,
                    ));
                }
                Value::Dict(pairs)
            }
        })
    }

    fn push(&mut self, node: Node) {
        self.stack.push(self.nodes.len());
        self.nodes.push(node);
    }

    fn step(&mut self, opcode: u8) -> Result<(), String> {
        let slot = match opcode {
            0x80 => {
                let protocol = self.take(1)?[0];
                return if protocol <= 5 {
                    Ok(())
                } else {
                    Err(format!("protocol {protocol}"))
                };
            }
            0x95 => return self.take(8).map(|_| ()),
            b'N' => Value::None,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'K' => Value::Int(self.number(1)? as i64),
            b'M' => Value::Int(self.number(2)? as i64),
            b'J' => Value::Int(i64::from(self.number(4)? as u32 as i32)),
            0x8a => {
                let len = self.number(1)? as usize;
                self.long(len)?
            }
            b'G' => {
                let mut bits = [0; 8];
                bits.copy_from_slice(self.take(8)?);
                Value::Float(f64::from_be_bytes(bits))
            }
            0x8c => self.str(1)?,
            b'X' => self.str(4)?,
            0x8d => self.str(8)?,
            b'C' => self.bin(1)?,
            b'B' => self.bin(4)?,
            0x8e => self.bin(8)?,
            _ => return self.structure(opcode),
        };
        self.push(Node::Plain(slot));
        Ok(())
    }

    fn structure(&mut self, opcode: u8) -> Result<(), String> {
        let slot = match opcode {
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            b']' => Node::List(Vec::new()),
            b'}' => Node::Dict(Vec::new()),
            b')' => Node::Tuple(Vec::new()),
            b't' => Node::Tuple(self.pop_to_mark()?),
            0x85..=0x87 => {
                let count = usize::from(opcode - 0x84);
                let from = self
                    .stack
                    .len()
                    .checked_sub(count)
                    .ok_or("an empty stack")?;
                Node::Tuple(self.stack.split_off(from))
            }
            b'a' => {
                let item = self.pop()?;
                return self.append(vec![item]);
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                return self.append(items);
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                return self.insert(vec![key, value]);
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                return self.insert(items);
            }
            0x94 => return self.store(self.memo.len()),
            b'q' => {
                let index = self.number(1)? as usize;
                return self.store(index);
            }
            b'r' => {
                let index = self.number(4)? as usize;
                return self.store(index);
            }
            b'h' | b'j' => {
                let index = self.number(if opcode == b'h' { 1 } else { 4 })? as usize;
                let node = *self.memo.get(&index).ok_or("an unset memo entry")?;
                self.stack.push(node);
                return Ok(());
            }
            _ => return Err("not an opcode of a plain value".to_owned()),
        };
        self.push(slot);
        Ok(())
    }

    fn take(&mut self, len: usize) -> Result<&[u8], String> {
        let end = self
            .at
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| "the pickle ends early".to_owned())?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, width: usize) -> Result<u64, String> {
        let bytes = self.take(width)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn long(&mut self, len: usize) -> Result<Value, String> {
        let bytes = self.take(len)?;
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        if len > 8 {
            return Err("an int of more than 64 bits".to_owned());
        }
        wide[..len].copy_from_slice(bytes);
        Ok(Value::Int(i64::from_le_bytes(wide)))
    }

    fn str(&mut self, width: usize) -> Result<Value, String> {
        let len = self.number(width)? as usize;
        let bytes = self.take(len)?.to_vec();
        String::from_utf8(bytes)
            .map(Value::Str)
            .map_err(|error| error.to_string())
    }

    fn bin(&mut self, width: usize) -> Result<Value, String> {
        let len = self.number(width)? as usize;
        Ok(Value::Bytes(self.take(len)?.to_vec()))
    }

    fn pop(&mut self) -> Result<usize, String> {
        self.stack.pop().ok_or_else(|| "an empty stack".to_owned())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<usize>, String> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or("no mark")?))
    }

    fn append(&mut self, items: Vec<usize>) -> Result<(), String> {
        match self.stack.last().map(|top| &mut self.nodes[*top]) {
            Some(Node::List(list)) => list.extend(items),
            _ => return Err("no list to append to".to_owned()),
        }
        Ok(())
    }

    fn insert(&mut self, items: Vec<usize>) -> Result<(), String> {
        match self.stack.last().map(|top| &mut self.nodes[*top]) {
            Some(Node::Dict(dict)) => {
                dict.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])))
            }
            _ => return Err("no dict to insert into".to_owned()),
        }
        Ok(())
    }

    fn store(&mut self, index: usize) -> Result<(), String> {
        let top = *self.stack.last().ok_or("an empty stack")?;
        self.memo.insert(index, top);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn load(hex: &str) -> Value {
        let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
        Value::load(&bytes).unwrap()
    }

    /// Streams that CPython wrote.
    #[test]
    fn reads_what_picklers_write() {
        assert_eq!(load("80044e2e"), Value::None);
        assert_eq!(load("80044b032e"), Value::Int(3));
        assert_eq!(load("80054af4ffffff2e"), Value::Int(-12));
        assert_eq!(load("80024d2c012e"), Value::Int(300));
        // pickle.dumps(((1, 2), {}), 4)
        assert_eq!(
            load("8004950b000000000000004b014b0286947d9486942e"),
            Value::Tuple(vec![
                Value::Tuple(vec![Value::Int(1), Value::Int(2)]),
                Value::Dict(vec![])
            ])
        );
        // x = ["a"]; pickle.dumps([x, x, {"k": 1.5}], 4)
        let shared = Value::List(vec![text("a")]);
        assert_eq!(
            load(
                "8004951e000000000000005d94285d948c0161946168017d948c016b94473ff800000000000073652e"
            ),
            Value::List(vec![
                shared.clone(),
                shared,
                Value::Dict(vec![(text("k"), Value::Float(1.5))])
            ])
        );
    }

    #[test]
    fn round_trips() {
        let value = Value::Dict(vec![
            (
                text("a"),
                Value::List(vec![Value::Int(-1), Value::Int(1 << 40), Value::Int(255)]),
            ),
            (text("b"), Value::Tuple(vec![])),
            (text("c"), Value::Bytes(vec![0, 255])),
            (text("d"), Value::List(vec![])),
            (text("e"), Value::Bool(false)),
        ]);
        assert_eq!(Value::load(&value.dump()), Ok(value));
    }

    #[test]
    fn refuses_what_is_not_plain() {
        // builtins.print by name, a truncated stream, trailing bytes.
        assert!(Value::load(b"\x80\x04cbuiltins\nprint\n.").is_err());
        assert!(Value::load(b"\x80\x04K").is_err());
        assert!(Value::load(b"\x80\x04N.N").is_err());
    }

    /// A list that holds itself, and one doubled sixty times: an error, not the end of the process.
    #[test]
    fn bounds_what_is_shared() {
        assert!(Value::load(b"\x80\x04]\x94h\x00a.").is_err());
        assert!(Value::load(b"\x80\x04]\x94(h\x00h\x00t.").is_ok());
        let mut bomb = b"\x80\x04)".to_vec();
        for index in 0..60_u8 {
            bomb.extend([b'q', index, b'h', index, 0x86]);
        }
        bomb.push(b'.');
        assert!(Value::load(&bomb).is_err());
        let deep = [
            &b"\x80\x04"[..],
            &vec![b']'; 100_000],
            &vec![b'a'; 99_999],
            b".",
        ]
        .concat();
        assert!(Value::load(&deep).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Value::load(&bytes);
        }

        #[test]
        fn every_int_round_trips(number in any::<i64>()) {
            prop_assert_eq!(Value::load(&Value::Int(number).dump()), Ok(Value::Int(number)));
        }
    }
}
