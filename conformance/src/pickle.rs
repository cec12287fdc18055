//! Pickles of plain values, as the suite writes arguments and reads results.
//!
//! A reader of its own, so that a result is not judged by the decoder of the protocol crate. It knows the opcodes that
//! picklers write for plain values at protocols 2 to 5 and refuses everything else.

use std::collections::HashMap;
use std::rc::Rc;

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
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        };
        machine.run()
    }
}

/// What stands on the stack: containers are shared through the memo, so they are filled in place.
#[derive(Clone)]
enum Slot {
    Plain(Rc<Value>),
    List(Rc<std::cell::RefCell<Vec<Slot>>>),
    Dict(Rc<std::cell::RefCell<Vec<(Slot, Slot)>>>),
    Tuple(Rc<Vec<Slot>>),
}

impl Slot {
    fn value(&self, depth: usize) -> Result<Value, String> {
        if depth > 2_000 {
            return Err("a result nested more than 2,000 deep".to_owned());
        }
        let each = |items: &[Slot]| -> Result<Vec<Value>, String> {
            items.iter().map(|item| item.value(depth + 1)).collect()
        };
        Ok(match self {
            Self::Plain(value) => value.as_ref().clone(),
            Self::List(items) => Value::List(each(&items.borrow())?),
            Self::Tuple(items) => Value::Tuple(each(items)?),
            Self::Dict(entries) => {
                let entries = entries.borrow();
                let pairs = entries.iter().map(|(key, value)| {
                    Ok::<_, String>((key.value(depth + 1)?, value.value(depth + 1)?))
                });
                Value::Dict(pairs.collect::<Result<_, _>>()?)
            }
        })
    }
}

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    stack: Vec<Slot>,
    marks: Vec<usize>,
    memo: HashMap<usize, Slot>,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Value, String> {
        loop {
            let offset = self.at;
            let opcode = self.take(1)?[0];
            if opcode == b'.' {
                let result = self.pop()?.value(0)?;
                return if self.at == self.bytes.len() {
                    Ok(result)
                } else {
                    Err(format!(
                        "{} bytes after the end of the pickle",
                        self.bytes.len() - self.at
                    ))
                };
            }
            self.step(opcode)
                .map_err(|reason| format!("opcode 0x{opcode:02x} at byte {offset}: {reason}"))?;
        }
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
        self.stack.push(Slot::Plain(Rc::new(slot)));
        Ok(())
    }

    fn structure(&mut self, opcode: u8) -> Result<(), String> {
        let slot = match opcode {
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            b']' => Slot::List(Rc::default()),
            b'}' => Slot::Dict(Rc::default()),
            b')' => Slot::Tuple(Rc::default()),
            b't' => Slot::Tuple(Rc::new(self.pop_to_mark()?)),
            0x85..=0x87 => {
                let count = usize::from(opcode - 0x84);
                let from = self
                    .stack
                    .len()
                    .checked_sub(count)
                    .ok_or("an empty stack")?;
                Slot::Tuple(Rc::new(self.stack.split_off(from)))
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
                self.memo
                    .get(&index)
                    .cloned()
                    .ok_or("an unset memo entry")?
            }
            _ => return Err("not an opcode of a plain value".to_owned()),
        };
        self.stack.push(slot);
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

    fn pop(&mut self) -> Result<Slot, String> {
        self.stack.pop().ok_or_else(|| "an empty stack".to_owned())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Slot>, String> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or("no mark")?))
    }

    fn append(&mut self, items: Vec<Slot>) -> Result<(), String> {
        match self.stack.last() {
            Some(Slot::List(list)) => list.borrow_mut().extend(items),
            _ => return Err("no list to append to".to_owned()),
        }
        Ok(())
    }

    fn insert(&mut self, items: Vec<Slot>) -> Result<(), String> {
        let Some(Slot::Dict(dict)) = self.stack.last() else {
            return Err("no dict to insert into".to_owned());
        };
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            dict.borrow_mut().push((key, value));
        }
        Ok(())
    }

    fn store(&mut self, index: usize) -> Result<(), String> {
        let top = self.stack.last().cloned().ok_or("an empty stack")?;
        self.memo.insert(index, top);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
}
