//! Ports and volumes.

use super::{accepted, task, wants, with_task_lines};
use crate::job::{HostPort, Mount, Origin, Protocol};

#[test]
fn ports_and_volumes_are_read() {
    let text = with_task_lines(
        "    ports: [{ host: 8080, container: 80 }, { host: 8080, container: 53, protocol: udp }]\n    volumes:\n      \
         - { name: data, path: /data/ }\n      - { host: /srv/models, path: /models, read_only: true }",
    );
    let placement = accepted(&text).tasks[&task("a")].placement.clone();
    let port = |port, protocol, container| HostPort { port, protocol, container };
    assert_eq!(placement.ports, [port(8080, Protocol::Tcp, 80), port(8080, Protocol::Udp, 53)]);
    let data =
        Mount { from: Origin::Volume("data".parse().unwrap()), path: "/data".into(), read_only: false };
    let models = Mount { from: Origin::Host("/srv/models".into()), path: "/models".into(), read_only: true };
    assert_eq!(placement.mounts, [data, models]);
}

#[test]
fn every_wrong_port_is_told() {
    let lines = "    ports:\n      - { host: 0, container: 80 }\n      - { host: 22, container: 22 }\n      \
                 - { host: 80, container: 80, protocol: sctp }\n      - { host: 81, container: 81 }\n      \
                 - { host: 81, container: 82 }\n      - { host: 7118, container: 1 }\n      - 80:80";
    wants(
        &with_task_lines(lines),
        &[
            (7, "tasks.a.ports[0].host", "write a number from 1 to 65535"),
            (8, "tasks.a.ports[1]", "is for the node's remote login"),
            (9, "tasks.a.ports[2].protocol", "no protocol of a port"),
            (11, "tasks.a.ports[4]", "listed twice"),
            (12, "tasks.a.ports[5]", "is for the agent's layer store"),
            (13, "tasks.a.ports[6]", "a mapping is wanted"),
        ],
    );
    wants(&with_task_lines("    ports: [{ host: 80 }]"), &[(6, "tasks.a.ports[0].container", "is missing")]);
}

#[test]
fn every_wrong_volume_is_told() {
    let lines = "    volumes:\n      - { name: data, path: data }\n      - { name: data, path: / }\n      \
                 - { name: data, path: /run/secrets/x }\n      - { path: /a }\n      \
                 - { name: b, host: /b, path: /b }\n      - { host: /srv/../etc, path: /c }\n      \
                 - { name: d, path: /d }\n      - { name: e, path: /d/ }\n      - { name: d, path: /f }";
    wants(
        &with_task_lines(lines),
        &[
            (7, "tasks.a.volumes[0].path", "no path of a folder"),
            (8, "tasks.a.volumes[1].path", "is the system's"),
            (9, "tasks.a.volumes[2].path", "is the system's"),
            (10, "tasks.a.volumes[3]", "either `name` or `host`"),
            (11, "tasks.a.volumes[4]", "either `name` or `host`"),
            (12, "tasks.a.volumes[5].host", "no path of a folder"),
            (14, "tasks.a.volumes[7]", "two volumes are at"),
            (15, "tasks.a.volumes[8]", "listed twice"),
        ],
    );
    let shared = with_task_lines("    volumes: [{ name: data, path: /d }]")
        + "  b: { image: i, volumes: [{ name: data, path: /d }] }\n";
    wants(&shared, &[(7, "tasks.b", "is task a's already")]);
}
