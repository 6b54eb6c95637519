//! The member of the group. It reads nothing: its share of the responses is paused for good, and what it is for is to
//! know which partitions are ours and to prove it in transactions. Reading is done by [`Reader`](super::reader::Reader)s,
//! which can begin anew anywhere without asking a broker.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::group::{Bell, Change, Member, Plain};
use super::options::KafkaOptions;
use crate::log::error::LogError;
use crate::log::record::Topic;

/// Events that one sign of life takes up; a member that is told so much at once will be asked again soon.
const EVENTS_MAX: usize = 100;

/// The member of the group.
pub(super) struct Membership {
    consumer: BaseConsumer<Member>,
}

impl Membership {
    pub(super) fn join(options: &KafkaOptions, plain: Plain, bell: &Arc<Bell>) -> Result<Membership, LogError> {
        let name = options.name(Topic::Responses).to_owned();
        let context = Member { plain, name: name.clone(), changes: Mutex::new(VecDeque::new()) };
        let failed = |source| LogError::Kafka { what: "joining the group", source };
        let mut consumer: BaseConsumer<Member> = options.member()?.create_with_context(context).map_err(failed)?;
        let bell = bell.clone();
        consumer.set_nonempty_callback(move || bell.ring());
        consumer.subscribe(&[&name]).map_err(failed)?;
        Ok(Membership { consumer })
    }

    pub(super) fn next_change(&self) -> Option<Change> {
        self.consumer.context().next_change()
    }

    pub(super) fn has_changes(&self) -> bool {
        self.consumer.context().has_changes()
    }

    /// Which member of which generation we are now, unless the group has gone on without us.
    ///
    /// The order matters: a member that was thrown out has an empty identity, which a broker would accept in a
    /// transaction without looking. The client sets its mark before anybody can see that identity, so the mark is read
    /// last.
    pub(super) fn metadata(&self) -> Option<ConsumerGroupMetadata> {
        let metadata = self.consumer.group_metadata();
        if self.consumer.assignment_lost() { None } else { metadata }
    }

    /// Whether the group refuses this member under its instance name, for good.
    pub(super) fn expelled(&self) -> Option<RDKafkaErrorCode> {
        const EXPELLED: [RDKafkaErrorCode; 2] =
            [RDKafkaErrorCode::FencedInstanceId, RDKafkaErrorCode::UnreleasedInstanceId];
        let (code, _) = self.consumer.client().fatal_error()?;
        EXPELLED.contains(&code).then_some(code)
    }

    /// A sign of life to the group. Callbacks run in it, and leave what they did as changes.
    pub(super) fn sign(&self) -> Result<(), LogError> {
        for _ in 0..EVENTS_MAX {
            match self.consumer.poll(Duration::ZERO) {
                None => break,
                // What was fetched between being assigned and being paused. A reader reads it too.
                Some(Ok(_)) => {}
                Some(Err(error)) => self.note(error)?,
            }
        }
        Ok(())
    }

    /// News about connections, mostly, which the client mends by itself.
    fn note(&self, error: KafkaError) -> Result<(), LogError> {
        const HOPELESS: [RDKafkaErrorCode; 3] = [
            RDKafkaErrorCode::Fatal,
            RDKafkaErrorCode::TopicAuthorizationFailed,
            RDKafkaErrorCode::GroupAuthorizationFailed,
        ];
        // Told by `expelled`.
        if self.expelled().is_some() {
            return Ok(());
        }
        let is_fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
        if is_fatal || error.rdkafka_error_code().is_some_and(|code| HOPELESS.contains(&code)) {
            return Err(LogError::Kafka { what: "being a member of the group", source: error });
        }
        tracing::debug!(%error, "kafka: the member goes on after an error");
        Ok(())
    }
}
