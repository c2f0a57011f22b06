//! The command line while the controller goes away and comes back: a server of the test's own plays the controller,
//! one scripted answer a connection.

use edgeloom_common::view::{JobState, JobView, NodeList};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread::JoinHandle;

/// What a request has to begin with, and the bytes that answer it; the connection ends after them.
type Scene = (&'static str, Vec<u8>);

fn play(scenes: Vec<Scene>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let playing = std::thread::spawn(move || {
        for (expected, answer) in scenes {
            let mut stream = listener.accept().unwrap().0;
            let asked = head(&mut stream);
            assert!(asked.starts_with(expected), "{asked:?} instead of {expected:?}");
            stream.write_all(&answer).unwrap();
        }
    });
    (server, playing)
}

/// Reads a request to its end, so that the connection is not reset.
fn head(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    while !text.contains("\r\n\r\n") {
        let read = stream.read(&mut chunk).unwrap();
        text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut left: usize = length.map_or(0, |length| length.parse().unwrap());
    left -= text.split_once("\r\n\r\n").unwrap().1.len();
    while left > 0 {
        left -= stream.read(&mut chunk).unwrap();
    }
    text
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

fn not_ready() -> Vec<u8> {
    let problem = json!({
        "type": "controller.not-ready", "title": "Not ready", "status": 503, "detail": "", "problems": []
    });
    answer("503 Service Unavailable", &problem.to_string())
}

fn batch(state: JobState) -> Vec<u8> {
    let text = json!({
        "name": "sweep", "state": state, "profile": "edgeloom", "reason": "", "tasks": [], "flows": [], "notes": [],
        "batch": { "tasks": 2, "succeeded": 1, "failed": 0, "skipped": 0, "running": 1, "waiting": 0, "placed": 1 },
    });
    let view: JobView = serde_json::from_value(text).unwrap();
    answer("200 OK", &serde_json::to_string(&view).unwrap())
}

/// A chunked answer that ends in the middle of a line, or whole.
fn chunks(texts: &[&str], whole: bool) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for text in texts {
        bytes.extend(format!("{:x}\r\n{text}\r\n", text.len()).into_bytes());
    }
    bytes.extend_from_slice(if whole { b"0\r\n\r\n" } else { b"ff\r\n2026" });
    bytes
}

fn edgeloom(server: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_edgeloom"))
        .args(arguments)
        .env("EDGELOOM_SERVER", server)
        .env("EDGELOOM_CONTEXT", "/does/not/exist")
        .env_remove("EDGELOOM_TOKEN")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// From the post to this end, with everything in between that a restart does to who asks.
fn waited(last: Vec<Scene>) -> Output {
    let document = tempfile::NamedTempFile::new().unwrap();
    let mut scenes = vec![
        ("POST /v1/jobs ", batch(JobState::Running)),
        ("GET /v1/jobs/sweep ", batch(JobState::Running)),
        ("GET /v1/jobs/sweep ", Vec::new()),
        ("GET /v1/jobs/sweep ", b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{".to_vec()),
        ("GET /v1/jobs/sweep ", not_ready()),
    ];
    scenes.extend(last);
    let (server, playing) = play(scenes);
    let output = edgeloom(&server, &["run", "--wait", &document.path().display().to_string()]);
    playing.join().unwrap();
    output
}

#[test]
fn who_waits_for_a_batch_outlasts_a_restart_and_gets_its_outcome() {
    let done = waited(vec![("GET /v1/jobs/sweep ", batch(JobState::Succeeded))]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stderr);
    assert_eq!(said.matches("the controller is asked again").count(), 1, "{said}");
    assert_eq!(said.matches("the controller answers again").count(), 1, "{said}");
    let failed = waited(vec![("GET /v1/jobs/sweep ", batch(JobState::Failed))]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    assert!(text(&failed.stderr).contains("job sweep is over"), "{}", text(&failed.stderr));
}

#[test]
fn a_refusal_ends_the_waiting() {
    let problem = json!({
        "type": "access.denied", "title": "Denied", "status": 403, "detail": "no", "problems": []
    });
    let refused = waited(vec![("GET /v1/jobs/sweep ", answer("403 Forbidden", &problem.to_string()))]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("Denied"));
}

#[test]
fn a_followed_log_goes_on_where_it_was() {
    let line = |second: u32, text: &str| format!("a | 2026-11-22T06:00:0{second}.000000001Z {text}\n");
    let (first, second, third) = (line(1, "one"), line(2, "two"), line(3, "three"));
    let nodes = serde_json::to_string(&NodeList { nodes: vec![] }).unwrap();
    let (server, playing) = play(vec![
        ("GET /v1/jobs/sweep/logs?follow=true&tail=9&timestamps=true ", chunks(&[&first, &second], false)),
        ("GET /v1/jobs/sweep ", Vec::new()),
        ("GET /v1/jobs/sweep ", batch(JobState::Running)),
        ("GET /v1/nodes ", answer("200 OK", &nodes)),
        (
            "GET /v1/jobs/sweep/logs?follow=true&since=1795327202&timestamps=true ",
            chunks(&[&second, &third], true),
        ),
    ]);
    let output = edgeloom(&server, &["logs", "-f", "--tail", "9", "sweep"]);
    playing.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "a | one\na | two\na | three\n");
    assert!(text(&output.stderr).contains("the controller answers again"));
}
