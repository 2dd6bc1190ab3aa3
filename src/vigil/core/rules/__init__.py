"""Every decision of the program, a line each: what it decides, and which promise (P) or section (§) of DESIGN it keeps.

Start here. All of it is tables and pure functions over frozen values: no Book, no clock, no world. A handler of the same name
asks, and does what follows.

Life and death
    liveness: from a session's axes, whether it lives, is in doubt, stuck, orphaned or dead (P7, §4.2)
    death: from the facts of an exit, its cause, how sure that is, and the evidence for it (P3, P8, §4.4)
    restart: whether a death is charged, and how long the next launch waits (P4, §4.4)
    limits: which of a launch's limits can be kept, and when it is refused for one that cannot (P2)
    wall: what a word about a limit or a failed login means, and until when it stands (§4.4)
    wake: whether a launch resumes the conversation, begins a new one or is refused (§4.6)
    plan: the steps that make a workspace as its manifest declares it (P5, P11, §4.3)
    reap: what runs is kept, put to sleep or ended (P2, §4.5)
    sighting: what the reaper's table sees of a session, and what counts as unknown (P2, P7, §4.5)
    heartbeat: why a session without signs of life is kept all the same (P2)

Words and silence
    activity: what an agent does, from all it said, and which words stay known (§4.1)
    prompt: whether a prompt may be typed into a session now (P2, P7)
    stall.schedule: how much silence a session may have, when it is looked at next, a question told again (P12, §5)
    stall.case: who is watched, since when an agent is silent, and what it has open (§5)
    stall.facts: which facts hold of a silent agent: true, false or unknown (P7, §5)
    stall.speech: which of them its own words say (P7, §5)
    stall.work: which of them its processes, bytes and files say (P7, §5)
    stall.tool: which of them its open tools and their processes say (P7, §5)
    stall.verdict: why a silent agent says nothing, and how sure that is (P2, §5)
    stall.course: whether a finding goes on from the last one, and is worth telling (P12, §5)
    stall.remedy: what may be done about a stalled agent, and what keeps it from being done (P2, §5)

People
    incident: which conditions of a session open an incident, and which that comes back is the same (P12)
    escalation: which notices of an incident are due, when, and on which route (P6, P12, P14)
    quiet_hours: when people are not told, and of what they are told all the same (P12)
    storm: how long a route gathers notices, and how many become one summary (P12)
    notice: what becomes of a notice after an attempt: sent, tried again or given up (P12)
    reaction: what may be done about an incident before it is escalated, and how often (P2)
    health: the one word that people see for a session's state (§4.3)
    explain: why a session is as it is, in sentences, from what is recorded (P5)
    summary: what is counted of a launch, and what its summary says (P3)"""
