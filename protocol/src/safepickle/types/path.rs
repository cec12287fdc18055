//! Paths: their classes and parts.

/// A class of `pathlib`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PathClass {
    /// `PurePosixPath`.
    PurePosixPath,
    /// `PureWindowsPath`.
    PureWindowsPath,
    /// `PosixPath`.
    PosixPath,
    /// `WindowsPath`.
    WindowsPath,
}
