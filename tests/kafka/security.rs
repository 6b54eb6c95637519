//! Who we say we are, and what we may do: with every mechanism the worker does its work with exactly the rights that
//! `toolgate topics rights` lists, and whatever is wrong ends in one line that says what to correct.

use std::time::Duration;

use toolgate::log::Topic;
use toolgate::log::kafka::KafkaOptions;
use toolgate::log::kafka::rights::Resource;
use toolgate::wire::v1::TransportOutcome;
use toolgate::wire::v1::transport_outcome::Outcome;

use crate::ask;
use crate::log::options;
use crate::rights::{self, Rights};
use crate::secured::{CANARY, Home, Running, Said, run, token};
use crate::support::{Cluster, until};

const PARTITIONS: i32 = 1;
const SASL: &str = "security_protocol = \"sasl_ssl\"\nca_file = \"TLS/ca.pem\"\nusername = \"worker\"\npassword_file = \"FILES/password\"\n";
const MTLS: &str = "security_protocol = \"ssl\"\nca_file = \"TLS/ca.pem\"\ncertificate_file = \"TLS/worker.pem\"\nkey_file = \"TLS/worker.key\"\n";
const TOKEN: &str = "security_protocol = \"sasl_ssl\"\nca_file = \"TLS/ca.pem\"\nsasl_mechanism = \"oauthbearer\"\npassword_file = \"FILES/token\"\n";
/// As a certificate, as a password and as a token say it.
const PRINCIPALS: [&str; 2] = ["User:worker", "User:CN=worker"];

/// A broker with TLS, SASL and rights, on which the worker has those of the table.
fn secure() -> Option<(Cluster, Rights, KafkaOptions)> {
    let cluster = Cluster::start(&["--secure"])?;
    let options = options(&cluster, "g", "w0");
    cluster.make_topics(&options, PARTITIONS);
    let mut rights = Rights::of(&cluster);
    for principal in PRINCIPALS {
        rights.grant_all(principal, &options);
    }
    Some((cluster, rights, options))
}

/// One line that holds `wanted`, the right code, and no secret.
fn assert_one_line(what: &str, said: &Said, code: i32, wanted: &str) {
    assert_eq!(said.code, Some(code), "{what}: {said:?}");
    let lines: Vec<&str> = said.errors.lines().filter(|line| !line.starts_with("note: ")).collect();
    assert_eq!(lines.len(), 1, "{what}: one line is enough: {said:?}");
    assert!(lines[0].contains(wanted), "{what}: {wanted} is not in {said:?}");
    assert_no_secret(what, said);
}

fn assert_no_secret(what: &str, said: &Said) {
    for secret in [CANARY, "worker-secret", "BEGIN ", "eyJ"] {
        assert!(!said.output.contains(secret) && !said.errors.contains(secret), "{what}: {secret} in {said:?}");
    }
}

#[test]
fn every_mechanism_does_its_work_with_the_rights_of_the_table() {
    let Some((cluster, _rights, _)) = secure() else { return };
    let home = Home::new();
    home.write("token", &token(&cluster, &home, 600));
    let producer = cluster.producer();
    let with = |mechanism: &str| format!("{SASL}sasl_mechanism = \"{mechanism}\"\n");
    let consumer = format!("{SASL}group_protocol = \"consumer\"\n");
    for (name, file, kafka) in [
        ("scram-sha-512", "bootstrap.sasl", SASL),
        ("scram-sha-256", "bootstrap.sasl", &with("scram-sha-256")),
        ("plain", "bootstrap.sasl", &with("plain")),
        ("mutual-tls", "bootstrap.mtls", MTLS),
        ("oauthbearer", "bootstrap.sasl", TOKEN),
        ("where-the-broker-shares-out", "bootstrap.sasl", &consumer),
    ] {
        let ids = ["a", "b", "c"].map(|letter| ask::id(&format!("{name}.{letter}")));
        ids.iter().for_each(|id| ask::announce(&producer, PARTITIONS, id));
        ids.iter().for_each(|id| ask::respond(&producer, PARTITIONS, &ask::response(id, "")));
        let config = home.configure(&cluster, file, kafka);
        let worker = Running::start(&config);
        until("the agent has its answers", Duration::from_secs(60), || {
            let results = ask::read(&cluster, "tool.results");
            ids.iter().all(|id| results.iter().any(|one| one.key == id.as_bytes() && one.is_success()))
        });
        drop(worker);
        let log = std::fs::read_to_string(config.with_extension("log")).expect("its log");
        assert!(!log.contains(CANARY) && !log.contains("worker-secret"), "{name}: {log}");
        let shown = run(&config, &["config", "check"], Duration::from_secs(10));
        assert_eq!(shown.code, Some(0), "{name}: {shown:?}");
        assert_no_secret(name, &shown);
    }
}

/// Offers what makes a worker use all of its rights: one response to accept, one to refuse, one to retry.
fn offer(cluster: &Cluster, round: usize) {
    let producer = cluster.producer();
    let id = |what: &str| ask::id(&format!("{what}.{round}"));
    for what in ["accepted", "refused", "retried"] {
        ask::announce(&producer, PARTITIONS, &id(what));
    }
    ask::respond(&producer, PARTITIONS, &ask::response(&id("accepted"), ""));
    ask::respond(&producer, PARTITIONS, &ask::response(&id("refused"), ",\"note\":\"no\""));
    let mut unavailable = ask::response(&id("retried"), "");
    unavailable.outcome = Some(TransportOutcome { outcome: Some(Outcome::HttpStatus(503)) });
    ask::respond(&producer, PARTITIONS, &unavailable);
}

/// The table is the smallest one: without any of its rows a worker ends, and says which row that is. Once with the
/// right to see the resource left, once without.
#[test]
fn each_right_that_is_missing_is_named() {
    let Some((cluster, mut rights, options)) = secure() else { return };
    let home = Home::new();
    let config = home.configure(&cluster, "bootstrap.sasl", SASL);
    for (round, (resource, operation)) in rights::all().into_iter().enumerate() {
        let (kind, name) = resource.named(&options);
        let at = (kind, name.as_str());
        // The changelog has two rights, and whoever has one of them may see it.
        let is_seen_anyway = resource == Resource::Topic(Topic::Bindings);
        for may_see in [true, false] {
            if may_see {
                rights.grant(PRINCIPALS[0], at, "DESCRIBE");
            }
            rights.revoke(PRINCIPALS[0], at, operation);
            offer(&cluster, round * 2 + usize::from(may_see));
            let what = format!("{operation} on {kind} {name}, may see it: {may_see}");
            let said = run(&config, &["run"], Duration::from_secs(60));
            println!("{what}: {:?} {}", said.took, said.errors.trim());
            assert_one_line(&what, &said, 78, &format!("on {kind} `{name}`"));
            assert!(said.errors.contains(operation), "{what}: {said:?}");
            rights.grant(PRINCIPALS[0], at, operation);
            if may_see {
                rights.revoke(PRINCIPALS[0], at, "DESCRIBE");
            }
            if is_seen_anyway {
                break;
            }
        }
    }
    let said = run(&config, &["run", "--until-idle"], Duration::from_secs(60));
    assert_eq!(said.code, Some(0), "with all of them back it goes on: {said:?}");
}

/// A mistake: its name, the brokers' file, settings, the exit code, and what the line says.
type Mistake = (&'static str, &'static str, String, i32, &'static str);

fn mistakes() -> Vec<Mistake> {
    let sasl = |from: &str, to: &str| SASL.replace(from, to);
    let mtls = |from: &str, to: &str| MTLS.replace(from, to);
    let (wrong, plain) = (sasl("FILES/password", "FILES/wrong"), "sasl_mechanism = \"plain\"\n");
    let refused = "the broker refused who we say we are";
    vec![
        ("wrong password", "bootstrap.sasl", wrong.clone(), 78, refused),
        ("wrong password, plain", "bootstrap.sasl", wrong + plain, 78, refused),
        ("unknown user", "bootstrap.sasl", sasl("\"worker\"", "\"nobody\""), 78, refused),
        ("wrong authority", "bootstrap.sasl", sasl("ca.pem", "other-ca.pem"), 78, "the TLS handshake failed"),
        ("plaintext to TLS", "bootstrap.sasl", String::new(), 78, "kafka.security_protocol"),
        ("TLS to plaintext", "bootstrap", SASL.to_owned(), 78, "kafka.security_protocol"),
        ("missing password file", "bootstrap.sasl", sasl("FILES/password", "FILES/gone"), 78, "kafka.password_file = "),
        ("empty password file", "bootstrap.sasl", sasl("FILES/password", "FILES/empty"), 78, "its first line is empty"),
        ("missing key", "bootstrap.mtls", mtls("worker.key", "gone.key"), 78, "kafka.key_file = "),
        ("a key that cannot be read", "bootstrap.mtls", mtls("TLS/worker.key", "FILES"), 78, "kafka.key_file = "),
        ("a key that is none", "bootstrap.mtls", mtls("TLS/worker.key", "FILES/wrong"), 78, "no client can be made"),
        ("a key of another", "bootstrap.mtls", mtls("worker.key", "server.key"), 78, "no client can be made"),
        ("expired certificate", "bootstrap.mtls", mtls("worker.pem", "expired.pem"), 78, "refused our certificate"),
        (
            "no certificate",
            "bootstrap.mtls",
            MTLS.lines().take(2).map(|line| format!("{line}\n")).collect(),
            78,
            "refused our certificate",
        ),
        ("expired token", "bootstrap.sasl", TOKEN.replace("token\"", "expired\""), 78, "the token was not accepted"),
        ("a token that is none", "bootstrap.sasl", TOKEN.replace("token\"", "wrong\""), 78, "not a JWT"),
        ("forged token", "bootstrap.sasl", TOKEN.replace("token\"", "forged\""), 78, "the token was not accepted"),
        ("missing token", "bootstrap.sasl", TOKEN.replace("token\"", "gone\""), 78, "the token was not accepted"),
    ]
}

#[test]
fn each_mistake_ends_in_one_line_and_shows_no_secret() {
    let Some((cluster, _rights, _)) = secure() else { return };
    let home = Home::new();
    home.write("empty", "\n");
    home.write("expired", &token(&cluster, &home, -10));
    let good = token(&cluster, &home, 600);
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    home.write("forged", &format!("{signed}.{}", signature.chars().rev().collect::<String>()));
    for (name, file, kafka, code, wanted) in mistakes() {
        let config = home.configure(&cluster, file, &kafka);
        for args in [["topics", "verify"].as_slice(), &["run"]] {
            let said = run(&config, args, Duration::from_secs(30));
            println!("{name}, {args:?}: {:?} {}", said.took, said.errors.trim());
            assert_one_line(&format!("{name}, {args:?}"), &said, code, wanted);
        }
        let shown = run(&config, &["config", "check"], Duration::from_secs(10));
        assert_no_secret(name, &shown);
    }
}

/// Nobody listens: that may be over soon, and a supervisor is told to try again.
#[test]
fn brokers_that_are_down_are_a_temporary_failure() {
    let Some((cluster, _rights, _)) = secure() else { return };
    let home = Home::new();
    let config = home.configure(&cluster, "bootstrap.sasl", SASL);
    cluster.node("kill", 1);
    let said = run(&config, &["run"], Duration::from_secs(30));
    assert_one_line("down", &said, 75, "no broker can be reached");
}

/// A token is renewed in its file while the worker runs. Long after the first has expired, and the broker has closed
/// every connection that was made with it, the worker still works.
#[test]
fn a_token_is_renewed_while_the_worker_runs() {
    let Some((cluster, _rights, _)) = secure() else { return };
    let home = Home::new();
    let (producer, audits) = (cluster.producer(), cluster.counter("tool.audit"));
    let answered = |id: &str| {
        ask::announce(&producer, PARTITIONS, id);
        ask::respond(&producer, PARTITIONS, &ask::response(id, ""));
        until("it is answered", Duration::from_secs(60), || audits.count_more() > 0);
    };
    home.write("token", &token(&cluster, &home, 12));
    let config = home.configure(&cluster, "bootstrap.sasl", TOKEN);
    let mut worker = Running::start(&config);
    answered(&ask::id("first"));
    home.write("token", &token(&cluster, &home, 600));
    std::thread::sleep(Duration::from_secs(15));
    answered(&ask::id("second"));
    assert!(worker.is_alive());
    drop(worker);
    // What took the place of a token that is gone has been used: with the old one alone the worker can't have gone on.
    home.write("token", &token(&cluster, &home, -3));
    assert_one_line("old", &run(&config, &["run"], Duration::from_secs(30)), 78, "the token was not accepted");
}
