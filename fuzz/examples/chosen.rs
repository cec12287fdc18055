//! Writes the pickle that an input of the target `structured` comes to: `chosen INPUT PICKLE`.

use std::env::args_os;
use std::fs;
use std::io;

fn main() -> io::Result<()> {
    let mut files = args_os().skip(1);
    let (Some(input), Some(pickle)) = (files.next(), files.next()) else {
        return Err(io::Error::other("usage: chosen INPUT PICKLE"));
    };
    let (way, stream) = agentix_fuzz::chosen(&fs::read(input)?);
    println!("{way:?}, {} bytes", stream.len());
    fs::write(pickle, stream)
}
