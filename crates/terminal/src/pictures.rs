//! Pictures on a terminal that shows them, in the way it does: kitty's or iTerm's.
//!
//! Which that is `MAINSTAY_IMAGES` says, else what the environment tells of the terminal: it is not asked, for its answer would be mixed
//! with what is typed. What is written is made here, of bytes that are a picture by their signature and of base64 that was read as such:
//! nothing that code shows is obeyed.
//!
//! Sources: <https://sw.kovidgoyal.net/kitty/graphics-protocol/>, <https://iterm2.com/documentation-images.html>.

use std::io::IsTerminal;

use mainstay_model::{Bundle, Picture, PictureFormat, WantedSize};

/// Says how pictures are shown: `kitty`, `iterm`, `off`, or `auto`.
const IMAGES_VARIABLE: &str = "MAINSTAY_IMAGES";

/// How a terminal is told to show a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// Pictures are sent as PNGs in pieces.
    Kitty,
    /// A file of any kind at once.
    Iterm,
}

/// A terminal that shows pictures.
#[derive(Clone, Copy, Debug)]
pub(super) struct ImageSupport {
    protocol: Protocol,
    room: Room,
}

/// How much of the screen a picture may take.
#[derive(Clone, Copy, Debug)]
struct Room {
    columns: u32,
    rows: u32,
    /// How many pixels a character's place has, across and down.
    cell: (u32, u32),
}

/// How large a picture is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The size of the picture itself.
    Own,
    /// As wide as so many characters.
    Columns(u32),
    /// As high as so many lines.
    Rows(u32),
}

impl ImageSupport {
    /// That of standard output, where it is a terminal that shows pictures.
    pub(super) fn stdout() -> Option<Self> {
        let told = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let protocol = std::io::stdout().is_terminal().then(|| Protocol::of(told)).flatten()?;
        Some(Self { protocol, room: Room::of_terminal() })
    }

    /// That of a kitty whose size is not known.
    #[cfg(test)]
    pub(super) const fn kitty() -> Self {
        Self { protocol: Protocol::Kitty, room: Room::UNKNOWN }
    }

    /// What shows a picture of it in whole lines; none where there is no picture that the terminal can show.
    pub(super) fn drawn(&self, bundle: &Bundle) -> Option<String> {
        bundle.pictures().find_map(|picture| self.draw(&picture, bundle.wanted_size(picture.kind.as_str())))
    }

    fn draw(&self, picture: &Picture<'_>, wanted: WantedSize) -> Option<String> {
        /// What a terminal takes, and no more than anybody looks at.
        const MAX_SIDE: u32 = 10_000;
        const MAX_BYTES: usize = 16 * 1024 * 1024;
        picture.format().filter(|format| self.protocol.takes(*format))?;
        let size = picture
            .size()
            .filter(|(width, height)| (1..=MAX_SIDE).contains(width) && (1..=MAX_SIDE).contains(height))?;
        if picture.data.len() > MAX_BYTES {
            return None;
        }
        let extent = self.room.extent(size, wanted);
        let drawn = match self.protocol {
            Protocol::Kitty => kitty(picture.data.as_str(), extent),
            Protocol::Iterm => iterm(picture, extent),
        };
        Some(format!("{drawn}\n"))
    }
}

impl Protocol {
    /// That of the terminal of which this is told.
    fn of(told: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, value: &str| told(name).is_some_and(|told| told == value);
        match told(IMAGES_VARIABLE).as_deref() {
            Some("kitty") => return Some(Self::Kitty),
            Some("iterm") => return Some(Self::Iterm),
            Some("off") => return None,
            Some(_) | None => {}
        }
        // Between a terminal and what runs in it these keep all that they do not know to themselves.
        let term = told("TERM").unwrap_or_default();
        let is_between = ["TMUX", "STY", "ZELLIJ"].into_iter().any(|name| told(name).is_some())
            || ["tmux", "screen", "dumb"].iter().any(|name| term.starts_with(name));
        if is_between {
            return None;
        }
        // Konsole has learned it in version 22.04.
        let konsole = told("KONSOLE_VERSION").and_then(|version| version.parse::<u32>().ok());
        let is_kitty = told("KITTY_WINDOW_ID").is_some()
            || ["xterm-kitty", "xterm-ghostty"].contains(&term.as_str())
            || is("TERM_PROGRAM", "ghostty")
            || konsole.is_some_and(|version| version >= 220_400);
        let is_iterm = is("TERM_PROGRAM", "iTerm.app")
            || is("TERM_PROGRAM", "WezTerm")
            // It comes along to other machines.
            || is("LC_TERMINAL", "iTerm2");
        match (is_kitty, is_iterm) {
            (true, _) => Some(Self::Kitty),
            (false, true) => Some(Self::Iterm),
            (false, false) => None,
        }
    }

    const fn takes(self, format: PictureFormat) -> bool {
        match (self, format) {
            (Self::Kitty | Self::Iterm, PictureFormat::Png)
            | (Self::Iterm, PictureFormat::Jpeg | PictureFormat::Gif) => true,
            (Self::Kitty, PictureFormat::Jpeg | PictureFormat::Gif)
            | (Self::Kitty | Self::Iterm, PictureFormat::Webp) => false,
        }
    }
}

impl Room {
    /// What is assumed of a terminal that does not say how large it is.
    const UNKNOWN: Self = Self { columns: 80, rows: 24, cell: (8, 16) };

    /// The terminal's width, and so much of its height that the prompt stays in sight.
    fn of_terminal() -> Self {
        let Ok(size) = crossterm::terminal::window_size() else { return Self::UNKNOWN };
        let or = |told: u32, assumed: u32| if told == 0 { assumed } else { told };
        let columns = or(size.columns.into(), Self::UNKNOWN.columns);
        let rows = or(size.rows.into(), Self::UNKNOWN.rows);
        let cell = (
            or(u32::from(size.width) / columns, Self::UNKNOWN.cell.0),
            or(u32::from(size.height) / rows, Self::UNKNOWN.cell.1),
        );
        Self { columns, rows: rows.saturating_sub(2).max(1), cell }
    }

    /// How large a picture of so many pixels is shown: smaller than it is, or is to be, where it has no room.
    fn extent(self, own: (u32, u32), wanted: WantedSize) -> Extent {
        let (width, height) = wanted.of(own);
        let (columns, rows) = (width.div_ceil(self.cell.0), height.div_ceil(self.cell.1));
        if columns <= self.columns && rows <= self.rows {
            return if (width, height) == own { Extent::Own } else { Extent::Columns(columns) };
        }
        let is_wider = u64::from(columns) * u64::from(self.rows) >= u64::from(rows) * u64::from(self.columns);
        if is_wider { Extent::Columns(self.columns) } else { Extent::Rows(self.rows) }
    }
}

/// A PNG for kitty, in pieces of which it takes no larger ones. It is to answer nothing, for who types would see that.
fn kitty(base64: &str, extent: Extent) -> String {
    const PIECE: usize = 4096;
    let size = match extent {
        Extent::Own => String::new(),
        Extent::Columns(columns) => format!(",c={columns}"),
        Extent::Rows(rows) => format!(",r={rows}"),
    };
    let mut written = String::new();
    let mut rest = base64;
    let mut keys = format!("a=T,f=100,q=2{size},");
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(rest.len().min(PIECE));
        let more = u8::from(!others.is_empty());
        written.push_str(&format!("\u{1b}_G{keys}m={more};{piece}\u{1b}\\"));
        keys = "q=2,".to_owned();
        rest = others;
    }
    written
}

fn iterm(picture: &Picture<'_>, extent: Extent) -> String {
    let size = match extent {
        Extent::Own => String::new(),
        Extent::Columns(columns) => format!("width={columns};"),
        Extent::Rows(rows) => format!("height={rows};"),
    };
    let (bytes, base64) = (picture.data.len(), picture.data.as_str());
    format!("\u{1b}]1337;File=inline=1;size={bytes};{size}preserveAspectRatio=1:{base64}\u{7}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROOM: Room = Room { columns: 80, rows: 22, cell: (10, 20) };
    /// The beginnings of pictures of 32 by 16, a PNG, a JPEG and a GIF.
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAQ";
    const JPEG: &str = "/9j/4AAEAAD/wAALCAAQACADAQ==";
    const GIF: &str = "R0lGODlhIAAQAIAA";

    fn protocol(told: &[(&str, &str)]) -> Option<Protocol> {
        Protocol::of(|name| told.iter().find(|(told, _)| *told == name).map(|(_, value)| (*value).to_owned()))
    }

    fn drawn(protocol: Protocol, kind: &str, data: &str) -> Option<String> {
        let bundle: Bundle = serde_json::from_value(json!({ kind: data, "text/plain": "it" })).unwrap();
        ImageSupport { protocol, room: ROOM }.drawn(&bundle)
    }

    #[test]
    fn the_terminal_is_known_by_its_environment_and_what_is_asked_for_goes_before() {
        let (kitty, iterm) = (Some(Protocol::Kitty), Some(Protocol::Iterm));
        for (told, expected) in [
            (&[("TERM", "xterm-256color")][..], None),
            (&[("TERM", "xterm-kitty")], kitty),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], kitty),
            (&[("TERM_PROGRAM", "ghostty")], kitty),
            (&[("KONSOLE_VERSION", "240802")], kitty),
            (&[("KONSOLE_VERSION", "211200")], None),
            (&[("TERM_PROGRAM", "WezTerm")], iterm),
            (&[("TERM_PROGRAM", "iTerm.app")], iterm),
            (&[("TERM_PROGRAM", "Apple_Terminal")], None),
            (&[("KITTY_WINDOW_ID", "1"), ("TERM", "dumb")], None),
            (&[("KITTY_WINDOW_ID", "1"), ("TMUX", "/tmp/tmux,1,0")], None),
            (&[("KITTY_WINDOW_ID", "1"), ("TERM", "screen.xterm-256color")], None),
            (&[("KITTY_WINDOW_ID", "1"), ("MAINSTAY_IMAGES", "off")], None),
            (&[("KITTY_WINDOW_ID", "1"), ("MAINSTAY_IMAGES", "iterm")], iterm),
            (&[("KITTY_WINDOW_ID", "1"), ("MAINSTAY_IMAGES", "auto")], kitty),
            (&[("TMUX", "/tmp/tmux,1,0"), ("MAINSTAY_IMAGES", "kitty")], kitty),
        ] {
            assert_eq!(protocol(told), expected, "{told:?}");
        }
    }

    #[test]
    fn kitty_takes_a_png_in_pieces_which_together_are_the_picture() {
        let base64 = format!("{PNG}{}", "AbC/".repeat(3000));
        let written = drawn(Protocol::Kitty, "image/png", &base64).unwrap();
        let pieces: Vec<(&str, &str)> = written
            .trim_end()
            .split_terminator("\u{1b}\\")
            .map(|piece| piece.strip_prefix("\u{1b}_G").unwrap().split_once(';').unwrap())
            .collect();
        let keys: Vec<&str> = pieces.iter().map(|(keys, _)| *keys).collect();
        assert_eq!(keys, ["a=T,f=100,q=2,m=1", "q=2,m=1", "q=2,m=0"]);
        assert!(pieces.iter().all(|(_, piece)| piece.len() <= 4096 && piece.len().is_multiple_of(4)));
        assert_eq!(pieces.iter().map(|(_, piece)| *piece).collect::<String>(), base64);
    }

    #[test]
    fn iterm_takes_any_picture_and_kitty_pngs_alone() {
        let written = drawn(Protocol::Iterm, "image/gif", GIF).unwrap();
        let expected = format!("\u{1b}]1337;File=inline=1;size=12;preserveAspectRatio=1:{GIF}\u{7}\n");
        assert_eq!(written, expected);
        assert!(drawn(Protocol::Iterm, "image/jpeg", JPEG).is_some());
        for (kind, data) in [("image/gif", GIF), ("image/jpeg", JPEG), ("image/png", JPEG)] {
            assert_eq!(drawn(Protocol::Kitty, kind, data), None, "{kind}");
        }
        let bundle = serde_json::from_value(json!({ "image/jpeg": JPEG, "image/png": PNG })).unwrap();
        assert!(ImageSupport { protocol: Protocol::Kitty, room: ROOM }.drawn(&bundle).unwrap().contains(PNG));
    }

    #[test]
    fn what_is_no_picture_of_a_sensible_size_is_not_written() {
        let huge = "iVBORw0KGgoAAAANSUhEUgAA//8AAAAQ";
        let empty = "iVBORw0KGgoAAAANSUhEUgAAAAAAAAAQ";
        for data in ["aGVsbG8h", "", "iVBORw0KGgo=", huge, empty] {
            for protocol in [Protocol::Kitty, Protocol::Iterm] {
                assert_eq!(drawn(protocol, "image/png", data), None, "{data}");
            }
        }
    }

    #[test]
    fn a_picture_has_its_own_size_where_that_has_room_and_else_no_more_than_the_screen() {
        for (size, extent) in [
            ((640, 400), Extent::Own),
            ((800, 440), Extent::Own),
            ((801, 100), Extent::Columns(80)),
            ((640, 480), Extent::Rows(22)),
            ((4000, 1000), Extent::Columns(80)),
            ((1000, 10_000), Extent::Rows(22)),
        ] {
            assert_eq!(ROOM.extent(size, WantedSize::default()), extent, "{size:?}");
        }
        let wide = |width: u32| ROOM.extent((640, 400), WantedSize { width: Some(width), height: None });
        assert_eq!([wide(320), wide(640), wide(8000)], [Extent::Columns(32), Extent::Own, Extent::Rows(22)]);
        assert!(kitty(PNG, Extent::Rows(22)).contains(",r=22,"));
        assert!(kitty(PNG, Extent::Columns(80)).contains(",c=80,"));
    }
}
