"""Mutants that nothing can notice: each changes a row and nothing that anybody sees, and the reason is said here.

A reason is true only while nothing notices its mutant: `--mutants` tries these too, and one that is killed has no place here.
"""

from __future__ import annotations

CUT_OFF = "without a connection the row of the dead network stands before it"
LATE = "while words came lately, the rows of `said lately` stand before it"
WITHIN_TURN = "what is done has no turn open, and a tool is open only within a turn"
OF_TOOL = "only a tool that is open has processes of its own: the other facts imply it"
CALM = "a tool is called calm only if it has processes and none of them works: that implies it"
UNBORN = "the last rows of a wake are for whoever no other set names: this set only names them"
EXPLAINED: dict[str, str] = {
    "handlers.account.WAITS_FOR_WALL: crashed is dropped": "who waits for a wall is pending: its crash is not marked any more",
    "handlers.remedy.VERBS: end is as end-child": "an end that spares a person is taken back from `ending`, not as a step",
    "rules.stall.verdict.WELL: waiting-human is dropped": "who has asked is not looked at until that is answered",
    "rules.wake.UNBORN: interrupted is dropped": UNBORN,
    "rules.wake.UNBORN: launch-failed is dropped": UNBORN,
    "silence: limbo (6) is not excluded by: turn open": WITHIN_TURN,
    "silence: lost-result (12) asks not for: tool open": OF_TOOL,
    "silence: blocked-child (14) asks not for: tool open": OF_TOOL,
    "silence: lost-result (15) is not excluded by: pipe held": "the row of the leaked pipe stands before it",
    "silence: uninterruptible (16) asks not for: tool open": OF_TOOL,
    "silence: tool-overrun (19) asks not for: tool open": OF_TOOL,
    "silence: tool-overrun (19) is not excluded by: tool works": CALM,
    "silence: working (20) asks not for: turn open": "the last row says the same of an agent without a turn",
    "silence: tool-running (22) asks not for: tool open": OF_TOOL,
    "silence: thinking (24) is not excluded by: tool open": "the row of a tool to which bytes come stands before it",
    "silence: resume-poisoned (27) asks not for: silent": LATE,
    "silence: spinning (28) asks not for: silent": LATE,
    "silence: network-dead (29) asks not for: silent": LATE,
    "silence: wedged-after-tool (30) asks not for: silent": LATE,
    "silence: wedged-after-tool (30) asks not for: connected": CUT_OFF,
    "silence: upstream-stall (31) asks not for: silent": LATE,
    "silence: upstream-stall (31) asks not for: connected": CUT_OFF,
}
