//! Damage: bytes and instructions of a stream, changed at random.

use std::ops::Range;

use super::Choices;
use super::op::{self, Argument};

/// Changes a stream in one to three places. `other` is one from which parts may be taken.
pub fn mutate(choices: &mut dyn Choices, stream: &[u8], other: &[u8]) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for _ in 0..1 + choices.below(3) {
        if stream.is_empty() {
            break;
        }
        change(choices, &mut stream, other);
    }
    stream
}

fn change(choices: &mut dyn Choices, stream: &mut Vec<u8>, other: &[u8]) {
    let instructions = op::instructions(stream);
    let one = instructions[choices.below(instructions.len())].clone();
    match choices.below(14) {
        0 => {
            let at = choices.below(stream.len());
            stream[at] ^= 1 << choices.below(8);
        }
        1 => {
            let at = choices.below(stream.len());
            stream[at] = choices.below(256) as u8;
        }
        2 => stream.truncate(choices.below(stream.len() + 1)),
        3 => {
            let (from, to) = (choices.below(stream.len()), choices.below(stream.len()));
            let slice = stream[from.min(to)..from.max(to)].to_vec();
            let at = choices.below(stream.len());
            stream.splice(at..at, slice);
        }
        // An instruction goes, comes twice, moves, changes places, or becomes another.
        4 => {
            stream.drain(one);
        }
        5 => {
            let copy = stream[one.clone()].to_vec();
            stream.splice(one.start..one.start, copy);
        }
        6 => {
            let copy = stream[one].to_vec();
            insert(choices, stream, &instructions, &copy);
        }
        7 => {
            let mut two = instructions[choices.below(instructions.len())].clone();
            let mut one = one;
            if two.start < one.start {
                std::mem::swap(&mut one, &mut two);
            }
            if one.end <= two.start {
                let first = stream[one.clone()].to_vec();
                let second = stream.splice(two, first).collect::<Vec<u8>>();
                stream.splice(one, second);
            }
        }
        8 => {
            let argument = argument(stream[one.start]);
            let alike: Vec<u8> = op::ALL
                .iter()
                .filter(|(_, _, other)| Some(*other) == argument)
                .map(|(byte, _, _)| *byte)
                .collect();
            if !alike.is_empty() {
                stream[one.start] = alike[choices.below(alike.len())];
            }
        }
        9 if one.len() > 1 => {
            let at = one.start + 1 + choices.below(one.len() - 1);
            stream[at] = match choices.below(4) {
                0 => 0,
                1 => 0xff,
                2 => stream[at].wrapping_add(1),
                _ => choices.below(256) as u8,
            };
        }
        // An instruction comes in, without an argument, or from the other stream.
        10 | 11 => {
            let (byte, _, argument) = op::ALL[choices.below(op::ALL.len())];
            let instruction = match argument {
                Argument::None => vec![byte],
                _ => vec![op::BININT1, choices.below(4) as u8],
            };
            insert(choices, stream, &instructions, &instruction);
        }
        _ => {
            let theirs = op::instructions(other);
            if !theirs.is_empty() {
                let from = choices.below(theirs.len());
                let to = (from + choices.below(6)).min(theirs.len() - 1);
                let piece = other[theirs[from].start..theirs[to].end].to_vec();
                insert(choices, stream, &instructions, &piece);
            }
        }
    }
}

fn insert(
    choices: &mut dyn Choices,
    stream: &mut Vec<u8>,
    instructions: &[Range<usize>],
    piece: &[u8],
) {
    let at = instructions[choices.below(instructions.len())].start;
    stream.splice(at..at, piece.iter().copied());
}

fn argument(opcode: u8) -> Option<Argument> {
    op::ALL
        .iter()
        .find(|(byte, _, _)| *byte == opcode)
        .map(|(_, _, argument)| *argument)
}
