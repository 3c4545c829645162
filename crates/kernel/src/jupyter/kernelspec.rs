//! Kernelspecs: the folders in which Jupyter looks for kernels, and what stands in them. Source: jupyter_core's search path and
//! jupyter_client's `kernelspec.py`, as their documentation has them. It is ours because `jupyter-zmq-client` does not split `JUPYTER_PATH` at colons,
//! and because a session looks with its creator's environment, not with the daemon's.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mainstay_model::{Error, SessionKind};
use mainstay_runner::Environment;
use serde::{Deserialize, Serialize};

/// Under which key of its metadata a kernelspec has what it says to Mainstay.
pub const METADATA: &str = "mainstay";
/// The file in an environment that Mainstay installed, once that is whole.
pub(super) const FINISHED: &str = "mainstay-finished";
/// The file that makes a folder a kernelspec.
const FILE: &str = "kernel.json";
/// The folders beside a project that hold its Python environment, by custom.
const ENVIRONMENTS: [&str; 2] = [".venv", "venv"];

/// The folders that may hold kernelspecs, what is found first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    folders: Vec<PathBuf>,
    /// Where programs are that kernelspecs name alone; this process's `PATH` where there is none.
    path: Option<OsString>,
}

impl Places {
    /// Those of this process's environment, with `own` for what Mainstay installed itself, and the environment of the project around
    /// `working_directory`.
    pub fn new(own: &Path, working_directory: Option<&Path>) -> Self {
        Self::of_session(&Environment::default(), own, working_directory)
    }

    /// The same, of a session whose creator has this in its environment.
    pub fn of_session(session: &Environment, own: &Path, working_directory: Option<&Path>) -> Self {
        let daemons = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let variable = |name: &str| session.variable(name).map(OsString::from).or_else(|| daemons(name));
        Self { path: variable("PATH"), ..Self::of(&variable, own, working_directory) }
    }

    /// Where the user's own kernelspecs are; none where the user has no folder.
    pub fn of_user() -> Option<PathBuf> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        users(&variable).map(|root| root.join("kernels"))
    }

    /// That of one environment alone: the folder it was installed in.
    pub fn of_environment(prefix: &Path) -> Self {
        Self { folders: vec![prefix.join("share/jupyter/kernels")], path: None }
    }

    /// Those of any environment: what is said explicitly, then what belongs to a project or an environment that is active, the user's,
    /// Mainstay's own, those of the environment that it is installed in, and the machine's.
    pub(crate) fn of(
        variable: &dyn Fn(&str) -> Option<OsString>,
        own: &Path,
        working_directory: Option<&Path>,
    ) -> Self {
        let listed = variable("JUPYTER_PATH").map(|list| env::split_paths(&list).collect::<Vec<_>>());
        let active =
            ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| variable(name)).map(PathBuf::from);
        let environments = working_directory.and_then(environment_of).into_iter().chain(active);
        let of_environments = environments.map(|prefix| prefix.join("share/jupyter"));
        let machine = ["/usr/local/share/jupyter", "/usr/share/jupyter"].map(PathBuf::from);
        let roots = listed
            .into_iter()
            .flatten()
            .chain(of_environments)
            .chain(users(variable))
            .chain(installed(own))
            .chain(environment_of_program().map(|prefix| prefix.join("share/jupyter")))
            .chain(machine);
        let mut folders = Vec::new();
        for folder in roots.map(|root| root.join("kernels")) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        Self { folders, path: None }
    }

    /// Reads all kernelspecs in these folders.
    pub fn kernelspecs(&self) -> Kernelspecs {
        let mut all = Kernelspecs::default();
        self.folders.iter().for_each(|folder| all.take_in(folder, self.path.as_deref()));
        all
    }
}

/// The Python environment that this program is installed in: that of `uvx --with ipykernel` is never active.
fn environment_of_program() -> Option<PathBuf> {
    let prefix = env::current_exe().ok()?.ancestors().nth(2)?.to_owned();
    prefix.join("pyvenv.cfg").is_file().then_some(prefix)
}

/// The Python environment of the project that a folder is in, by custom beside the project or above it. Code of it will run, so none counts that
/// anybody could have put there.
pub fn environment_of(folder: &Path) -> Option<PathBuf> {
    let environments = |folder: &Path| ENVIRONMENTS.map(|name| folder.join(name));
    let of_project = folder.ancestors().take_while(|folder| !is_shared(folder));
    of_project.flat_map(environments).find(|environment| environment.join("pyvenv.cfg").is_file())
}

/// Whether a folder is one like `/tmp`, in which everybody may write and nobody may remove what is another's. Mounted disks of other systems, where
/// all files are everybody's, are not meant.
fn is_shared(folder: &Path) -> bool {
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    folder.metadata().is_ok_and(|folder| folder.mode() & STICKY_AND_WRITABLE == STICKY_AND_WRITABLE)
}

/// The user's own folder.
fn users(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(folder) = variable("JUPYTER_DATA_DIR") {
        return Some(folder.into());
    }
    let home = variable("HOME").map(PathBuf::from)?;
    Some(match (cfg!(target_os = "macos"), variable("XDG_DATA_HOME")) {
        (true, _) => home.join("Library/Jupyter"),
        (false, Some(data)) => Path::new(&data).join("jupyter"),
        (false, None) => home.join(".local/share/jupyter"),
    })
}

/// The environments that Mainstay installed, each with its kernelspecs.
fn installed(own: &Path) -> Vec<PathBuf> {
    let mut environments: Vec<PathBuf> =
        sub_folders(own).filter(|environment| environment.join(FINISHED).is_file()).collect();
    environments.sort();
    environments.into_iter().map(|environment| environment.join("share/jupyter")).collect()
}

fn sub_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// How a kernel is asked to stop what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupt {
    /// By SIGINT to its process group.
    Signal,
    /// By a message on its control channel.
    Message,
}

/// A kernel that could be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kernelspec {
    /// What it is called: the name of its folder, in lower case.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// Its language, in lower case.
    pub language: String,
    /// Where it was found.
    pub folder: PathBuf,
    /// How it is started, with places for what is known then.
    pub argv: Vec<String>,
    /// What it finds in its environment besides, likewise.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How it is interrupted.
    pub interrupt: Interrupt,
    /// Its program, where that is there.
    pub program: Option<PathBuf>,
}

/// A kernelspec as its file has it.
#[derive(Debug, Deserialize)]
struct KernelspecFile {
    argv: Vec<String>,
    display_name: Option<String>,
    language: Option<String>,
    interrupt_mode: Option<Interrupt>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    metadata: BTreeMap<String, serde_json::Value>,
}

/// A kernelspec that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The path of the kernelspec's file.
    pub path: PathBuf,
    /// The reason why the file cannot be read.
    pub reason: String,
}

/// All that were found, in the order in which they count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kernelspecs {
    /// The kernelspecs, each name once.
    pub found: Vec<Kernelspec>,
    /// What is no kernelspec.
    pub unreadable: Vec<Unreadable>,
}

impl Kernelspecs {
    fn take_in(&mut self, folder: &Path, path: Option<&OsStr>) {
        let mut folders: Vec<PathBuf> =
            sub_folders(folder).filter(|folder| folder.join(FILE).is_file()).collect();
        folders.sort();
        for folder in folders {
            match read(&folder, path) {
                Ok(Some(spec)) if self.found.iter().all(|found| found.name != spec.name) => {
                    self.found.push(spec)
                }
                Ok(_) => {}
                Err(reason) => self.unreadable.push(Unreadable { path: folder.join(FILE), reason }),
            }
        }
    }

    /// The one that a kind of session means: that of its name, else the first of its language whose program is there.
    ///
    /// # Errors
    /// [`Error::KernelUnknown`] where there is none, [`Error::KernelUnavailable`] where its program is gone.
    pub fn choose(&self, kind: &SessionKind) -> Result<&Kernelspec, Error> {
        let wanted = kind.as_str().to_lowercase();
        let named = self.found.iter().find(|spec| spec.name == wanted);
        let of_language = || self.found.iter().filter(|spec| spec.language == wanted);
        let found = named
            .or_else(|| of_language().find(|spec| spec.program.is_some()))
            .or_else(|| of_language().next())
            .ok_or_else(|| Error::KernelUnknown { kind: kind.clone() })?;
        match &found.program {
            Some(_) => Ok(found),
            None => Err(found.unavailable()),
        }
    }
}

impl Kernelspec {
    /// The program and its arguments, for a connection file.
    ///
    /// # Errors
    /// [`Error::KernelUnavailable`] where the program is not there.
    pub fn command(&self, connection_file: &Path) -> Result<(PathBuf, Vec<OsString>), Error> {
        let program = self.program.clone().ok_or_else(|| self.unavailable())?;
        let filled = |argument: &String| {
            let text = argument
                .replace("{connection_file}", &connection_file.display().to_string())
                .replace("{resource_dir}", &self.folder.display().to_string());
            OsString::from(text)
        };
        Ok((program, self.argv.iter().skip(1).map(filled).collect()))
    }

    /// What the kernel finds in its environment over the daemon's own: what the session's creator has in its own, and what is said here, in
    /// which variables of both are filled in.
    pub fn environment(&self, session: &Environment) -> Vec<(OsString, OsString)> {
        let variable = |name: &str| session.variable(name).map(str::to_owned).or_else(|| env::var(name).ok());
        let filled = |(name, value): (&String, &String)| {
            (OsString::from(name), OsString::from(expanded(value, &variable)))
        };
        let sessions = session.variables().map(|(name, value)| (name.into(), value.into()));
        sessions.chain(self.env.iter().map(filled)).collect()
    }

    /// Why it cannot be started; none where it can.
    pub fn missing(&self) -> Option<String> {
        self.program.is_none().then(|| self.is_gone())
    }

    fn is_gone(&self) -> String {
        let program = self.argv.first().map(String::as_str).unwrap_or_default();
        format!("`{program}`, which the kernelspec {} names, is not there", self.folder.join(FILE).display())
    }

    fn unavailable(&self) -> Error {
        Error::KernelUnavailable { reason: self.is_gone() }
    }
}

/// Text with the `${variables}` that there are filled in.
fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        match after.split_once('}').and_then(|(name, end)| Some((variable(name)?, end))) {
            Some((value, end)) => {
                filled.push_str(&value);
                rest = end;
            }
            None => {
                filled.push_str("${");
                rest = after;
            }
        }
    }
    filled + rest
}

/// None where it is one of Mainstay's own, which would start a session to serve a session.
fn read(folder: &Path, path: Option<&OsStr>) -> Result<Option<Kernelspec>, String> {
    let text = std::fs::read_to_string(folder.join(FILE)).map_err(|error| error.to_string())?;
    let written: KernelspecFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let KernelspecFile { argv, display_name, language, interrupt_mode, env, metadata } = written;
    if metadata.contains_key(METADATA) {
        return Ok(None);
    }
    let name = folder.file_name().and_then(|name| name.to_str()).ok_or("its folder's name is no text")?;
    let kind = SessionKind::new(name.to_lowercase()).map_err(|error| error.to_string())?;
    let program = argv.first().ok_or("its `argv` is empty")?;
    Ok(Some(Kernelspec {
        name: kind.as_str().to_owned(),
        display_name: display_name.unwrap_or_else(|| name.to_owned()),
        language: language.unwrap_or_default().to_lowercase(),
        program: program_of(program, folder, path),
        folder: folder.to_owned(),
        interrupt: interrupt_mode.unwrap_or_else(|| usual_interrupt(program)),
        argv,
        env,
    }))
}

/// How kernels are interrupted that do not say how. Deno ends by a signal, and takes a message.
fn usual_interrupt(program: &str) -> Interrupt {
    match Path::new(program).file_name().and_then(|name| name.to_str()) {
        Some("deno") => Interrupt::Message,
        Some(_) | None => Interrupt::Signal,
    }
}

/// Where a program is: a path, or a name that is looked for in the environment that the kernelspec is of, and in `PATH`.
fn program_of(name: &str, folder: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    let name = name.replace("{resource_dir}", &folder.display().to_string());
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    // A kernelspec lies in `share/jupyter/kernels/NAME` of its environment.
    let environment = folder.ancestors().nth(4).map(|prefix| prefix.join("bin"));
    let path = path.map(OsStr::to_owned).or_else(|| env::var_os("PATH")).unwrap_or_default();
    let folders = environment.into_iter().chain(env::split_paths(&path));
    folders.map(|folder| folder.join(&name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    use super::*;

    fn place(root: &Path, name: &str, spec: &Value) {
        let folder = root.join("kernels").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(FILE), spec.to_string()).unwrap();
    }

    fn spec(program: &str, language: &str) -> Value {
        json!({ "argv": [program, "-f", "{connection_file}"], "display_name": "It", "language": language })
    }

    fn kind(name: &str) -> SessionKind {
        SessionKind::new(name).unwrap()
    }

    #[test]
    fn folders_come_in_the_order_in_which_they_count() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["own/python", "own/cut-off", "lab/.venv", "lab/src"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["lab/.venv/pyvenv.cfg", "own/python/mainstay-finished"] {
            std::fs::write(at(file), "").unwrap();
        }
        let both = env::join_paths([at("first"), at("second")]).unwrap();
        let variables = |name: &str| match name {
            "JUPYTER_PATH" => Some(both.clone()),
            "VIRTUAL_ENV" => Some(at("active").into()),
            "HOME" => Some(at("home").into()),
            _ => None,
        };
        let places = Places::of(&variables, &at("own"), Some(&at("lab/src")));
        let relative = |path: &PathBuf| {
            path.strip_prefix(root.path()).unwrap_or(path).parent().unwrap().display().to_string()
        };
        let folders: Vec<_> = places.folders.iter().map(relative).collect();
        assert_eq!(
            folders,
            [
                "first",
                "second",
                "lab/.venv/share/jupyter",
                "active/share/jupyter",
                if cfg!(target_os = "macos") { "home/Library/Jupyter" } else { "home/.local/share/jupyter" },
                "own/python/share/jupyter",
                "/usr/local/share/jupyter",
                "/usr/share/jupyter",
            ]
        );
    }

    #[test]
    fn an_environment_in_a_folder_that_all_may_write_in_is_not_the_projects() {
        let root = tempfile::tempdir().unwrap();
        let (shared, environment) = (root.path().join("shared"), root.path().join("shared/.venv"));
        let project = shared.join("project/src");
        for folder in [&environment, &project] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(environment.join("pyvenv.cfg"), "").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
            environment_of(&project)
        };
        assert_eq!(with_mode(0o1777), None);
        assert_eq!(
            with_mode(0o777),
            Some(environment.clone()),
            "on a mounted disk every folder is like that"
        );
    }

    #[test]
    fn a_kind_is_a_name_or_else_a_language_whose_program_is_there() {
        let root = tempfile::tempdir().unwrap();
        place(root.path(), "Gone", &spec("/nowhere/python", "Python"));
        place(root.path(), "python3", &spec("sh", "python"));
        place(root.path(), "broken", &json!({ "argv": "sh" }));
        place(root.path(), "ours", &json!({ "argv": ["sh"], "metadata": { METADATA: {} } }));
        let all =
            Places { folders: vec![root.path().join("kernels"), root.path().join("kernels")], path: None }
                .kernelspecs();
        let names: Vec<_> = all.found.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["gone", "python3"]);
        assert!(all.unreadable[0].path.ends_with("broken/kernel.json"));
        assert_eq!(all.choose(&kind("python")).unwrap().name, "python3");
        assert_eq!(all.choose(&kind("Python3")).unwrap().name, "python3");
        assert!(matches!(all.choose(&kind("gone")), Err(Error::KernelUnavailable { .. })));
        assert_eq!(all.choose(&kind("ruby")), Err(Error::KernelUnknown { kind: kind("ruby") }));
    }

    #[test]
    fn a_command_has_its_places_filled_in() {
        let root = tempfile::tempdir().unwrap();
        let written = json!({
            "argv": ["sh", "{resource_dir}/run", "--at={connection_file}"],
            "interrupt_mode": "message",
        });
        place(root.path(), "it", &written);
        let all = Places { folders: vec![root.path().join("kernels")], path: None }.kernelspecs();
        let (_, arguments) = all.found[0].command(Path::new("/run/c.json")).unwrap();
        let run = root.path().join("kernels/it/run");
        assert_eq!(arguments, [run.into_os_string(), OsString::from("--at=/run/c.json")]);
        assert_eq!(all.found[0].interrupt, Interrupt::Message);
    }

    #[test]
    fn a_program_is_first_that_of_its_environment() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("bin")).unwrap();
        std::fs::write(root.path().join("bin/sh"), "").unwrap();
        place(&root.path().join("share/jupyter"), "it", &spec("sh", "shell"));
        let all =
            Places { folders: vec![root.path().join("share/jupyter/kernels")], path: None }.kernelspecs();
        assert_eq!(all.found[0].program.as_deref(), Some(root.path().join("bin/sh").as_path()));
    }

    #[test]
    fn variables_are_filled_in_where_there_are_any() {
        let variable = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        for (text, filled) in [("${HOME}/x:${HOME}", "/h/x:/h"), ("${NONE}-${", "${NONE}-${"), ("", "")] {
            assert_eq!(expanded(text, &variable), filled);
        }
    }
}
