//! Projects in the order in which they are built and loaded: each after those it refers to.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use mainstay_model::Error;

use super::document::invalid;

/// How many projects may refer to one another in a row.
const LONGEST_CHAIN: usize = 128;

/// `roots` and all they refer to, each once and after those it refers to.
pub(super) fn dependencies_first<'a>(
    roots: &'a [PathBuf],
    references: &dyn Fn(&Path) -> &'a [PathBuf],
) -> Result<Vec<&'a Path>, Error> {
    let mut walk = Walk { references, under_way: Vec::new(), done: HashSet::new(), ordered: Vec::new() };
    for root in roots {
        walk.visit(root)?;
    }
    Ok(walk.ordered)
}

struct Walk<'a, 'f> {
    references: &'f dyn Fn(&Path) -> &'a [PathBuf],
    under_way: Vec<&'a Path>,
    done: HashSet<&'a Path>,
    ordered: Vec<&'a Path>,
}

impl<'a> Walk<'a, '_> {
    fn visit(&mut self, path: &'a Path) -> Result<(), Error> {
        if self.done.contains(path) {
            return Ok(());
        }
        if self.under_way.contains(&path) {
            return Err(invalid(path, "it refers to itself, by way of the projects it refers to"));
        }
        if self.under_way.len() >= LONGEST_CHAIN {
            return Err(invalid(
                path,
                format!("more than {LONGEST_CHAIN} projects refer to one another in a row"),
            ));
        }
        self.under_way.push(path);
        for other in (self.references)(path) {
            self.visit(other)?;
        }
        self.under_way.pop();
        self.done.insert(path);
        self.ordered.push(path);
        Ok(())
    }
}
