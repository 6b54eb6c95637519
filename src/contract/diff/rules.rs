//! The table: what each difference between two contracts means to whom.
//!
//! A version is a promise about what is evidence and what an agent reads. So a change needs a new
//! version exactly where some response exists whose verdict, or whose bytes on the agent topic, come
//! out differently; whether anybody thinks of it as harmless does not matter (a new optional member
//! of a closed result is a change of contract, too).

use super::facts::Turn::{self, Added, Changed, Lowered, Narrowed, Raised, Removed, Widened};

/// Who can tell that something changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// What an agent can read: members, values, codes, order. Needs a new version.
    Agent,
    /// Which responses are evidence. Needs a new version.
    Acceptance,
    /// When and by whom things are done: retries, retention, rollout. No verdict and no byte differs.
    Operation,
    /// What is said about the contract.
    Wording,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::Agent, Class::Acceptance, Class::Operation, Class::Wording];

    pub fn name(self) -> &'static str {
        match self {
            Class::Agent => "agent",
            Class::Acceptance => "acceptance",
            Class::Operation => "operation",
            Class::Wording => "wording",
        }
    }

    /// Whether such a change needs a new version.
    pub fn needs_version(self) -> bool {
        match self {
            Class::Agent | Class::Acceptance => true,
            Class::Operation | Class::Wording => false,
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The fact: a key of `contract.yaml` with dots, or `schema.` and a keyword.
    pub key: &'static str,
    pub turns: &'static [Turn],
    pub class: Class,
    pub why: &'static str,
    pub todo: &'static str,
}

const fn row(key: &'static str, turns: &'static [Turn], class: Class, why: &'static str, todo: &'static str) -> Rule {
    Rule { key, turns, class, why, todo }
}

/// The rule for a difference. One that nobody has thought of is taken for a changed acceptance: a
/// change gate fails closed, too.
pub fn rule(key: &str, turn: Turn) -> Rule {
    let known = RULES.iter().find(|rule| rule.key == key && rule.turns.contains(&turn));
    known.copied().unwrap_or(UNKNOWN)
}

/// What is not in the table.
pub const UNKNOWN: Rule = row(
    "unknown",
    &[],
    Class::Acceptance,
    "this difference is in no rule, so it is taken for a changed acceptance",
    "publish a new version, and report the change: its rule is missing",
);

const ANY: &[Turn] = &[Added, Removed, Changed, Raised, Lowered, Widened, Narrowed];
const COME_OR_GO: &[Turn] = &[Added, Removed];
const MOVED: &[Turn] = &[Changed, Raised, Lowered];

const STEP: &str = "publish it as a new version in a folder of its own; requests that pin the old one keep it";
const TELL_AGENTS: &str =
    "publish a new version, and tell agents' instructions what is new (`toolgate contract describe`)";
const SHADOW: &str = "publish a new version and run it in shadow first: it shows what would have been refused";
const SHIP: &str = "nothing; it may ship under the same version";
const TELL_OPERATORS: &str = "no new version; tell those who run the dispatcher and the quarantine";

use Class::{Acceptance, Agent, Operation, Wording};

/// All rules. The first row that fits a key and a turn is the one.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    // The contract itself.
    row("tool", ANY, Agent, "the result names another tool, and requests for the old one find no contract", "keep the old tool; add the new one beside it"),
    row("status", ANY, Operation, "which version answers changes, not what a version says", "follow the rollout: shadow, then active, then retired"),
    row("about", ANY, Wording, "it says what the evidence is for; no response is judged by it", SHIP),
    row("owner", ANY, Wording, "who mends the adapter is no part of a judgement", SHIP),
    // The source.
    row("source.kind", ANY, Acceptance, "the response is read in another way altogether", STEP),
    row("source.media_types", &[Added], Acceptance, "responses of this media type were refused and are now read", STEP),
    row("source.media_types", &[Removed], Acceptance, "responses of this media type were read and are now refused", SHADOW),
    row("source.success", &[Added], Acceptance, "an ending that was a failure now counts as an answer", STEP),
    row("source.success", &[Removed], Acceptance, "an ending that counted as an answer is now a failure", SHADOW),
    row("source.empty", ANY, Acceptance, "an empty body is admitted on one side only", STEP),
    row("source.prefix", ANY, Acceptance, "a body is read only behind this exact prefix", STEP),
    row("source.byte_order_mark", ANY, Acceptance, "a body with a byte order mark is admitted on one side only", STEP),
    row("source.failures", ANY, Agent, "the agent reads another failure code for the same ending of a call", TELL_AGENTS),
    row("source.errors", ANY, Agent, "a body that reports an error leads to another code, or is taken for an answer", TELL_AGENTS),
    row("source.mcp", ANY, Acceptance, "a result in another frame is admitted on one side only", STEP),
    row("source.signature", COME_OR_GO, Acceptance, "unsigned responses are admitted on one side only", STEP),
    row("source.signature.scheme", ANY, Acceptance, "a signature of the other scheme does not verify", STEP),
    row("source.signature.header", ANY, Acceptance, "the signature is looked for in another header", STEP),
    row("source.signature.secrets", &[Added], Acceptance, "what is signed with this secret was refused and is now admitted", "deploy the secret first, then publish a new version"),
    row("source.signature.secrets", &[Removed], Acceptance, "what is signed with this secret was admitted and is now refused", "publish a new version once nothing is signed with it any more"),
    row("source.signature.tolerance", ANY, Acceptance, "a signature of this age is admitted on one side only", STEP),
    row("source.text.pattern", ANY, Acceptance, "the whole output must match another pattern", SHADOW),
    row("source.text.counts", ANY, Acceptance, "the output must agree with itself in another way", SHADOW),
    // Limits of the response.
    row("limits", &[Raised], Acceptance, "larger or deeper responses were refused and are now read", STEP),
    row("limits", &[Lowered], Acceptance, "responses that were read are now refused before they are parsed", SHADOW),
    row("limits.result_bytes_max", ANY, Operation, "a contract loads only where its largest result fits, so no result differs", SHIP),
    // The adapter.
    row("adapt.shape", &[Added], Acceptance, "responses of this upstream shape were refused and are now read", STEP),
    row("adapt.shape", &[Removed], Acceptance, "responses of this upstream shape are now refused", "publish a new version once no endpoint answers in this shape"),
    row("adapt.shape_name", ANY, Wording, "a shape's name is told to people only", SHIP),
    row("adapt.when", ANY, Acceptance, "another set of responses counts as this shape", SHADOW),
    row("adapt.field", &[Added], Agent, "a member of the result is filled that was not there", TELL_AGENTS),
    row("adapt.field", &[Removed], Agent, "a member of the result is no longer filled", TELL_AGENTS),
    row("adapt.map", &[Added], Acceptance, "a word of the vendor that was refused is now understood", STEP),
    row("adapt.map", &[Removed], Acceptance, "a word of the vendor that was understood is now refused", SHADOW),
    row("adapt.map", MOVED, Agent, "the same word of the vendor now means something else to the agent", STEP),
    row("adapt.if_missing", COME_OR_GO, Acceptance, "a response without this member is admitted on one side only", STEP),
    row("adapt.if_missing", MOVED, Agent, "the agent reads another value where the vendor says nothing", STEP),
    row("adapt.if_null", COME_OR_GO, Acceptance, "a response with null here is admitted on one side only", STEP),
    row("adapt.if_null", MOVED, Agent, "the agent reads another value where the vendor says null", STEP),
    row("adapt.from", ANY, Agent, "the member is filled from another place of the response", STEP),
    row("adapt.request", ANY, Agent, "the member is filled from another argument of the request", STEP),
    row("adapt.const", ANY, Agent, "the member has another constant value", STEP),
    row("adapt.header", ANY, Agent, "the member is filled from another header", STEP),
    row("adapt.as", ANY, Agent, "the vendor's value is converted in another way", STEP),
    row("adapt.count", ANY, Agent, "another list is counted", STEP),
    row("adapt.each", ANY, Agent, "the list is built from another list", STEP),
    row("adapt.find", ANY, Agent, "the value is looked for in another list", STEP),
    row("adapt.sum", ANY, Agent, "other numbers are added up", STEP),
    row("adapt.where", ANY, Agent, "other items of the vendor's list are taken", STEP),
    row("adapt.item", COME_OR_GO, Agent, "items of the list are built in another way", STEP),
    row("adapt.take", ANY, Agent, "another part of the vendor's items is taken", STEP),
    row("adapt.distinct", ANY, Agent, "repeated items are told on one side only", STEP),
    row("adapt.capture", ANY, Agent, "another part of the output is taken", STEP),
    row("adapt.replace", ANY, Agent, "the value is rewritten in another way", STEP),
    // Semantics.
    row("bound_by", ANY, Acceptance, "what ties a result to its request is decided in another way", STEP),
    row("bind", &[Added], Acceptance, "results that differ from their request here are now refused", SHADOW),
    row("bind", &[Removed], Acceptance, "results that differ from their request here are now admitted", "keep the binding, or publish a new version and say what replaces it"),
    row("issuer", ANY, Acceptance, "evidence of other issuers is admitted", STEP),
    row("fresh", &[Added], Acceptance, "old or future evidence is now refused", SHADOW),
    row("fresh", &[Removed], Acceptance, "evidence of any age is now admitted", STEP),
    row("fresh.max_age", ANY, Acceptance, "evidence of an age between the two is admitted on one side only", STEP),
    row("fresh.max_skew", ANY, Acceptance, "evidence dated ahead of the clock is admitted on one side only", STEP),
    row("fresh.not_before_request", ANY, Acceptance, "evidence from before the request is admitted on one side only", STEP),
    row("rules", &[Added], Acceptance, "results that fail this rule are now refused", SHADOW),
    row("rules", &[Removed], Acceptance, "results that failed this rule are now admitted", STEP),
    row("rules", &[Changed], Wording, "the rule is the same under another id, which only people read", "quarantine groups of the old id end here; tell those who watch them"),
    row("text", COME_OR_GO, Agent, "what the agent is told is untrusted display text changes", TELL_AGENTS),
    row("text.max_chars", &[Raised], Agent, "the agent may read more text that nobody wrote for it", STEP),
    row("text.max_chars", &[Lowered], Acceptance, "longer texts are now refused", SHADOW),
    row("text.emoji", ANY, Acceptance, "text with emoji is admitted on one side only", STEP),
    // The result.
    row("select", &[Added], Agent, "the agent reads a member that was not in the result", TELL_AGENTS),
    row("select", &[Removed], Agent, "the agent no longer reads this member", TELL_AGENTS),
    row("select", &[Changed], Agent, "the member is written as a number on one side and as a string on the other", TELL_AGENTS),
    row("result.order", ANY, Agent, "the same members come in another order, so the bytes and digest of every result differ", "keep the order, or publish a new version"),
    row("codes", &[Added], Agent, "the agent may meet a failure code that it has not heard of", TELL_AGENTS),
    row("codes", &[Removed], Agent, "a failure code that the agent knows does not come any more", TELL_AGENTS),
    row("codes.retryable", ANY, Agent, "the agent is told something else about asking again", TELL_AGENTS),
    row("codes.about", ANY, Wording, "what a code means is said in other words; no byte of a result differs", "read it as an agent's author would: if the meaning changed, use a new code"),
    // Around a judgement.
    row("retry", COME_OR_GO, Operation, "the dispatcher is asked to call again on one side only", TELL_OPERATORS),
    row("retry.attempts_max", ANY, Operation, "the dispatcher is asked to call more or less often", TELL_OPERATORS),
    row("retry.budget", ANY, Operation, "retries end at another time", TELL_OPERATORS),
    row("retry.backoff", ANY, Operation, "retries come at other intervals", TELL_OPERATORS),
    row("retry.share_max", ANY, Operation, "another share of calls may be retries", TELL_OPERATORS),
    row("refusal.hold", ANY, Operation, "how long a request waits for a good answer changes, not which answer is good", TELL_OPERATORS),
    row("quarantine.payload", ANY, Operation, "people find more or less of a refused response", TELL_OPERATORS),
    row("quarantine.retention", ANY, Operation, "refused responses are kept for another time", TELL_OPERATORS),
    row("replay.deliver_late", ANY, Agent, "an agent may get a second message that supersedes a failure, or no longer gets it", TELL_AGENTS),
    row("replay.window", ANY, Operation, "responses can be replayed for another time", TELL_OPERATORS),
    row("retention", ANY, Operation, "closed requests are remembered for another time", TELL_OPERATORS),
    // An envelope of its own.
    row("envelope", ANY, Acceptance, "the source's own envelope is judged by another schema", STEP),
    // The data schema. Wider: the agent may meet what it has never met. Narrower: responses are refused.
    row("schema.property", &[Added], Agent, "a member is added to a closed result, which is a change of contract also where it is optional", "omit it, or publish a new version that tells it"),
    row("schema.property", &[Removed], Agent, "a member that the agent may rely on is gone", STEP),
    row("schema.required", &[Added], Acceptance, "results without this member are now refused", SHADOW),
    row("schema.required", &[Removed], Agent, "a member that was always there may now be missing", TELL_AGENTS),
    row("schema.type", &[Widened], Agent, "the member may have a type that the agent has never met", STEP),
    row("schema.type", &[Narrowed], Acceptance, "values of a type that was admitted are now refused", SHADOW),
    row("schema.type", &[Added, Removed, Changed], Agent, "the member has another type", STEP),
    row("schema.enum", &[Widened, Removed], Agent, "the agent may meet a value that it has never met, and will guess what it means", TELL_AGENTS),
    row("schema.enum", &[Narrowed, Added], Acceptance, "results with a value that was admitted are now refused", SHADOW),
    row("schema.enum", &[Changed], Agent, "values are gone and others have come", TELL_AGENTS),
    row("schema.closed", ANY, Agent, "which members an object may have is decided in another way", STEP),
    row("schema.dependentRequired", &[Removed, Changed], Agent, "members that always came together may come alone", TELL_AGENTS),
    row("schema.dependentRequired", &[Added], Acceptance, "results with one of these members alone are now refused", SHADOW),
    row("schema.max", &[Raised, Removed], Agent, "the agent may meet more or larger values than before", STEP),
    row("schema.max", &[Lowered, Added], Acceptance, "values beyond the new bound are now refused", SHADOW),
    row("schema.min", &[Lowered, Removed], Agent, "the agent may meet fewer or smaller values than before", STEP),
    row("schema.min", &[Raised, Added], Acceptance, "values below the new bound are now refused", SHADOW),
    row("schema.pattern", &[Added], Acceptance, "strings that do not match are now refused", SHADOW),
    row("schema.pattern", &[Removed, Changed], Agent, "the agent may meet strings of another form", STEP),
    row("schema.format", &[Added], Agent, "other strings are refused, and a date-time is written in one form", SHADOW),
    row("schema.format", &[Removed, Changed], Agent, "the agent may meet strings of another form", STEP),
    row("schema.multipleOf", &[Added], Acceptance, "numbers between the steps are now refused", SHADOW),
    row("schema.multipleOf", &[Removed, Changed, Raised, Lowered], Agent, "the agent may meet numbers between the steps", STEP),
    row("schema.uniqueItems", &[Added], Acceptance, "lists with repeated items are now refused", SHADOW),
    row("schema.uniqueItems", &[Removed], Agent, "the agent may meet repeated items", STEP),
    row("schema.items", ANY, Agent, "what a list holds changes", STEP),
    row("schema.combined", ANY, Agent, "alternatives or conditions changed; what is wider and what is narrower can't be told apart in them", STEP),
    row("schema.annotation", ANY, Wording, "titles, descriptions, examples and comments judge nothing", SHIP),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_hides_another() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(!rule.turns.is_empty() && !rule.why.is_empty() && !rule.todo.is_empty(), "{}", rule.key);
            for other in &RULES[..i] {
                let both = other.key == rule.key && rule.turns.iter().any(|turn| other.turns.contains(turn));
                assert!(!both, "{} is in two rows", rule.key);
            }
        }
    }

    #[test]
    fn what_nobody_thought_of_needs_a_version() {
        assert!(rule("nothing.like.it", Changed).class.needs_version());
    }
}
