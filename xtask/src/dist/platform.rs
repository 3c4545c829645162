//! The platforms that packages are made for, and what each registry calls them. No other file knows a platform by name.

/// A platform, in the words of each registry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Platform {
    /// The target triple of Rust.
    pub(crate) triple: &'static str,
    /// The runtime identifier of .NET.
    pub(crate) rid: &'static str,
    /// The platform tag of Python's wheels.
    pub(crate) wheel: WheelTag,
    /// The `os` of an npm package.
    pub(crate) npm_os: &'static str,
    /// The `cpu` of an npm package.
    pub(crate) npm_cpu: &'static str,
    /// The architecture of Debian; none where there is no Debian of this platform.
    pub(crate) deb: Option<&'static str>,
    /// The format of the executable.
    pub(crate) format: Format,
}

/// The platform tag of a wheel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WheelTag {
    /// A tag `manylinux_X_Y_ARCHITECTURE`, where X.Y is the glibc that the binary needs.
    Manylinux(&'static str),
    /// A tag that is the same for every binary.
    Fixed(&'static str),
}

/// The format of an executable file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// An ELF file for a machine.
    Elf(object::elf::Machine),
    /// A Mach-O file of 64 bits.
    MachO,
    /// A Portable Executable, of Windows.
    Pe,
}

/// Every platform that a binary can be given for.
pub(crate) const PLATFORMS: &[Platform] = &[
    Platform {
        triple: "aarch64-apple-darwin",
        rid: "osx-arm64",
        wheel: WheelTag::Fixed("macosx_11_0_arm64"),
        npm_os: "darwin",
        npm_cpu: "arm64",
        deb: None,
        format: Format::MachO,
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        rid: "linux-arm64",
        wheel: WheelTag::Manylinux("aarch64"),
        npm_os: "linux",
        npm_cpu: "arm64",
        deb: Some("arm64"),
        format: Format::Elf(object::elf::EM_AARCH64),
    },
    Platform {
        triple: "x86_64-apple-darwin",
        rid: "osx-x64",
        wheel: WheelTag::Fixed("macosx_10_12_x86_64"),
        npm_os: "darwin",
        npm_cpu: "x64",
        deb: None,
        format: Format::MachO,
    },
    Platform {
        triple: "x86_64-pc-windows-msvc",
        rid: "win-x64",
        wheel: WheelTag::Fixed("win_amd64"),
        npm_os: "win32",
        npm_cpu: "x64",
        deb: None,
        format: Format::Pe,
    },
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        rid: "linux-x64",
        wheel: WheelTag::Manylinux("x86_64"),
        npm_os: "linux",
        npm_cpu: "x64",
        deb: Some("amd64"),
        format: Format::Elf(object::elf::EM_X86_64),
    },
];

impl Platform {
    /// Returns the platform of a target triple.
    pub(crate) fn of_triple(triple: &str) -> Option<&'static Self> {
        PLATFORMS.iter().find(|platform| platform.triple == triple)
    }

    /// Returns the platform on which this program runs.
    pub(crate) fn of_this_machine() -> Option<&'static Self> {
        use std::env::consts::{ARCH, OS};
        PLATFORMS.iter().find(|platform| {
            platform.triple.starts_with(ARCH)
                && platform.triple.contains(match OS {
                    "macos" => "apple-darwin",
                    "windows" => "pc-windows",
                    _ => "unknown-linux-gnu",
                })
        })
    }

    /// The name of the program's file.
    pub(crate) fn executable(&self, name: &str) -> String {
        match self.format {
            Format::Pe => format!("{name}.exe"),
            Format::Elf(_) | Format::MachO => name.to_owned(),
        }
    }

    /// Whether a GNU C library is part of the platform.
    pub(crate) fn has_glibc(&self) -> bool {
        matches!(self.format, Format::Elf(_))
    }
}
