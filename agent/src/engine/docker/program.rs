//! The image of the tests: one static program, compiled here and imported into their Docker.
//!
//! Tests of the whole program include this file: it names no other part of the agent.

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{Docker as Client, body_full};
use edgeloom_common::desired::ImageRef;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A task's program: says something, and its secret if it has one, then waits for SIGTERM, or ends with the code it
/// is given, after it has taken so many MiB and burnt so many milliseconds.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void end(int signal) { (void)signal; _exit(0); }
int main(int count, char **words) {
    signal(SIGTERM, end);
    puts("said once");
    char secret[64] = "";
    FILE *file = fopen("/run/secrets/password", "r");
    if (file && fgets(secret, sizeof secret, file)) printf("secret %s\n", secret);
    if (file && (fopen("/run/secrets/other", "w") || fopen("/run/secrets/password", "a"))) puts("writable");
    if (file) puts("tried to write");
    fflush(stdout);
    if (count > 3) {
        memset(malloc((size_t)atoi(words[3]) << 20), 1, (size_t)atoi(words[3]) << 20);
        puts("memory taken");
        fflush(stdout);
    }
    if (count > 2) while (clock() / (CLOCKS_PER_SEC / 1000) < atoi(words[2])) {}
    if (count > 1) return atoi(words[1]);
    for (;;) pause();
}
"#;

/// Imports an image with the program and returns its id as an image without repository.
pub(crate) async fn import(client: &Client, folder: &Path) -> ImageRef {
    let mut archive = tar::Builder::new(Vec::new());
    archive.append_path_with_name(compile(folder), "app").unwrap();
    let options = CreateImageOptionsBuilder::new().from_src("-").build();
    let body = body_full(archive.into_inner().unwrap().into());
    let lines: Vec<_> = client.create_image(Some(options), Some(body), None).collect().await;
    let id = lines
        .into_iter()
        .find_map(|line| line.unwrap().status.filter(|status| status.starts_with("sha256:")));
    ImageRef { repository: String::new(), digest: id.unwrap(), name: "app".to_owned() }
}

fn compile(directory: &Path) -> PathBuf {
    let (source, program) = (directory.join("app.c"), directory.join("app"));
    std::fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).status().unwrap();
    assert!(status.success(), "cc makes a static program");
    program
}
