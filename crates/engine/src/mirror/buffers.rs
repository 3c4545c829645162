//! The unsaved texts of one session, the newest of each file, and which files a mirror has not taken in as they are meant to be. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use mainstay_model::{Error, UnsavedBuffer};
use mainstay_runner::SourceText;

/// How many texts of a file are known again when it is saved: an editor goes on while it saves.
const KNOWN: usize = 64;

/// The unsaved texts of one session.
#[derive(Default)]
pub(super) struct Buffers {
    texts: BTreeMap<String, Text>,
    /// The files that a mirror has not taken in as they are meant to be, each with the change that it has to take in.
    due: BTreeMap<String, u64>,
    changes: u64,
}

struct Text {
    version: u64,
    text: String,
    /// The hashes of the texts that came before.
    earlier: VecDeque<u64>,
}

/// What a mirror is to take in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DueSources {
    pub(super) sources: Vec<SourceText>,
    changes: BTreeMap<String, u64>,
}

impl Buffers {
    /// Takes a text in, unless a newer one of the file is there. The same version may come again.
    pub(super) fn put(&mut self, path: &str, version: u64, text: String) -> Result<(), Error> {
        let mut earlier = VecDeque::new();
        if let Some(known) = self.texts.remove(path) {
            if known.version > version {
                let newest = known.version;
                self.texts.insert(path.to_owned(), known);
                return Err(Error::BufferOutdated { path: path.to_owned(), newest });
            }
            earlier = known.earlier;
            earlier.push_back(hash_of(&known.text));
            if earlier.len() > KNOWN {
                earlier.pop_front();
            }
        }
        self.texts.insert(path.to_owned(), Text { version, text, earlier });
        self.is_due(path);
        Ok(())
    }

    /// Throws the text of a file away; says whether there was one.
    pub(super) fn discard(&mut self, path: &str) -> bool {
        let was_there = self.texts.remove(path).is_some();
        if was_there {
            self.is_due(path);
        }
        was_there
    }

    /// A file was saved with this text. An unsaved one of it is thrown away, unless it came after what was saved.
    pub(super) fn saved(&mut self, path: &str, saved: Option<&str>) {
        let saved = saved.map(hash_of);
        let is_older = |known: &Text| {
            saved.is_some_and(|saved| hash_of(&known.text) != saved && known.earlier.contains(&saved))
        };
        if self.texts.get(path).is_some_and(is_older) {
            return;
        }
        self.texts.remove(path);
        self.is_due(path);
    }

    /// What a mirror has to take in.
    pub(super) fn due(&self) -> DueSources {
        let text = |path: &String| self.texts.get(path).map(|known| known.text.clone());
        let sources = self.due.keys().map(|path| SourceText { path: path.clone(), text: text(path) });
        DueSources { sources: sources.collect(), changes: self.due.clone() }
    }

    /// A mirror begins that has the saved files.
    pub(super) fn begin_again(&mut self) {
        self.due.clear();
        for path in self.texts.keys().cloned().collect::<Vec<_>>() {
            self.is_due(&path);
        }
    }

    /// A mirror has these files as they were when it was given them.
    pub(super) fn are_in(&mut self, given: &DueSources, paths: &[String]) {
        for path in paths {
            if self.due.get(path) == given.changes.get(path) {
                self.due.remove(path);
            }
        }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.texts.contains_key(path)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(super) fn list(&self) -> Vec<UnsavedBuffer> {
        let listed = self.texts.iter().map(|(path, known)| UnsavedBuffer {
            path: path.clone(),
            version: known.version,
            bytes: known.text.len() as u64,
        });
        listed.collect()
    }

    fn is_due(&mut self, path: &str) {
        self.changes += 1;
        self.due.insert(path.to_owned(), self.changes);
    }
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(buffers: &Buffers, path: &str) -> Option<Option<String>> {
        buffers.due().sources.into_iter().find(|source| source.path == path).map(|source| source.text)
    }

    #[test]
    fn the_newest_text_counts_and_an_older_one_is_refused() {
        let mut buffers = Buffers::default();
        buffers.put("/a.fs", 2, "two".to_owned()).unwrap();
        let refused = buffers.put("/a.fs", 1, "one".to_owned());
        assert_eq!(refused, Err(Error::BufferOutdated { path: "/a.fs".to_owned(), newest: 2 }));
        assert_eq!(text(&buffers, "/a.fs"), Some(Some("two".to_owned())));
        buffers.put("/a.fs", 2, "two again".to_owned()).unwrap();
        assert_eq!(text(&buffers, "/a.fs"), Some(Some("two again".to_owned())));
        assert_eq!(
            buffers.list(),
            [UnsavedBuffer { path: "/a.fs".to_owned(), version: 2, bytes: "two again".len() as u64 }]
        );
    }

    #[test]
    fn what_came_while_a_mirror_took_a_text_in_is_still_due() {
        let mut buffers = Buffers::default();
        buffers.put("/a.fs", 1, "one".to_owned()).unwrap();
        buffers.put("/b.fs", 1, "one".to_owned()).unwrap();
        let given = buffers.due();
        buffers.put("/a.fs", 2, "two".to_owned()).unwrap();
        buffers.are_in(&given, &["/a.fs".to_owned(), "/b.fs".to_owned()]);
        assert_eq!((text(&buffers, "/a.fs"), text(&buffers, "/b.fs")), (Some(Some("two".to_owned())), None));
    }

    #[test]
    fn a_text_that_is_thrown_away_leaves_the_file_as_it_is_saved() {
        let mut buffers = Buffers::default();
        buffers.put("/a.fs", 7, "seven".to_owned()).unwrap();
        buffers.are_in(&buffers.due(), &["/a.fs".to_owned()]);
        assert!(buffers.discard("/a.fs") && !buffers.discard("/a.fs"));
        assert_eq!((text(&buffers, "/a.fs"), buffers.is_empty()), (Some(None), true));
        buffers.put("/a.fs", 1, "the editor counts anew".to_owned()).unwrap();
    }

    #[test]
    fn a_save_throws_away_what_is_not_newer() {
        let mut buffers = Buffers::default();
        let mut after = |saved: Option<&str>| {
            buffers.put("/a.fs", 1, "one".to_owned()).unwrap();
            buffers.put("/a.fs", 2, "two".to_owned()).unwrap();
            buffers.saved("/a.fs", saved);
            let is_there = !buffers.is_empty();
            buffers.discard("/a.fs");
            is_there
        };
        assert_eq!(
            [after(Some("two")), after(Some("one")), after(Some("formatted")), after(None)],
            [false, true, false, false]
        );
    }

    #[test]
    fn a_new_mirror_takes_in_all_texts_and_no_saved_file() {
        let mut buffers = Buffers::default();
        buffers.put("/a.fs", 1, "one".to_owned()).unwrap();
        buffers.saved("/b.fs", Some("saved"));
        buffers.are_in(&buffers.due(), &["/a.fs".to_owned()]);
        buffers.begin_again();
        assert_eq!((text(&buffers, "/a.fs"), text(&buffers, "/b.fs")), (Some(Some("one".to_owned())), None));
    }
}
