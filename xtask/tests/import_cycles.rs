//! No import cycle among the files of a crate has more than [`LARGEST`] files: the files of a cycle can only be understood, moved and
//! tested together.
//!
//! A file imports another where it names one of its items, by `use` or by a path. A re-export (`pub use` of a module below) is a signpost:
//! a file that names the item through it imports the file that the signpost leads to. Code that only tests have does not count.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// The most files that a cycle may have.
const LARGEST: usize = 6;

/// The cycles that may be larger: the root file of their crate, one of their files, and how many they have. ARCHITECTURE.md says why the files
/// of `model` refer to each other.
const LEFT: &[(&str, &str, usize)] = &[("crates/model/src/lib.rs", "command/mod.rs", 9)];

#[test]
fn a_cycle_is_found_through_signposts_and_macros_and_not_through_tests() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use b::Second; macro_rules! m { () => {} }"),
        (
            "a.rs",
            "use crate::Second; pub(crate) struct First { pub(super) a: u8 } #[cfg(test)] mod tests { use crate::d::Last; }",
        ),
        ("b/mod.rs", "mod below; pub struct Second; fn f() { m!(super::c::third()) }"),
        ("b/below.rs", "use super::*;"),
        ("c.rs", "pub fn third() -> super::a::First {}"),
        ("d.rs", "use super::{a::First, c}; struct Last;"),
    ];
    assert_eq!(cycles_of(&files), ["a.rs → b/mod.rs; b/mod.rs → c.rs; c.rs → a.rs"]);
}

#[test]
fn a_root_file_that_has_what_its_modules_need_is_in_a_cycle_with_them() {
    let files = [("lib.rs", "mod a; use a::A; struct B;"), ("a.rs", "use super::B; struct A;")];
    assert_eq!(cycles_of(&files), ["a.rs → lib.rs; lib.rs → a.rs"]);
}

#[test]
fn a_variable_with_the_name_of_a_module_imports_nothing() {
    let files = [("lib.rs", "mod a; fn f(a: u8) -> u8 { a }"), ("a.rs", "use super::f;")];
    assert_eq!(cycles_of(&files), [""; 0]);
}

/// Returns the cycles of a crate of these files, in words.
fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let words = |(file, imports): (&str, Vec<&str>)| format!("{file} → {}", imports.join(", "));
    let read = Crate::read(&folder.path().join("lib.rs"));
    let cycles = read.cycles().into_iter();
    cycles.map(|cycle| cycle.into_iter().map(words).collect::<Vec<_>>().join("; ")).collect()
}

#[test]
fn no_import_cycle_has_more_files_than_a_handful() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut wrong = Vec::new();
    let mut left: BTreeSet<_> = LEFT.iter().collect();
    for entry in crate_roots(root) {
        let name = entry.strip_prefix(root).unwrap().display().to_string();
        let read = Crate::read(&entry);
        for cycle in read.cycles().into_iter().filter(|cycle| cycle.len() > LARGEST) {
            let is_known = |(of, file, _): &&(&str, &str, usize)| *of == name && cycle.contains_key(file);
            let known = LEFT.iter().find(is_known);
            left.retain(|one| known != Some(*one));
            if known.is_none_or(|(.., files)| cycle.len() > *files) {
                wrong.push(format!("{name} has an import cycle of {} files:", cycle.len()));
                wrong.extend(cycle.iter().map(|(file, of)| format!("  {file} → {}", of.join(", "))));
            }
        }
    }
    assert!(wrong.is_empty(), "move what files share into a file of its own:\n{}", wrong.join("\n"));
    assert!(left.is_empty(), "these cycles are cut: take them out of `LEFT`: {left:?}");
}

/// Returns the root files of all crates, in order.
fn crate_roots(root: &Path) -> Vec<PathBuf> {
    let folders = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let roots = folders.flat_map(|folder| ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name)));
    let mut roots: Vec<_> = roots.filter(|entry| entry.is_file()).collect();
    roots.sort();
    roots
}

/// The names of a module, from the crate's root.
type ModulePath = Vec<String>;

/// What stands in a module.
#[derive(Default)]
struct Module {
    /// The index of its file.
    file: usize,
    /// The re-exports of modules below, by name: a path that starts with `crate`, `self` or `super`, or at a module below.
    signposts: BTreeMap<String, ModulePath>,
    /// The paths whose items are all re-exported.
    globs: Vec<ModulePath>,
    /// The names of its own items.
    items: BTreeSet<String>,
    /// The paths by which its code names items, with the `use` declarations.
    paths: Vec<ModulePath>,
}

/// The modules and files of a crate.
#[derive(Default)]
struct Crate {
    files: Vec<String>,
    modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    /// Reads a crate from its root file.
    fn read(root: &Path) -> Self {
        let mut read = Self::default();
        let folder = root.parent().unwrap();
        read.read_file(folder, root, folder, Vec::new());
        read
    }

    /// Reads a file and the modules below it, whose files are in `below`.
    fn read_file(&mut self, folder: &Path, file: &Path, below: &Path, module: ModulePath) {
        self.files.push(file.strip_prefix(folder).unwrap().display().to_string());
        let index = self.files.len() - 1;
        let items = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap().items;
        self.read_items(folder, (index, below), module, &items);
    }

    fn read_items(&mut self, folder: &Path, (file, below): (usize, &Path), path: ModulePath, items: &[Item]) {
        let mut module = Module { file, ..Module::default() };
        for item in items.iter().filter(|item| !is_of_tests(attributes(item))) {
            match item {
                Item::Mod(declared) => {
                    let name = declared.ident.to_string();
                    let path = [path.clone(), vec![name.clone()]].concat();
                    let below = below.join(&name);
                    match &declared.content {
                        Some((_, items)) => self.read_items(folder, (file, &below), path, items),
                        None => self.read_file(folder, &file_of(&below, declared), &below, path),
                    }
                }
                Item::Use(used) => module.take_use(used),
                item => {
                    module.items.extend(name_of(item));
                    Names(&mut module).visit_item(item);
                }
            }
        }
        self.modules.insert(path, module);
    }

    /// Returns the import cycles: each has its files, in order, with what they import of each other.
    fn cycles(&self) -> Vec<BTreeMap<&str, Vec<&str>>> {
        let imports = self.imports();
        let reached: Vec<_> = (0..imports.len()).map(|file| reached_from(file, &imports)).collect();
        let mut is_told = BTreeSet::new();
        let mut cycles = Vec::new();
        for file in 0..imports.len() {
            let cycle: BTreeSet<_> =
                reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
            if cycle.contains(&file) && is_told.insert(file) {
                is_told.extend(cycle.iter().copied());
                let names =
                    |files: &BTreeSet<usize>| files.iter().map(|file| self.files[*file].as_str()).collect();
                let inside = |file: &usize| imports[*file].intersection(&cycle).copied().collect();
                cycles.push(
                    cycle.iter().map(|file| (self.files[*file].as_str(), names(&inside(file)))).collect(),
                );
            }
        }
        cycles
    }

    /// Returns the other files that each file imports.
    fn imports(&self) -> Vec<BTreeSet<usize>> {
        let mut imports = vec![BTreeSet::new(); self.files.len()];
        for (path, module) in &self.modules {
            let named = module.paths.iter().filter_map(|named| self.file_of(path, named, 0));
            imports[module.file].extend(named.filter(|file| *file != module.file));
        }
        imports
    }

    /// Returns the file that has what a path in a module names; none where that is in another crate.
    fn file_of(&self, from: &ModulePath, named: &[String], depth: usize) -> Option<usize> {
        let mut at = from.clone();
        let mut rest = named;
        match named.first()?.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => drop(at.pop()),
            first => {
                let is_below = self.modules.contains_key(&[at.clone(), vec![first.to_owned()]].concat());
                return is_below.then(|| self.item_in(at, named, depth)).flatten();
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|name| name == "super") {
            at.pop();
            rest = &rest[1..];
        }
        self.item_in(at, rest, depth)
    }

    /// Returns the file that has what a path names that starts in a module.
    fn item_in(&self, mut at: ModulePath, mut rest: &[String], depth: usize) -> Option<usize> {
        while let Some((name, others)) = rest.split_first() {
            let below = [at.clone(), vec![name.clone()]].concat();
            if self.modules.contains_key(&below) {
                (at, rest) = (below, others);
                continue;
            }
            let module = self.modules.get(&at)?;
            if depth < 8 && !module.items.contains(name) {
                if let Some(signpost) = module.signposts.get(name) {
                    return self.file_of(&at, signpost, depth + 1);
                }
                let through = |glob: &ModulePath| {
                    let named = [glob.clone(), vec![name.clone()]].concat();
                    self.file_of(&at, &named, depth + 1).filter(|file| *file != module.file)
                };
                if let Some(file) = module.globs.iter().find_map(through) {
                    return Some(file);
                }
            }
            break;
        }
        self.modules.get(&at).map(|module| module.file)
    }
}

impl Module {
    fn take_use(&mut self, used: &ItemUse) {
        let is_signpost = !matches!(used.vis, Visibility::Inherited);
        for (path, name) in leaves(&used.tree, Vec::new()) {
            match (is_signpost && !path.starts_with(&["super".to_owned()]), name) {
                (true, Some(name)) => drop(self.signposts.insert(name, path)),
                (true, None) => self.globs.push(path),
                (false, _) => self.paths.push(path),
            }
        }
    }
}

/// Collects the paths that code names.
struct Names<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A lone name is a variable or what a `use` brought in, never a module.
        if path.segments.len() > 1 {
            self.0.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {
        // Who may see an item is no import.
    }

    fn visit_item_use(&mut self, used: &'ast ItemUse) {
        self.0.paths.extend(leaves(&used.tree, Vec::new()).into_iter().map(|(path, _)| path));
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.take_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

impl Names<'_> {
    /// Collects the paths among tokens: names with `::` between them.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let mut path = ModulePath::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.take(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    colons = 0;
                    self.take_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
            }
        }
        self.take(path);
    }

    /// Takes a path of tokens; a lone `crate` or `super` says who may see an item.
    fn take(&mut self, path: ModulePath) {
        if path.len() > 1 {
            self.0.paths.push(path);
        }
    }
}

/// Returns the paths of a `use` tree, each with the name that it brings in; none for all names.
fn leaves(tree: &UseTree, before: ModulePath) -> Vec<(ModulePath, Option<String>)> {
    let with = |name: &syn::Ident| [before.clone(), vec![name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, with(&path.ident)),
        UseTree::Name(name) if name.ident == "self" => vec![(before.clone(), before.last().cloned())],
        UseTree::Name(name) => vec![(with(&name.ident), Some(name.ident.to_string()))],
        UseTree::Rename(renamed) => vec![(with(&renamed.ident), Some(renamed.rename.to_string()))],
        UseTree::Glob(_) => vec![(before, None)],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(tree, before.clone())).collect(),
    }
}

/// Returns every file that one imports, at however many removes.
fn reached_from(file: usize, imports: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![file];
    while let Some(file) = next.pop() {
        next.extend(imports[file].iter().copied().filter(|imported| reached.insert(*imported)));
    }
    reached
}

/// Returns the file of a module that is declared: the one that its `path` attribute names, `name.rs` or `name/mod.rs`.
fn file_of(below: &Path, declared: &ItemMod) -> PathBuf {
    let named = declared.attrs.iter().find(|attribute| attribute.path().is_ident("path"));
    assert!(named.is_none(), "a module with a path of its own: teach this test to find it");
    let file = below.with_extension("rs");
    if file.is_file() { file } else { below.join("mod.rs") }
}

/// Whether an item is there for tests only.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
        attribute.path().is_ident("cfg") && condition.is_ok_and(|condition| condition == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
