//! The pack `messaging`, compiled into the program. It serves when `mapping` is not configured. A
//! test compares the list with the folder.

use switchback_compiler::mapping::load::PackSource;

/// The name of the built-in pack, shown in place of a folder.
pub const BUILT_IN: &str = "built in";

macro_rules! files {
    ($($path:literal)*) => {
        [$(($path, include_bytes!(concat!("../../mappings/messaging/", $path)).as_slice())),*]
    };
}

/// Returns the files of the built-in pack.
pub fn source() -> PackSource {
    let files = files![
        "agents.examples.map.yaml"
        "agents.map.yaml"
        "chats.examples.map.yaml"
        "chats.map.yaml"
        "contacts.examples.map.yaml"
        "contacts.map.yaml"
        "contracts/v2.openapi.yaml"
        "contracts/v3.openapi.yaml"
        "flows.examples.map.yaml"
        "flows.map.yaml"
        "gateway.examples.map.yaml"
        "gateway.map.yaml"
        "messages.examples.map.yaml"
        "messages.map.yaml"
        "pack.yaml"
    ];
    PackSource::from_files(files.iter().map(|(path, bytes)| ((*path).to_owned(), *bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_built_in_pack_is_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings/messaging");
        let names =
            |source: &PackSource| source.files().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let on_disk = PackSource::from_dir(&folder).expect("the sources are here when tests run");
        assert_eq!(names(&source()), names(&on_disk));
        assert!(source().files() == on_disk.files(), "a file differs");
    }
}
