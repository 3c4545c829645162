//! Brings the current long-term SDK from Microsoft's feed: metadata and archive are fetched by the machine's `curl`, since nothing here
//! speaks TLS, and unpacked by its `tar`. An archive whose download was cut off stays beside Mainstay's SDK and is continued by the next
//! installation.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha512};
use tokio::process::Command;
use tokio::task::spawn_blocking;

use super::feed::{Archive, Channel, index_of};
use super::install::{Failure, Fetch};
use super::progress::{Progress, Source};
use super::rid::this_machine;
use mainstay_os::command::{self, CommandError};
use mainstay_os::download::{Download, DownloadError};
use mainstay_os::folder::{FileError, failed, remove};

/// How long a server may take to answer at all.
const CONNECT: Duration = Duration::from_secs(10);
/// How long fetching metadata (up to 2 MB) may take.
const METADATA_LIMIT: Duration = Duration::from_secs(60);
/// How long a download may bring nothing.
const STALL_LIMIT: Duration = Duration::from_secs(60);
/// How long unpacking an SDK may take. It takes ten seconds.
const UNPACK_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How often a download is continued that breaks off.
const ATTEMPTS: u32 = 5;
/// The ends of `curl` that mean that a server does not continue a file: its answer has no range, or not the one asked for.
const CANNOT_CONTINUE: [i32; 2] = [33, 36];
/// How much of a file is hashed at a time.
const BLOCK: usize = 1 << 20;

impl Fetch<'_> {
    /// The archive of the SDK that the feed calls the latest of its current long-term release.
    pub(super) async fn current_archive(&self) -> Result<Archive, Failure> {
        let index = index_of(&self.search.feed);
        let channel = Channel::current(&index, &self.metadata(&index).await?)?;
        Ok(channel.archive(&self.metadata(&channel.releases).await?, &this_machine())?)
    }

    /// The root of the SDK of `archive`, in the staging folder.
    pub(super) async fn unpacked(&self, archive: &Archive) -> Result<PathBuf, Failure> {
        let file = self.fetched(archive).await?;
        let root = self.folder.join("dotnet");
        fs::create_dir(&root).map_err(failed("create", &root))?;
        let mut unpack = self.tool("tar").ok_or(Failure::ToolMissing(
            "tar, which unpacks it, is not on the PATH; install tar with the system's package manager",
        ))?;
        unpack.arg("-xzof").arg(&file).arg("-C").arg(&root);
        let tell = |elapsed, _| {
            (self.progress)(Progress::Unpacking { version: archive.version.clone(), elapsed });
        };
        tell(Duration::ZERO, 0);
        let unpacking = Download { folder: self.folder, limit: UNPACK_LIMIT, stall_limit: None };
        unpacking.run(&mut unpack, &tell).await?;
        remove(&self.downloads())?;
        Ok(root)
    }

    async fn metadata(&self, address: &str) -> Result<Vec<u8>, Failure> {
        let file = self.folder.join("metadata.json");
        let mut curl = self.curl(&file)?;
        command::run(curl.arg(address), &self.folder.join("log"), METADATA_LIMIT).await?;
        Ok(fs::read(&file).map_err(failed("read", &file))?)
    }

    /// The whole archive on disk, with the right hash. What an earlier download left is tried first, and given up where it does not fit.
    async fn fetched(&self, archive: &Archive) -> Result<PathBuf, Failure> {
        let file = self.downloads().join(format!("{}-{}", archive.version, archive.name));
        make_room(&file)?;
        if length(&file) > 0 {
            if is_whole(&file, archive).await? {
                return Ok(file);
            }
            self.continued(archive, &file).await?;
            if is_whole(&file, archive).await? {
                return Ok(file);
            }
            fs::remove_file(&file).map_err(failed("remove", &file))?;
        }
        self.continued(archive, &file).await?;
        if is_whole(&file, archive).await? {
            return Ok(file);
        }
        remove(&self.downloads())?;
        Err(Failure::WrongHash { version: archive.version.clone(), address: archive.address.clone() })
    }

    /// Fetches what is missing of `file`, again where that breaks off, and from its start where the server does not continue it.
    async fn continued(&self, archive: &Archive, file: &Path) -> Result<(), Failure> {
        for _ in 1..ATTEMPTS {
            let there = length(file);
            match self.download(archive, file).await {
                Err(Failure::Download(error)) if there > 0 && cannot_continue(&error) => {
                    fs::remove_file(file).map_err(failed("remove", file))?;
                }
                Err(Failure::Download(_)) if length(file) > there => {}
                ended => return ended,
            }
        }
        self.download(archive, file).await
    }

    async fn download(&self, archive: &Archive, file: &Path) -> Result<(), Failure> {
        let mut curl = self.curl(file)?;
        curl.args(["--continue-at", "-"]).arg(&archive.address);
        Ok(self.watched(Source::Microsoft, &self.downloads(), &mut curl, Some(STALL_LIMIT)).await?)
    }

    /// The start of a command line of `curl` that writes `file`. Only a feed that the configuration has set to `http:` is read without TLS.
    fn curl(&self, file: &Path) -> Result<Command, Failure> {
        let mut curl = self.tool("curl").ok_or(Failure::ToolMissing(
            "curl, which fetches it, is not on the PATH; install curl with the system's package manager",
        ))?;
        let protocols = if self.search.feed.starts_with("http:") { "=http,https" } else { "=https" };
        curl.args(["-fsSL", "--proto", protocols, "--connect-timeout", &CONNECT.as_secs().to_string()]);
        curl.arg("--output").arg(file);
        Ok(curl)
    }

    /// Where an archive lies until it is unpacked.
    fn downloads(&self) -> PathBuf {
        self.search.own_root().with_extension("download")
    }
}

/// Makes the folder of `file`, and removes what else is in it: archives of other versions whose download was cut off.
fn make_room(file: &Path) -> Result<(), FileError> {
    let Some(folder) = file.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(failed("create", folder))?;
    let entries = fs::read_dir(folder).map_err(failed("read", folder))?.flatten();
    for other in entries.map(|entry| entry.path()).filter(|path| path != file) {
        fs::remove_file(&other).map_err(failed("remove", &other))?;
    }
    Ok(())
}

fn length(file: &Path) -> u64 {
    file.metadata().map(|about| about.len()).unwrap_or_default()
}

/// Whether the server has refused to go on where the file on disk ends.
fn cannot_continue(error: &DownloadError) -> bool {
    let DownloadError::Command(CommandError::Failed { status, text, .. }) = error else { return false };
    // 416: the file is as long as the server's, or longer. Some versions of curl take that for success.
    status.code().is_some_and(|code| CANNOT_CONTINUE.contains(&code)) || text.contains("error: 416")
}

/// Whether `file` has the hash of `archive`.
async fn is_whole(file: &Path, archive: &Archive) -> Result<bool, FileError> {
    let (path, hash) = (file.to_owned(), archive.hash);
    let compared = spawn_blocking(move || match hash_of(&path) {
        Ok(found) => Ok(found == hash),
        Err(error) => Err(failed("read", &path)(error)),
    });
    compared.await.unwrap_or_else(|cut_off| Err(failed("read", file)(cut_off.into())))
}

fn hash_of(file: &Path) -> io::Result<[u8; 64]> {
    let (mut file, mut hasher, mut block) = (File::open(file)?, Sha512::new(), vec![0; BLOCK]);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&block[..count]),
        }
    }
}
