//! Where a library's bytes are put so that the system's loader can open them: in a file that exists in memory only, or in a
//! private temporary directory that is removed again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a library's bytes are put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// In memory where the system can, else in its directory for temporary files.
    #[default]
    Automatic,
    /// In a new private directory inside this one.
    Directory(PathBuf),
}

/// Bytes that the system's loader can open. Must live as long as the library does.
#[derive(Debug)]
pub(crate) struct Placed {
    path: PathBuf,
    /// Keeps the descriptor, and with it the name under `/proc`, from being used again while the library is loaded: the
    /// system's loader takes equal names for the same library.
    _memory: Option<File>,
    directory: Option<PrivateDirectory>,
}

impl Placed {
    pub(crate) fn new(bytes: &[u8], placement: &Placement, suffix: &str) -> io::Result<Self> {
        match placement {
            Placement::Automatic => match in_memory(bytes) {
                Some(placed) => Ok(placed),
                None => Self::in_directory(bytes, &std::env::temp_dir(), suffix),
            },
            Placement::Directory(directory) => Self::in_directory(bytes, directory, suffix),
        }
    }

    /// What to open.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// To be called once the library is open: removes its file where the system allows that already.
    pub(crate) fn opened(&mut self) {
        if cfg!(unix) {
            self.directory = None;
        }
    }

    fn in_directory(bytes: &[u8], parent: &Path, suffix: &str) -> io::Result<Self> {
        let directory = PrivateDirectory::new(parent)?;
        let path = directory.0.join(format!("library{suffix}"));
        let mut file = File::create_new(&path)?;
        file.write_all(bytes)?;
        Ok(Self { path, _memory: None, directory: Some(directory) })
    }
}

/// A file without a name, where the system has such.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn in_memory(bytes: &[u8]) -> Option<Placed> {
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::os::fd::AsRawFd;
    let mut file = File::from(memfd_create("vmfb-library", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(bytes).ok()?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // Without /proc the descriptor has no name.
    path.exists().then_some(Placed { path, _memory: Some(file), directory: None })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn in_memory(_bytes: &[u8]) -> Option<Placed> {
    None
}

/// A directory that only this user may enter; removed with its content on drop.
#[derive(Debug)]
struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    fn new(parent: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        const ATTEMPTS: u32 = 64;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let path = parent.join(format!("vmfb-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
            match create_private(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a temporary directory could not be removed");
        }
    }
}
