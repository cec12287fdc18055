//! Writes the seed corpus of each target into `fuzz/corpus`, from the vectors under `spec/vectors`.

use std::fs;
use std::io;
use std::path::Path;

use agentix_fuzz::{TARGETS, seeds};

fn main() -> io::Result<()> {
    for target in TARGETS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target.name);
        fs::create_dir_all(&corpus)?;
        let seeds = seeds(target);
        for (id, seed) in &seeds {
            fs::write(corpus.join(id.replace('/', "_")), seed)?;
        }
        println!("{}: {} seeds", corpus.display(), seeds.len());
    }
    Ok(())
}
