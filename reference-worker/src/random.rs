//! Random bits of the operating system: what names sessions must not be guessed.

use data_encoding::BASE64URL_NOPAD;

/// A session id of 20 characters, 120 random bits.
///
/// # Errors
///
/// When the operating system has no random bits to give.
pub(crate) fn sid() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 15];
    getrandom::fill(&mut bytes)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

/// 64 random bits.
///
/// # Errors
///
/// When the operating system has no random bits to give.
pub(crate) fn bits() -> Result<u64, getrandom::Error> {
    getrandom::u64()
}
