//! What an executable file says of itself: its format, the glibc that it needs, and the shared libraries.

use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, Machine};
use object::read::elf::{Dyn, FileHeader};

use super::platform::{Format, Platform};

/// What a binary for Linux needs of the system.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The lowest version of glibc that has every symbol which the binary imports.
    pub(crate) glibc: (u32, u32),
    /// The names of the shared libraries, in the order of the file.
    pub(crate) libraries: Vec<String>,
}

/// The libraries that a `manylinux` wheel may take from the system.
const OF_EVERY_LINUX: [&str; 9] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
];

/// Returns what a binary needs; nothing where its platform has no glibc. The error says why the binary is not for the platform.
pub(crate) fn needs(bytes: &[u8], platform: &Platform) -> Result<Needs, String> {
    let is_other = || format!("it is no executable for {}", platform.triple);
    match platform.format {
        Format::Pe if bytes.starts_with(b"MZ") => Ok(Needs::default()),
        Format::MachO if bytes.starts_with(&0xfeed_facf_u32.to_le_bytes()) => Ok(Needs::default()),
        Format::Elf(machine) => {
            let (of_file, needs) = elf(bytes).map_err(|error| format!("{}: {error}", is_other()))?;
            let missing = needs.libraries.iter().find(|library| !OF_EVERY_LINUX.contains(&library.as_str()));
            match missing {
                _ if of_file != machine => Err(is_other()),
                Some(library) => Err(format!("it needs `{library}`, which not every Linux has")),
                None => Ok(needs),
            }
        }
        Format::Pe | Format::MachO => Err(is_other()),
    }
}

/// Returns the machine of an ELF file and what the file needs.
fn elf(bytes: &[u8]) -> object::Result<(Machine, Needs)> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let mut needs = Needs::default();
    if let Some((mut versions, link)) = sections.gnu_verneed(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        while let Some((_, mut symbols)) = versions.next()? {
            while let Some(symbol) = symbols.next()? {
                needs.glibc = needs.glibc.max(glibc(symbol.name(endian, strings)?).unwrap_or_default());
            }
        }
    }
    if let Some((entries, link)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, link)?;
        for entry in entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED) {
            needs.libraries.push(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned());
        }
    }
    Ok((header.e_machine(endian), needs))
}

/// Returns the version in the name of a set of symbols, such as `GLIBC_2.34`.
fn glibc(name: &[u8]) -> Option<(u32, u32)> {
    let version = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_")?;
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_compared_by_number() {
        assert_eq!(glibc(b"GLIBC_2.34"), Some((2, 34)));
        assert_eq!(glibc(b"GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc(b"GLIBC_PRIVATE"), None);
        assert_eq!(glibc(b"GCC_3.0"), None);
        assert!(glibc(b"GLIBC_2.34") > glibc(b"GLIBC_2.9"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_program_says_which_glibc_it_needs_and_is_for_one_platform() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let here = Platform::of_this_machine().unwrap();
        let needs_of = |platform| needs(&own, platform);
        let found = needs_of(here).unwrap();
        assert!(found.glibc >= (2, 17), "{found:?}");
        assert!(found.libraries.contains(&"libc.so.6".to_owned()), "{found:?}");
        for other in super::super::platform::PLATFORMS.iter().filter(|other| *other != here) {
            assert!(needs_of(other).is_err(), "{}", other.triple);
        }
    }

    #[test]
    fn what_is_no_executable_is_refused() {
        for platform in super::super::platform::PLATFORMS {
            assert!(needs(b"#!/bin/sh\n", platform).is_err(), "{}", platform.triple);
        }
    }
}
