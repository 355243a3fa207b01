//! The help of the program, with its verbs listed by task. clap lists subcommands in one group, so
//! the list is a part of the help template.

use clap::Command;
use std::fmt::Write as _;

/// The verbs by task, in the order of their use.
const TASKS: [(&str, &[&str]); 6] = [
    ("Start", &["demo", "sandbox", "new", "init", "learn", "decide", "pack"]),
    ("Write mappings", &["check", "test", "fmt", "explain", "report", "replay", "schema", "lsp"]),
    ("Run", &["serve", "key", "events", "notices", "archive"]),
    ("Migrate", &["phase", "rollout", "diff", "usage", "brownout"]),
    ("Clients", &["client", "unknown"]),
    ("Examine", &["status", "doctor", "requests", "capture", "reference", "completions", "man"]),
];

/// Sets the help template. The names and descriptions are those of the subcommands.
pub(super) fn by_task(command: Command) -> Command {
    let styles = command.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let width = command.get_subcommands().map(|verb| verb.get_name().len()).max().unwrap_or_default();
    let mut list = String::new();
    for (name, verbs) in TASKS {
        let _ = writeln!(list, "{header}{name}:{header:#}");
        // A build without the sandbox lacks some verbs.
        for verb in verbs.iter().filter_map(|verb| command.find_subcommand(verb)) {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {literal}{:<width$}{literal:#}  {about}", verb.get_name());
        }
        list.push('\n');
    }
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\
         {header}Options:{header:#}\n{{options}}\n\n\
         `switchback VERB --help` describes a verb.{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    // Without the sandbox, its verbs are missing.
    #[cfg(feature = "sandbox")]
    #[test]
    fn each_verb_belongs_to_one_task() {
        let mut listed: Vec<&str> = TASKS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        listed.sort_unstable();
        let command = crate::cli::Cli::command();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
    }

    #[test]
    fn the_help_lists_the_tasks_with_the_descriptions_of_the_verbs() {
        let help = by_task(crate::cli::Cli::command()).render_help().to_string();
        let places: Vec<usize> =
            TASKS.iter().filter_map(|(name, _)| help.find(&format!("{name}:\n"))).collect();
        assert!(places.len() == TASKS.len() && places.is_sorted(), "{help}");
        for part in ["  status       Print one screen", "Options:\n", "-V, --version"] {
            assert!(help.contains(part), "{part}: {help}");
        }
        assert!(!help.contains("Commands:"), "{help}");
    }
}
