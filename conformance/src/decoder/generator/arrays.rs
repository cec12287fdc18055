//! Arrays and dtypes, as numpy writes them below protocol 5, and not contiguous ones at any.

use super::op;
use super::writer::Writer;

/// The code of a dtype without parts, the size of an item in bytes, and what its state says of it.
#[derive(Clone, Copy)]
struct Basic {
    code: &'static str,
    size: usize,
    orders: &'static [&'static str],
    /// Item size, alignment and flags, where the state spells them out.
    sized: Option<(i64, i64, i64)>,
}

const NATIVE: &[&str] = &["<", "<", ">"];
const NO_ORDER: &[&str] = &["|"];

const BASIC: &[Basic] = &[
    basic("f8", 8, NATIVE),
    basic("i8", 8, NATIVE),
    basic("i4", 4, NATIVE),
    basic("u2", 2, NATIVE),
    basic("u1", 1, NO_ORDER),
    basic("i1", 1, NO_ORDER),
    basic("b1", 1, NO_ORDER),
    basic("f4", 4, NATIVE),
    basic("f2", 2, NATIVE),
    basic("u8", 8, NATIVE),
    basic("c16", 16, NATIVE),
    basic("c8", 8, NATIVE),
    sized("S3", 3, NO_ORDER, (3, 1, 0)),
    sized("U2", 8, NATIVE, (8, 4, 8)),
    sized("V4", 4, NO_ORDER, (4, 1, 0)),
];

const fn basic(code: &'static str, size: usize, orders: &'static [&'static str]) -> Basic {
    Basic {
        code,
        size,
        orders,
        sized: None,
    }
}

const fn sized(
    code: &'static str,
    size: usize,
    orders: &'static [&'static str],
    state: (i64, i64, i64),
) -> Basic {
    Basic {
        code,
        size,
        orders,
        sized: Some(state),
    }
}

/// What an array is made of, as far as its data goes.
enum Items {
    Bytes { size: usize, bools: bool },
    Text,
    Objects,
}

impl Writer<'_> {
    /// Writes an array or a dtype; neither can be hashed here, since some dtypes cannot.
    pub(super) fn numpy(&mut self, depth: usize) -> bool {
        if self.choices.one_in(3) {
            self.dtype(depth);
        } else {
            self.array(depth);
        }
        false
    }

    /// Writes a dtype, and says what its items are.
    fn dtype(&mut self, depth: usize) -> Items {
        match self.choices.below(8) {
            0 => {
                self.simple_dtype("O8", |writer| writer.dtype_state(3, "|", (-1, -1, 63)));
                Items::Objects
            }
            1 if self.has(3) => {
                self.time_dtype();
                Items::Bytes {
                    size: 8,
                    bools: false,
                }
            }
            2 if depth < 3 => self.fields(),
            3 if depth < 3 => self.subarray(),
            _ => {
                let basic = self.choices.pick(BASIC);
                self.basic_dtype(basic)
            }
        }
    }

    fn basic_dtype(&mut self, basic: Basic) -> Items {
        let order = self.choices.pick(basic.orders);
        let sizes = basic.sized.unwrap_or((-1, -1, 0));
        self.simple_dtype(basic.code, |writer| writer.dtype_state(3, order, sizes));
        match basic.code {
            "U2" => Items::Text,
            code => Items::Bytes {
                size: basic.size,
                bools: code == "b1",
            },
        }
    }

    /// The call that makes a dtype by its code, and BUILD with the state that `state` writes.
    fn simple_dtype(&mut self, code: &str, state: impl FnOnce(&mut Self)) {
        self.call("numpy", "dtype", false, 3, |writer| {
            writer.text(code);
            writer.bool(false);
            writer.bool(true);
        });
        state(self);
        self.op(op::BUILD);
    }

    /// The state of a dtype without fields.
    fn dtype_state(&mut self, version: i64, order: &str, sizes: (i64, i64, i64)) {
        let marked = self.open_tuple(8);
        self.int(version);
        self.text(order);
        for _ in 0..3 {
            self.op(op::NONE);
        }
        for size in [sizes.0, sizes.1, sizes.2] {
            self.int(size);
        }
        self.close_tuple(8, marked, false);
    }

    /// Dates or durations, whose unit is part of the state.
    fn time_dtype(&mut self) {
        let code = self.choices.pick(&["M8", "m8"]);
        let order = self.choices.pick(NATIVE);
        let unit = self.choices.pick(&["ns", "us", "s", "D", "generic"]);
        let count = if unit == "generic" {
            1
        } else {
            self.choices.pick(&[1, 1, 25])
        };
        self.simple_dtype(code, |writer| {
            let marked = writer.open_tuple(9);
            writer.int(4);
            writer.text(order);
            for _ in 0..3 {
                writer.op(op::NONE);
            }
            for size in [-1, -1, 0] {
                writer.int(size);
            }
            let pair = writer.open_tuple(2);
            writer.op(op::NONE);
            let unit_tuple = writer.open_tuple(4);
            writer.bytes(unit.as_bytes());
            for number in [count, 1, 1] {
                writer.int(number);
            }
            writer.close_tuple(4, unit_tuple, false);
            writer.close_tuple(2, pair, false);
            writer.close_tuple(9, marked, false);
        });
    }

    /// A dtype with one to three fields, one after the other, some with a gap or a title.
    fn fields(&mut self) -> Items {
        let names = &["a", "b", "c"][..1 + self.choices.below(3)];
        let parts: Vec<(Basic, usize, bool)> = names
            .iter()
            .map(|_| {
                let basic = self.choices.pick(&BASIC[..12]);
                let gap = if self.choices.one_in(4) { 3 } else { 0 };
                (basic, gap, self.choices.one_in(6))
            })
            .collect();
        let size: usize = parts.iter().map(|(basic, gap, _)| basic.size + gap).sum();
        self.simple_dtype(&format!("V{size}"), |writer| {
            let marked = writer.open_tuple(8);
            writer.int(3);
            writer.text("|");
            writer.op(op::NONE);
            let tuple = writer.open_tuple(names.len());
            for name in names {
                writer.text(name);
            }
            writer.close_tuple(names.len(), tuple, true);
            writer.empty_dict();
            let mut offset = 0;
            writer.entries(names.len(), |writer, at| {
                let (basic, gap, titled) = parts[at];
                offset += gap;
                writer.text(names[at]);
                let len = if titled { 3 } else { 2 };
                let field = writer.open_tuple(len);
                writer.basic_dtype(basic);
                writer.int(offset as i64);
                if titled {
                    writer.text("title");
                }
                writer.close_tuple(len, field, false);
                offset += basic.size;
            });
            writer.int(size as i64);
            writer.int(1);
            writer.int(16);
            writer.close_tuple(8, marked, false);
        });
        Items::Bytes { size, bools: true }
    }

    /// A dtype of which each item is an array of its own.
    fn subarray(&mut self) -> Items {
        let basic = self.choices.pick(&BASIC[..12]);
        let (rows, columns) = (1 + self.choices.below(2), 1 + self.choices.below(3));
        let size = basic.size * rows * columns;
        self.simple_dtype(&format!("V{size}"), |writer| {
            let marked = writer.open_tuple(8);
            writer.int(3);
            writer.text("|");
            let pair = writer.open_tuple(2);
            writer.basic_dtype(basic);
            let shape = writer.open_tuple(2);
            writer.int(rows as i64);
            writer.int(columns as i64);
            writer.close_tuple(2, shape, true);
            writer.close_tuple(2, pair, false);
            writer.op(op::NONE);
            writer.op(op::NONE);
            writer.int(size as i64);
            writer.int(basic.size.min(8) as i64);
            writer.int(0);
            writer.close_tuple(8, marked, false);
        });
        Items::Bytes { size, bools: true }
    }

    fn array(&mut self, depth: usize) {
        // Below protocol 3 the data needs a helper that is not admitted.
        if !self.has(3) {
            self.dtype(depth);
            return;
        }
        let module = self.multiarray;
        self.call(module, "_reconstruct", false, 3, |writer| {
            writer.global("numpy", "ndarray");
            let marked = writer.open_tuple(1);
            writer.int(0);
            writer.close_tuple(1, marked, true);
            writer.bytes(b"b");
        });
        let dimensions = self.choices.below(4);
        let shape: Vec<usize> = (0..dimensions)
            .map(|_| self.choices.pick(&[1, 2, 3, 0]))
            .collect();
        let marked = self.open_tuple(5);
        self.int(1);
        let tuple = self.open_tuple(dimensions);
        for extent in &shape {
            self.int(*extent as i64);
        }
        self.close_tuple(dimensions, tuple, true);
        let items = self.dtype(depth);
        let fortran = self.choices.one_in(3);
        self.bool(fortran);
        let count: usize = shape.iter().product();
        match items {
            Items::Bytes { size, bools } => {
                // Bools are 0 or 1.
                let most = if bools { 2 } else { 256 };
                let data: Vec<u8> = (0..count * size)
                    .map(|_| self.choices.below(most) as u8)
                    .collect();
                self.bytes(&data);
            }
            Items::Text => {
                // Code points below 256, as they are in little-endian order; others may be none.
                let data: Vec<u8> = (0..count * 2)
                    .flat_map(|_| [0x41 + self.choices.below(26) as u8, 0, 0, 0])
                    .collect();
                self.bytes(&data);
            }
            Items::Objects => {
                self.empty_list();
                self.op(op::MARK);
                for _ in 0..count {
                    self.value(depth + 1);
                }
                self.op(op::APPENDS);
            }
        }
        self.close_tuple(5, marked, false);
        self.op(op::BUILD);
    }
}
