//! What the README promises stands in the tree.

use std::path::Path;

#[test]
fn the_eight_files_from_http_to_the_kernel_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let section = readme.split("## From HTTP to the kernel").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let numbered = section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let files: Vec<&str> = numbered.map(|line| line.split('`').nth(1).unwrap()).collect();
    assert_eq!(files.len(), 8, "{files:?}");
    for file in files {
        assert!(root.join(file).is_file(), "{file} is gone");
    }
}

#[test]
fn the_readme_begins_with_what_is_needed_and_two_commands() {
    let readme = include_str!("../../README.md");
    assert!(readme.lines().next().unwrap().starts_with("Needs Debian 12, root, Rust"));
    let commands = readme.split("```").nth(1).unwrap();
    let commands: Vec<&str> = commands.lines().filter(|line| line.starts_with("cargo ")).collect();
    assert!(commands[0].starts_with("cargo lab demo") && commands[1].starts_with("cargo test --workspace"));
    assert_eq!(commands.len(), 2);
}
