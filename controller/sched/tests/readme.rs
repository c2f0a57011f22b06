//! The page on profiles has all of them.

#[test]
fn every_profile_has_its_place() {
    let readme = include_str!("../README.md");
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| `")).collect();
    for name in edgeloom_sched::profile_names() {
        let named =
            |row: &&str| row.split(" | ").next().is_some_and(|cell| cell.contains(&format!("`{name}`")));
        assert!(rows.iter().any(named), "README.md lacks {name}");
    }
}
