//! What code puts out, in its cell: what it prints, the beginning of it and the end, and what it shows.

use mainstay_model::screen::Screen;
use mainstay_model::{DisplayId, OutputStream};

use super::{Cell, CellChanges, CellPart};

/// How many bytes of what a cell prints are shown from its beginning.
const SHOWN_BYTES: usize = 128 * 1024;
/// And how many of the end of what it prints beyond.
const END_BYTES: usize = 32 * 1024;
/// From how many bytes on what is settled is a part of its own.
const PART_BYTES: usize = 4 * 1024;

impl Cell {
    /// What was put out so far is taken back.
    pub(in super::super) fn clear(&mut self) -> CellChanges {
        self.parts.iter_mut().for_each(|part| *part = CellPart::Gone);
        CellChanges { frame: false, parts: (0..self.parts.len()).map(|index| (index, false)).collect() }
    }

    /// What has the name of something that it has shown stands for that.
    pub(in super::super) fn show(&mut self, part: CellPart) -> CellChanges {
        let name = part.name().cloned();
        let before = name.and_then(|name| self.parts.iter().position(|before| before.name() == Some(&name)));
        match before.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, before)) => {
                *before = part;
                CellChanges::part(index, false)
            }
            None => self.push(part),
        }
    }

    /// It has printed more than is kept: of what follows there is only the end.
    pub(in super::super) fn cut(&mut self) -> CellChanges {
        let place = self.parts.iter().position(CellPart::is_cut);
        match place.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, CellPart::Cut { is_over_limit, .. })) => {
                *is_over_limit = true;
                CellChanges::part(index, false)
            }
            Some(_) | None => self.push(CellPart::Cut { left_out: 0, is_over_limit: true }),
        }
    }

    /// It prints. The beginning is shown as it comes, and of what is too much only the end.
    pub(in super::super) fn print(&mut self, stream: OutputStream, text: &str) -> CellChanges {
        if self.parts.iter().any(CellPart::is_cut) {
            return self.print_end(stream, text);
        }
        let room = SHOWN_BYTES.saturating_sub(self.printed_bytes());
        if text.len() <= room {
            return self.print_beginning(stream, text);
        }
        let end = text.floor_char_boundary(room);
        let (shown, rest) = text.split_at(text[..end].rfind('\n').map_or(end, |line_end| line_end + 1));
        let touched =
            if shown.is_empty() { CellChanges::default() } else { self.print_beginning(stream, shown) };
        let touched = touched.and(self.push(CellPart::Cut { left_out: 0, is_over_limit: false }));
        touched.and(self.print_end(stream, rest))
    }

    /// What cannot be written over any more becomes a part of its own, so that only what may change is sent again.
    fn print_beginning(&mut self, stream: OutputStream, text: &str) -> CellChanges {
        let (index, touched) = self.print_to_last(stream, text);
        match self.parts.get_mut(index) {
            Some(CellPart::Printed(screen)) if screen.settled_bytes() >= PART_BYTES => {
                let settled = screen.split_settled();
                let rest = std::mem::replace(screen, settled);
                touched.and(self.push(CellPart::Printed(rest)))
            }
            Some(_) | None => touched,
        }
    }

    fn print_end(&mut self, stream: OutputStream, text: &str) -> CellChanges {
        let (_, mut touched) = self.print_to_last(stream, text);
        let Some(cut) = self.parts.iter().position(CellPart::is_cut) else { return touched };
        let (before, end) = self.parts.split_at_mut(cut + 1);
        let mut over = end.iter().map(CellPart::printed_bytes).sum::<usize>().saturating_sub(END_BYTES);
        let mut forgotten = 0;
        for (index, part) in end.iter_mut().enumerate() {
            let CellPart::Printed(screen) = part else { continue };
            let bytes = screen.bytes();
            if over == 0 || bytes == 0 {
                continue;
            }
            screen.keep_end(bytes.saturating_sub(over));
            let less = bytes - screen.bytes();
            over = over.saturating_sub(less);
            forgotten += less;
            touched = touched.and(CellChanges::part(cut + 1 + index, false));
        }
        if let Some(CellPart::Cut { left_out, .. }) = before.last_mut()
            && forgotten > 0
        {
            *left_out += forgotten;
            touched = touched.and(CellChanges::part(cut, false));
        }
        touched
    }

    /// Prints to the last part, if that is a screen, or to a new one; gives its place.
    fn print_to_last(&mut self, stream: OutputStream, text: &str) -> (usize, CellChanges) {
        let last = self.parts.iter().rposition(|part| !part.is_gone());
        match last.and_then(|index| Some((index, self.parts.get_mut(index)?))) {
            Some((index, CellPart::Printed(screen))) => {
                screen.print(stream, text);
                (index, CellChanges::part(index, false))
            }
            Some(_) | None => {
                let mut screen = Screen::default();
                screen.print(stream, text);
                (last.map_or(0, |last| last + 1), self.push(CellPart::Printed(screen)))
            }
        }
    }

    fn printed_bytes(&self) -> usize {
        self.parts.iter().map(CellPart::printed_bytes).sum()
    }
}

impl CellPart {
    fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }

    fn printed_bytes(&self) -> usize {
        match self {
            Self::Printed(screen) => screen.bytes(),
            Self::Displayed { .. }
            | Self::Gone
            | Self::Cut { .. }
            | Self::Said { .. }
            | Self::Called { .. }
            | Self::Noted { .. } => 0,
        }
    }

    /// What code calls what it shows.
    fn name(&self) -> Option<&DisplayId> {
        match self {
            Self::Displayed { display, .. } => display.id.as_ref(),
            Self::Printed(_)
            | Self::Gone
            | Self::Cut { .. }
            | Self::Said { .. }
            | Self::Called { .. }
            | Self::Noted { .. } => None,
        }
    }
}
