//! The first contact with a cluster, with one clear message for each way it can fail.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::connect;
use super::deadline::Deadline;
use super::group::Plain;
use super::options::{KafkaOptions, Mechanism};
use crate::log::error::LogError;
use crate::log::record::Topic;

/// How long to look for a broker before giving up.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long to wait for one answer, between two looks at what the client has to tell.
const TRY: Duration = Duration::from_secs(1);

/// Events that are taken up at once.
const EVENTS: usize = 32;

/// A client that a broker has answered.
///
/// # Errors
/// At once where only a person can help: wrong credentials, certificates that do not fit. After [`PATIENCE`] where no
/// broker can be reached.
pub(super) fn greet(options: &KafkaOptions) -> Result<BaseConsumer<Plain>, LogError> {
    let plain = connect::context(options);
    let client: BaseConsumer<Plain> =
        options.reader()?.create_with_context(plain.clone()).map_err(|source| unusable(options, source))?;
    let deadline = Deadline::after(PATIENCE);
    loop {
        serve(&client);
        let problem = match client.fetch_metadata(Some(options.name(Topic::Requests)), TRY) {
            Ok(_) => return Ok(client),
            Err(problem) => problem,
        };
        serve(&client);
        if let Some((code, reason)) = plain.troubles.last()
            && let Some(cure) = cure(options, code, &reason)
        {
            return Err(LogError::Connect { servers: options.bootstrap_servers.clone(), what: cure });
        }
        if deadline.has_passed() {
            return Err(unreachable(options, &plain, &problem));
        }
    }
}

/// Lets a client that reads nothing say what is wrong, and ask for a new token. A poll that finds nothing and one that
/// has taken an event up look the same, so there is no end to be seen, only enough.
pub(super) fn serve(client: &BaseConsumer<Plain>) {
    for _ in 0..EVENTS {
        drop(client.poll(Duration::ZERO));
    }
}

/// The library takes files and properties in when a client is made.
fn unusable(options: &KafkaOptions, source: KafkaError) -> LogError {
    let reason = if let KafkaError::ClientCreation(reason) = source {
        first_line(&reason)
    } else if let KafkaError::ClientConfig(_, _, name, _) = source {
        // Its `Display` holds the value; a name is enough.
        format!("property `{name}` has a value that it cannot have")
    } else {
        source.to_string()
    };
    LogError::Connect {
        servers: options.bootstrap_servers.clone(),
        what: format!("no client can be made ({reason}); check the files and properties in [kafka]"),
    }
}

/// The first line, without how often and in which state of the client.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.rfind(" (after ").map_or(line, |end| &line[..end]).trim().to_owned()
}

/// What a person has to do, where waiting does not help.
fn cure(options: &KafkaOptions, code: RDKafkaErrorCode, reason: &str) -> Option<String> {
    const UNKNOWN: [RDKafkaErrorCode; 2] =
        [RDKafkaErrorCode::Authentication, RDKafkaErrorCode::SaslAuthenticationFailed];
    let reason = first_line(reason);
    // A broker that refuses our certificate says so in an alert, after a handshake that has succeeded for us.
    if code == RDKafkaErrorCode::BrokerTransportFailure && reason.contains("SSL alert number") {
        Some(format!("the broker refused our certificate ({reason}); check kafka.certificate_file and key_file"))
    } else if code == RDKafkaErrorCode::SSL {
        Some(format!(
            "the TLS handshake failed ({reason}); check kafka.ca_file, certificate_file and key_file, and whether the port speaks TLS"
        ))
    } else if UNKNOWN.contains(&code) && options.security.mechanism == Mechanism::OauthBearer {
        Some(format!("the token was not accepted ({reason}); check the token in kafka.password_file"))
    } else if UNKNOWN.contains(&code) {
        Some(format!(
            "the broker refused who we say we are ({reason}); check kafka.username, password_file and sasl_mechanism"
        ))
    } else {
        None
    }
}

fn unreachable(options: &KafkaOptions, plain: &Plain, problem: &KafkaError) -> LogError {
    let servers = options.bootstrap_servers.clone();
    let (code, reason) = plain.troubles.last().unwrap_or((RDKafkaErrorCode::Unknown, problem.to_string()));
    let reason = first_line(&reason);
    // Who speaks TLS hangs up on whoever does not, and the other way round. A broker that is gone has a reason of its own.
    let is_silent = code == RDKafkaErrorCode::AllBrokersDown;
    if is_silent || reason.contains("PLAINTEXT broker listener?") || reason.contains("connection closed by peer") {
        let reason = if is_silent { "without a word" } else { &reason };
        let what = format!(
            "the broker hangs up on us ({reason}); check whether kafka.security_protocol is what the port speaks"
        );
        return LogError::Connect { servers, what };
    }
    LogError::Unreachable { servers, what: reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_without_the_state_of_the_client() {
        assert_eq!(first_line("refused (after 3ms in state CONNECT)\nmore"), "refused");
        assert_eq!(first_line(""), "");
    }
}
