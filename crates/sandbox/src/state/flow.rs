//! The decision table of v2's flow execution, as documented.

use super::Situation;

/// The conditions that the caller permits.
#[derive(Clone, Copy, Default, Debug)]
pub struct FlowFlags {
    pub when_in_chat: bool,
    pub when_wait_for_chat: bool,
    pub when_in_auto: bool,
}

/// The outcome of a flow execution on an open chat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The flow starts in `auto` without an agent; a running flow is aborted.
    Run,
    /// The flow is not executed and the chat is unchanged.
    Leave,
}

/// Evaluates the table. The row for waiting chats is inverted relative to the others; it is
/// implemented as documented. A chat that "returns to auto" does so for the flow, hence `Run`.
pub fn verdict(situation: Situation, flags: FlowFlags) -> Verdict {
    let run = match situation {
        Situation::InChat => flags.when_in_chat,
        Situation::WaitForChat => !flags.when_wait_for_chat,
        Situation::Auto => flags.when_in_auto,
        Situation::Blocked | Situation::Finishing => false,
    };
    if run { Verdict::Run } else { Verdict::Leave }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_as_the_document() {
        let all = FlowFlags { when_in_chat: true, when_wait_for_chat: true, when_in_auto: true };
        let none = FlowFlags::default();
        for (situation, with_all, with_none) in [
            (Situation::InChat, Verdict::Run, Verdict::Leave),
            (Situation::WaitForChat, Verdict::Leave, Verdict::Run),
            (Situation::Auto, Verdict::Run, Verdict::Leave),
            (Situation::Blocked, Verdict::Leave, Verdict::Leave),
            (Situation::Finishing, Verdict::Leave, Verdict::Leave),
        ] {
            assert_eq!(verdict(situation, all), with_all, "{situation:?} with all flags");
            assert_eq!(verdict(situation, none), with_none, "{situation:?} without flags");
        }
    }

    #[test]
    fn each_flag_speaks_for_its_own_situation_only() {
        let chat = FlowFlags { when_in_chat: true, ..FlowFlags::default() };
        assert_eq!(verdict(Situation::InChat, chat), Verdict::Run);
        assert_eq!(verdict(Situation::Auto, chat), Verdict::Leave);
        let wait = FlowFlags { when_wait_for_chat: true, ..FlowFlags::default() };
        assert_eq!(verdict(Situation::WaitForChat, wait), Verdict::Leave);
        assert_eq!(verdict(Situation::InChat, wait), Verdict::Leave);
    }
}
