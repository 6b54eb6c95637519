use super::*;

const MINIMAL: &str = "[log]\npath = \"toolgate.db\"\n";

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// Parses `toml` with an environment and compares the mistakes, one a line.
#[track_caller]
fn check(toml: &str, env: &[(&str, &str)], expect: &[&str]) {
    let mistakes = match Config::parse(Some(toml), "toolgate.toml", &map(env)) {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(mistakes, expect);
}

#[test]
fn a_minimal_file_gives_every_default() {
    let config = Config::parse(Some(MINIMAL), "toolgate.toml", &BTreeMap::new()).unwrap();
    assert_eq!(config.worker.batch_records_max, 500);
    assert_eq!(config.worker.batch_bytes_max, 8 << 20);
    assert_eq!(config.worker.poll_wait, Duration::from_millis(100));
    assert_eq!(config.topics.bindings, "toolgate.toolgate.bindings");
    assert_eq!(config.retention.quarantine, Duration::from_secs(30 * 86_400));
    assert_eq!(config.telemetry.metrics_listen, None);
    assert_eq!(config.encoding.responses, ResponseEncoding::Protobuf);
}

#[test]
fn every_default_passes_its_own_check_and_names_are_unique() {
    let mut names: Vec<String> = SETTINGS.iter().map(Setting::name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), SETTINGS.len());
    for setting in SETTINGS {
        assert!(settings::SECTIONS.iter().any(|(section, _)| *section == setting.section), "{}", setting.name());
        let mut env = map(&[("TOOLGATE_LOG_PATH", "x.db")]);
        if let Fallback::Text(text) = setting.default {
            env.insert(setting.variable(), text.to_owned());
        }
        assert_eq!(Config::parse(None, "toolgate.toml", &env).err(), None, "{}", setting.name());
    }
}

#[test]
fn all_mistakes_are_reported_at_once_with_line_and_column() {
    let toml = r#"
[worker]
batch_records_max = 0
pol_wait = "10ms"
drain_timeout = 30
batch_bytes_max = "8MB"

[wroker]
group = "a"

[telemetry]
log_format = "jsn"
allow_non_loopback = "yes"
"#;
    check(
        toml,
        &[("TOOLGATE_WORKER_SKEW", "2 s")],
        &[
            "toolgate.toml:3:21: worker.batch_records_max: 0 is out of range: write an integer in 1..=10000",
            "toolgate.toml:4:1: worker.pol_wait: unknown setting: did you mean worker.poll_wait?",
            "toolgate.toml:5:17: worker.drain_timeout: expected a duration in 0ms..=1h such as \"30s\", found integer",
            "toolgate.toml:6:19: worker.batch_bytes_max: \"8MB\" does not fit: write a size in 1MiB..=1GiB such as \"8MiB\"",
            "toolgate.toml:8:2: wroker: unknown section: did you mean [worker]?",
            "toolgate.toml:12:14: telemetry.log_format: \"jsn\" is not a choice: did you mean \"json\"? It can be \"text\" or \"json\"",
            "toolgate.toml:13:22: telemetry.allow_non_loopback: expected true or false, found string",
            "toolgate.toml: log.path: missing: give the file that holds the embedded log, such as path = \"toolgate.db\", or set TOOLGATE_LOG_PATH",
            "environment TOOLGATE_WORKER_SKEW: worker.skew: \"2 s\" does not fit: write a duration in 0ms..=1h such as \"30s\"",
        ],
    );
}

#[test]
fn text_that_is_not_toml_is_a_mistake_with_a_place() {
    check("[log]\npath = \"a.db\"\npath = \"b.db\"\n", &[], &["toolgate.toml:3:1: not TOML: duplicate key"]);
    check(
        "[log]\npath = a.db\n[worker]\nskew = \"x\"\n",
        &[],
        &[
            "toolgate.toml:2:8: not TOML: string values must be quoted, expected literal string",
            "toolgate.toml:4:8: worker.skew: \"x\" does not fit: write a duration in 0ms..=1h such as \"30s\"",
        ],
    );
}

#[test]
fn a_setting_in_the_wrong_section_is_led_home() {
    check(
        &format!("{MINIMAL}batch_records_max = 10\n"),
        &[],
        &["toolgate.toml:3:1: log.batch_records_max: unknown setting: did you mean worker.batch_records_max?"],
    );
    check(
        &format!("group = \"a\"\n{MINIMAL}"),
        &[],
        &["toolgate.toml:1:1: group: unknown setting: did you mean worker.group?"],
    );
}

#[test]
fn kafka_needs_its_brokers_and_no_file() {
    let sources = |toml| Config::parse(Some(toml), "toolgate.toml", &BTreeMap::new());
    let config = sources(
        "[log]\nkind = \"kafka\"\n[kafka]\nbootstrap_servers = \"a:9092\"\n[kafka.properties]\n\"client.rack\" = \"r1\"\n",
    );
    let kafka = config.expect("it is complete").kafka;
    assert_eq!((kafka.bootstrap_servers.as_str(), kafka.properties["client.rack"].as_str()), ("a:9092", "r1"));

    check(
        &format!("{MINIMAL}[kafka]\nbootstrap_servers = \"a:9092\"\n"),
        &[],
        &["toolgate.toml:4:21: kafka.bootstrap_servers: has no effect: set log.kind = \"kafka\", or remove it"],
    );
    check(
        "[log]\nkind = \"kafka\"\n[kafka]\nsecurity_protocol = \"sasl_ssl\"\nusername = \"u\"\nproperties = { acks = 1 }\n",
        &[],
        &[
            "toolgate.toml:3:2: kafka.bootstrap_servers: missing: give host:port of some brokers, or set TOOLGATE_KAFKA_BOOTSTRAP_SERVERS",
            "toolgate.toml:3:2: kafka.password_file: missing: give the file that holds the password or token",
            "toolgate.toml:6:14: kafka.properties: `acks` can't be passed through: all replicas must have what was committed",
        ],
    );
}

#[test]
fn integers_of_any_size_are_out_of_range_and_not_a_panic() {
    let digits = "9".repeat(60);
    check(
        &format!("{MINIMAL}partitions = {digits}\n"),
        &[],
        &[&format!("toolgate.toml:3:14: log.partitions: \"{digits}\" does not fit: write an integer in 1..=1024")],
    );
    check(
        &format!("{MINIMAL}partitions = -1\n"),
        &[],
        &["toolgate.toml:3:14: log.partitions: -1 is out of range: write an integer in 1..=1024"],
    );
}

#[test]
fn the_strongest_source_wins() {
    let toml = format!("{MINIMAL}[worker]\ninstance = \"from-file\"\ngroup = \"from-file\"\nskew = \"1s\"\n");
    let env = map(&[("TOOLGATE_WORKER_INSTANCE", "from-env"), ("TOOLGATE_WORKER_GROUP", "from-env")]);
    let flags = map(&[("worker.instance", "from-flag")]);
    let sources = Sources { toml: Some(&toml), file_name: "toolgate.toml", env: &env, flags: &flags };
    let config = Config::from_sources(sources).unwrap();
    assert_eq!(config.worker.instance, "from-flag");
    assert_eq!(config.worker.group, "from-env");
    assert_eq!(config.topics.bindings, "toolgate.from-env.bindings");
    assert_eq!(config.worker.skew, Duration::from_secs(1));
    let explained = Config::explain(sources).unwrap();
    let origin = |name: &str| explained.iter().find(|e| e.setting.name() == name).unwrap().origin;
    assert_eq!(
        ["worker.instance", "worker.group", "worker.skew", "log.kind"].map(origin),
        ["flag", "environment", "file", "default"]
    );
    assert_eq!(explained.iter().find(|e| e.setting.key == "bindings").unwrap().value, config.topics.bindings);
}

#[test]
fn a_wrong_flag_is_a_mistake_of_the_command_line() {
    let flags = map(&[("worker.grup", "a"), ("worker.skew", "soon")]);
    let env = BTreeMap::new();
    let sources = Sources { toml: Some(MINIMAL), file_name: "toolgate.toml", env: &env, flags: &flags };
    let mistakes: Vec<String> = Config::from_sources(sources).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        mistakes,
        [
            "command line: worker.grup: unknown setting: did you mean worker.group?",
            "command line: worker.skew: \"soon\" does not fit: write a duration in 0ms..=1h such as \"30s\"",
        ]
    );
}

#[test]
fn variables_that_kubernetes_injects_are_left_alone() {
    let env = [
        ("TOOLGATE_PORT", "tcp://10.0.0.1:9464"),
        ("TOOLGATE_SERVICE_HOST", "10.0.0.1"),
        ("TOOLGATE_LOG_PORT_80_TCP", "tcp://10.0.0.1:80"),
        ("TOOLGATE_BLESS", "1"),
    ];
    check(MINIMAL, &env, &[]);
    check(
        MINIMAL,
        &[("TOOLGATE_WORKER_GRUOP", "a")],
        &["environment TOOLGATE_WORKER_GRUOP: unknown variable: did you mean TOOLGATE_WORKER_GROUP?"],
    );
}

#[test]
fn metrics_stay_on_loopback_unless_allowed() {
    let listen = |address: &str, rest: &str| format!("{MINIMAL}[telemetry]\nmetrics_listen = \"{address}\"\n{rest}");
    check(&listen("127.0.0.1:9464", ""), &[], &[]);
    check(&listen("[::1]:9464", ""), &[], &[]);
    check(&listen("0.0.0.0:9464", "allow_non_loopback = true\n"), &[], &[]);
    check(
        &listen("0.0.0.0:9464", ""),
        &[],
        &[
            "toolgate.toml:4:18: telemetry.metrics_listen: 0.0.0.0:9464 can be reached from other machines: use 127.0.0.1:9464, or set telemetry.allow_non_loopback = true",
        ],
    );
    check(
        &listen("localhost:9464", ""),
        &[],
        &[
            "toolgate.toml:4:18: telemetry.metrics_listen: \"localhost:9464\" does not fit: write \"off\" or an IP address and port such as \"127.0.0.1:9464\"",
        ],
    );
}

#[test]
fn topics_must_differ() {
    check(
        &format!("{MINIMAL}[topics]\nresults = \"tool.audit\"\n"),
        &[],
        &["toolgate.toml:3:2: topics.audit: has the same name as topics.results: give each topic a name of its own"],
    );
    check(
        &format!("{MINIMAL}[worker]\ngroup = \"{{group}}\"\n"),
        &[],
        &[
            "toolgate.toml:4:9: worker.group: \"{group}\" does not fit: write 1 to 100 letters, digits, dots, dashes or underscores",
        ],
    );
}

#[test]
fn the_documentation_names_every_setting() {
    let page = documentation();
    for setting in SETTINGS {
        assert!(page.contains(&setting.variable()), "{}", setting.name());
    }
}
