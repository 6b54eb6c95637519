//! Every metric there is: name, type, unit, help and labels.
//!
//! A name appears here and nowhere else in the code. Dashboards and alerts are compared with this
//! table by `tests/tidy.rs`.

/// A label. Its values come from closed sets, so the number of series is bounded by the number of
/// loaded contracts times constants of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// Name of a loaded contract's tool, or `unknown`.
    Tool,
    /// `tool@version` of a loaded contract, or `unknown`.
    Contract,
    Outcome,
    Stage,
    /// A reason's code, or `none`.
    Reason,
    /// `active`, `shadow` or `retired`.
    Status,
    /// The program's version and commit.
    Version,
    Commit,
}

impl Label {
    pub const fn name(self) -> &'static str {
        match self {
            Label::Tool => "tool",
            Label::Contract => "contract",
            Label::Outcome => "outcome",
            Label::Stage => "stage",
            Label::Reason => "reason",
            Label::Status => "status",
            Label::Version => "version",
            Label::Commit => "commit",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    None,
    Bytes,
    Seconds,
}

macro_rules! metrics {
    ($($variant:ident $name:literal $kind:ident $unit:ident [$($label:ident),*] $help:literal;)*) => {
        /// A metric of the catalogue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $(#[doc = $help] $variant,)*
        }

        impl Metric {
            pub const ALL: &'static [Metric] = &[$(Metric::$variant,)*];

            /// The full name, as queries write it.
            pub const fn name(self) -> &'static str {
                match self { $(Metric::$variant => $name,)* }
            }

            pub const fn kind(self) -> Type {
                match self { $(Metric::$variant => Type::$kind,)* }
            }

            pub const fn unit(self) -> Unit {
                match self { $(Metric::$variant => Unit::$unit,)* }
            }

            pub const fn labels(self) -> &'static [Label] {
                match self { $(Metric::$variant => &[$(Label::$label),*],)* }
            }

            /// One sentence for people, without a full stop: the encoder adds it.
            pub const fn help(self) -> &'static str {
                match self { $(Metric::$variant => $help,)* }
            }
        }
    };
}

metrics! {
    Responses "toolgate_responses_total" Counter None [Tool, Contract, Outcome, Reason] "Responses judged, by what became of them";
    Refusals "toolgate_refusals_total" Counter None [Tool, Contract, Stage, Reason] "Responses refused, by the stage that refused them";
    Requests "toolgate_requests_total" Counter None [Tool, Contract, Outcome] "Requests announced and requests closed, by how they were closed";
    Retries "toolgate_retries_total" Counter None [Tool, Contract] "Retry directives written for the dispatcher";
    RetriesWithheld "toolgate_retries_withheld_total" Counter None [Tool, Contract] "Retries not made because a budget was spent";
    Expired "toolgate_expired_total" Counter None [Tool, Contract] "Requests whose deadline passed without evidence";
    ShadowDisagreements "toolgate_shadow_disagreements_total" Counter None [Tool, Contract] "Responses that a shadow version judged differently from the active one";
    Commits "toolgate_commits_total" Counter None [Outcome] "Transactions, by how they ended";
    ResultBytes "toolgate_result_bytes" Histogram Bytes [] "Size of the results that agents were given";
    BodyBytes "toolgate_body_bytes" Histogram Bytes [] "Size of the response bodies that were judged";
    Decide "toolgate_decide_seconds" Histogram Seconds [] "Time to judge one response, as the mean of those that were judged with it";
    Commit "toolgate_commit_seconds" Histogram Seconds [] "Time to commit one transaction";
    Restore "toolgate_restore_seconds" Histogram Seconds [] "Time to rebuild the state of one partition";
    BatchRecords "toolgate_batch_records" Histogram None [] "Input records per transaction";
    Outstanding "toolgate_outstanding_requests" Gauge None [] "Requests that wait for evidence";
    Bindings "toolgate_bindings" Gauge None [] "Requests held in memory, closed ones that are still remembered included";
    Parked "toolgate_parked_responses" Gauge None [] "Responses that wait for a request which is written but not yet read";
    LagRecords "toolgate_lag_records" Gauge None [] "Input records that were written but not yet processed";
    LagSeconds "toolgate_lag_seconds" Gauge Seconds [] "Age of the oldest input record that is not yet processed";
    Partitions "toolgate_partitions" Gauge None [] "Partitions that this worker owns";
    Ready "toolgate_ready" Gauge None [] "1 while the worker processes input, 0 while it restores or drains";
    ContractInfo "toolgate_contract_info" Gauge None [Tool, Contract, Status] "A loaded contract; always 1";
    BuildInfo "toolgate_build_info" Gauge None [Version, Commit] "This build; always 1";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for (i, metric) in Metric::ALL.iter().enumerate() {
            let name = metric.name();
            assert!(name.starts_with("toolgate_"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert_eq!(name.ends_with("_total"), metric.kind() == Type::Counter, "{name}");
            let unit = match metric.unit() {
                Unit::None => true,
                Unit::Bytes => name.ends_with("_bytes"),
                Unit::Seconds => name.ends_with("_seconds"),
            };
            assert!(unit, "{name}");
            assert!(metric.help().len() > 10 && !metric.help().ends_with('.'), "{name}");
            assert!(Metric::ALL[i + 1..].iter().all(|other| other.name() != name), "{name} twice");
        }
    }
}
