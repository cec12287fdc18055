//! Random pickles: valid ones of every kind, odd ones, and damaged ones.
//!
//! What comes out depends on nothing but the [`Choices`], so the same ones give the same pickle. The
//! tests drive them with a seeded generator of random numbers, the fuzz target with its input. This
//! file and the folder beside it use `std` only and can be taken in by path.
//!
//! | way | what it gives |
//! | --- | --- |
//! | [`Way::Pickler`] | a value of every type that the policy of the protocol admits, as a pickler of some protocol from 0 to 5 writes it |
//! | [`Way::Optimized`] | the same without most of the memo entries |
//! | [`Way::Loose`] | such values spelt with any opcode that comes to the same |
//! | [`Way::Program`] | any opcode wherever the stack admits it, and sometimes where it does not |
//! | [`Way::Accident`] | admitted classes called as no pickler calls them |
//! | [`Way::Corner`] | one of the [`corners`]: where decoders differ |
//! | [`Way::Mutated`] | one of these, or a pickle that is given, damaged |

#[path = "generator/arrays.rs"]
mod arrays;
#[path = "generator/corners.rs"]
pub mod corners;
#[path = "generator/exceptions.rs"]
mod exceptions;
#[path = "generator/mutations.rs"]
mod mutations;
#[path = "generator/named.rs"]
mod named;
#[path = "generator/named_corners.rs"]
mod named_corners;
#[path = "generator/op.rs"]
pub mod op;
#[path = "generator/plain.rs"]
mod plain;
#[path = "generator/programs.rs"]
mod programs;
#[path = "generator/writer.rs"]
mod writer;

pub use mutations::mutate;

use writer::{Style, Writer};

/// Where random choices come from.
pub trait Choices {
    /// A number below `n`, which is at least 1. A source that has run out gives 0: everywhere here,
    /// that is the choice that ends soonest.
    fn below(&mut self, n: usize) -> usize;
}

/// Which names occur in the pickles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Classes and functions at all.
    pub globals: bool,
    /// Arrays and dtypes among them.
    pub numpy: bool,
}

/// How a pickle was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Pickler,
    Optimized,
    Loose,
    Program,
    Accident,
    Corner,
    Mutated,
}

/// A pickle at random, made in any of the ways. `corpus` are pickles to damage beside the own ones.
pub fn pickle(choices: &mut dyn Choices, scope: Scope, corpus: &[Vec<u8>]) -> (Way, Vec<u8>) {
    match choices.below(20) {
        0..=12 => undamaged(choices, scope),
        way => {
            let stream = if way >= 18 && !corpus.is_empty() {
                corpus[choices.below(corpus.len())].clone()
            } else {
                undamaged(choices, scope).1
            };
            let (_, other) = undamaged(choices, scope);
            (Way::Mutated, mutate(choices, &stream, &other))
        }
    }
}

/// A pickle at random, made in any of the ways but [`Way::Mutated`].
pub fn undamaged(choices: &mut dyn Choices, scope: Scope) -> (Way, Vec<u8>) {
    let way = match choices.below(20) {
        0..=5 => Way::Pickler,
        6 => Way::Optimized,
        7..=10 => Way::Loose,
        11..=14 => Way::Program,
        15 if scope.globals => Way::Accident,
        _ => Way::Corner,
    };
    let style = match way {
        Way::Pickler => Style::Pickler,
        Way::Optimized => Style::Optimized,
        _ => Style::Loose,
    };
    let protocol = choices.below(6) as u8;
    let mut writer = Writer::new(choices, scope, protocol, style);
    writer.budget = match writer.choices.below(12) {
        0 => 60,
        1..=3 => 2,
        _ => 12,
    };
    writer.pathlib = writer.choices.pick(&["pathlib", "pathlib._local"]);
    writer.multiarray = writer
        .choices
        .pick(&["numpy._core.multiarray", "numpy.core.multiarray"]);
    writer.python2 = protocol <= 2 && writer.choices.one_in(2);
    // A pickler states its protocol; nobody else has to.
    if protocol >= 2 && !(writer.loose() && writer.choices.one_in(3)) {
        writer.fixed(op::PROTO, &[protocol]);
    }
    match way {
        Way::Corner => corners::corner(&mut writer),
        Way::Program => {
            let steps = 2 + writer.choices.below(30);
            writer.program(steps);
        }
        Way::Accident => writer.accident(),
        _ => {
            writer.value(0);
        }
    }
    writer.op(op::STOP);
    let mut stream = writer.out;
    // A corner may be about frames.
    if protocol >= 4 && way != Way::Corner {
        let framed = style == Style::Pickler && stream.len() >= 6;
        if framed || choices.one_in(4) {
            stream = frame(choices, &stream, style);
        }
    }
    if choices.one_in(12) {
        // What follows STOP is nobody's business.
        stream.extend(choices.raw(3));
    }
    (way, stream)
}

/// Puts everything after PROTO into a frame, or into several.
fn frame(choices: &mut dyn Choices, stream: &[u8], style: Style) -> Vec<u8> {
    let mut framed = Vec::with_capacity(stream.len() + 9);
    let mut open: Vec<u8> = Vec::new();
    let close = |framed: &mut Vec<u8>, open: &mut Vec<u8>| {
        if !open.is_empty() {
            framed.push(op::FRAME);
            framed.extend((open.len() as u64).to_le_bytes());
            framed.append(open);
        }
    };
    let split = style == Style::Loose || choices.one_in(6);
    for instruction in op::instructions(stream) {
        let content = &stream[instruction];
        if content[0] == op::PROTO {
            close(&mut framed, &mut open);
            framed.extend(content);
        } else {
            open.extend(content);
            if split && choices.one_in(6) {
                close(&mut framed, &mut open);
            }
        }
    }
    close(&mut framed, &mut open);
    framed
}
