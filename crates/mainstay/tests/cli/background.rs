//! A daemon in the background belongs to nobody: it outlives who started it, and begins as its user's login shell does.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::World;
use crate::support::bridged::Bridged;
use serde_json::json;

/// The fields of a process that tell whose it is, behind its name: state, parent, group, session.
fn relations(pid: i32) -> Option<(i32, i32, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields[1].parse().ok()?, fields[2].parse().ok()?, fields[3].parse().ok()?))
}

/// Kills a process, all that descend from it, and all of its group and session, as thoroughly as anybody can.
fn kill_all_of(root: i32) {
    let processes: BTreeMap<i32, (i32, i32, i32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, relations(pid)?)))
        .collect();
    let (_, group, session) = processes[&root];
    let descends = |mut pid: i32| {
        while let Some((parent, _, _)) = processes.get(&pid) {
            if pid == root {
                return true;
            }
            pid = *parent;
        }
        false
    };
    for (pid, (_, of_group, of_session)) in &processes {
        if *of_group == group || *of_session == session || descends(*pid) {
            let pid = rustix::process::Pid::from_raw(*pid).unwrap();
            // It may have ended with another.
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
        }
    }
}

#[test]
fn the_daemon_and_what_runs_in_it_outlive_the_client_that_started_it() {
    let world = World::new();
    let bridge = world.command();
    // As an agent starts it: a session and a group of its own, with the bridge as a child of its, which a file is left open for.
    let mut agent = Command::new("setsid");
    let left_open = world.work().join("left-open");
    agent
        .args(["sh", "-c", "exec 7>left-open; \"$0\" mcp; exit $?"])
        .arg(bridge.get_program())
        .current_dir(world.work());
    for (name, value) in bridge.get_envs() {
        match value {
            Some(value) => agent.env(name, value),
            None => agent.env_remove(name),
        };
    }
    let mut client = Bridged::started(agent);
    client.introduce();
    client.eval("let kept = 20");
    let before = world.events().len() as u64;
    let code = "printfn \"begun\"; System.Console.ReadLine()";
    client.begin_call("send_fsharp_code", json!({ "code": code }));
    let mut events = world.follow(before);
    let asked = events.wait_for("askRaised");

    let daemon = world.daemon_pid().unwrap();
    let (parent, group, session) = relations(daemon).unwrap();
    let child = i32::try_from(client.child.id()).unwrap();
    assert_ne!(parent, child);
    assert_ne!(session, relations(child).unwrap().2, "a session of its own");
    assert_eq!(group, session);
    assert_ne!(session, daemon, "and it can get no terminal");
    for stream in 0..3 {
        let file = std::fs::read_link(format!("/proc/{daemon}/fd/{stream}")).unwrap();
        assert_eq!(file.to_str(), Some("/dev/null"), "{stream}");
    }
    let open = std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap();
    let open: Vec<_> = open.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok()).collect();
    assert!(!open.contains(&left_open), "{open:?}");
    assert_eq!(std::fs::read_link(format!("/proc/{daemon}/cwd")).unwrap().to_str(), Some("/"));

    kill_all_of(child);
    client.child.wait().unwrap();
    assert_eq!(world.daemon_pid(), Some(daemon));
    let ask = asked["body"]["ask"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    let answered = world.run(["ask", "answer", &ask, "Ada"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    events.wait_for("evalCompleted");
    assert_eq!(world.eval("kept + 1")["value"], "21");
}

/// The environment of the daemon.
fn environment(world: &World) -> BTreeMap<String, String> {
    let bytes = std::fs::read(format!("/proc/{}/environ", world.daemon_pid().unwrap())).unwrap();
    let variables = String::from_utf8(bytes).unwrap();
    let variables = variables.split('\0').filter_map(|variable| variable.split_once('='));
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Starts the daemon as one would whose environment was filtered, with this shell and these startup files.
fn start(world: &World, shell: &str, files: &[(&str, &str)]) {
    for (name, text) in files {
        std::fs::write(world.work().join(name), text).unwrap();
    }
    let mut command = world.command();
    command
        .args(["-d", "--port", "0"])
        .env_clear()
        .env("MAINSTAY_HOME", world.home())
        .env("MAINSTAY_LOG", "debug")
        .env("HOME", world.work())
        .env("SHELL", shell)
        .env("PATH", "/of/whoever/came/first")
        .env("PASSWORD", "of whoever came first");
    // The files are looked for in its working folder, which is the user's home.
    let started = command.process_group(0).output().unwrap();
    assert!(started.status.success(), "{started:?}");
}

#[test]
fn a_daemon_begins_with_the_environment_of_the_login_shell() {
    let profile =
        "echo Welcome; export NUGET_PACKAGES=/of/the/profile\nexport PATH=\"/of/the/profile:$PATH\"\n";
    let bash = format!("{profile}. ~/.bashrc\n");
    let interactive =
        "case $- in *i*) ;; *) return ;; esac\nexport DOTNET_ROOT='/of/the rc'\nprintf 'noise=1\\0'\n";
    let fish = "echo Welcome\nif status is-login\n  set -gx NUGET_PACKAGES /of/the/profile\n  set -gx PATH /of/the/profile $PATH\nend\n\
                if status is-interactive\n  set -gx DOTNET_ROOT '/of/the rc'\n  printf 'noise=1\\0'\nend\n";
    let login =
        "echo Welcome; setenv NUGET_PACKAGES /of/the/profile\nsetenv PATH \"/of/the/profile:$PATH\"\n";
    let of_csh = "setenv DOTNET_ROOT '/of/the rc'\nprintf 'noise=1\\0'\n";
    for (shell, files, is_whole) in [
        ("/bin/bash", vec![(".bash_profile", bash.as_str()), (".bashrc", interactive)], true),
        ("/bin/sh", vec![(".profile", profile)], false),
        ("/bin/zsh", vec![(".zprofile", profile), (".zshrc", interactive)], true),
        ("/usr/bin/fish", vec![(".config/fish/config.fish", fish)], true),
        ("/bin/csh", vec![(".login", login), (".cshrc", of_csh)], true),
        ("/bin/tcsh", vec![(".login", login), (".tcshrc", of_csh)], true),
    ] {
        // These two are everywhere; the others are tried where they are.
        if !["/bin/bash", "/bin/sh"].contains(&shell) && !std::path::Path::new(shell).exists() {
            continue;
        }
        let world = World::new();
        std::fs::create_dir_all(world.work().join(".config/fish")).unwrap();
        start(&world, shell, &files);
        let found = environment(&world);
        let of = |name: &str| found.get(name).map(String::as_str);
        assert_eq!(of("NUGET_PACKAGES"), Some("/of/the/profile"), "{shell}");
        assert!(of("PATH").unwrap().starts_with("/of/the/profile:/"), "{shell}: {found:?}");
        assert!(!of("PATH").unwrap().contains("/of/whoever"), "{shell}: {found:?}");
        assert_eq!(of("DOTNET_ROOT"), is_whole.then_some("/of/the rc"), "{shell}");
        assert_eq!(of("MAINSTAY_LOG"), Some("debug"), "it is meant for the daemon");
        assert_eq!((of("PASSWORD"), of("noise")), (None, None), "{shell}");
    }
}

#[test]
fn a_login_shell_that_does_not_answer_is_left_and_that_is_said() {
    let world = World::new();
    std::fs::write(world.home().join("config.toml"), "[daemon]\nenvironment-ms = 200\n").unwrap();
    start(&world, "/bin/sh", &[(".profile", "sleep 600\n")]);
    assert_eq!(environment(&world)["PASSWORD"], "of whoever came first");
    let log = std::fs::read_to_string(world.home().join("logs/daemon.log")).unwrap();
    assert!(log.contains("/bin/sh: it had not answered after 200 ms"), "{log}");
    let mut doctor = world.command();
    doctor
        .arg("doctor")
        .env("MAINSTAY_ENVIRONMENT", "login-shell")
        .env("SHELL", "/bin/sh")
        .env("HOME", world.work());
    let doctor = doctor.output().unwrap();
    let said = String::from_utf8(doctor.stderr).unwrap();
    assert!(said.contains("/bin/sh: it had not answered after 200 ms"), "{said}");
}
