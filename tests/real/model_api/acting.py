"""Acting: how one act of the script is carried out towards a client."""

from __future__ import annotations

import time
from typing import assert_never

from tests.real.model_api.dialect import Ask, Dialect, Turn
from tests.real.model_api.http import Reply
from tests.real.model_api.script import WORDS, Act, Break, Refuse, Say, Use
from tests.real.model_api.shell import SHELLS, arguments_of, shell_of


async def perform(act: Act, dialect: Dialect, ask: Ask, reply: Reply) -> None:
    """Carry out an act."""
    match act:
        case Say():
            await _say(act, dialect, ask, reply)
        case Use():
            await _use(act, dialect, ask, reply)
        case Refuse():
            await _refuse(act, dialect, reply)
        case Break():
            await _break_off(act.how, reply)
        case _:
            assert_never(act)


async def _say(act: Say, dialect: Dialect, ask: Ask, reply: Reply) -> None:
    if not ask.streams:
        if act.breaks:  # clients try again without a stream when one broke
            await _break_off(act.breaks, reply)
        else:
            await reply.send(200, dialect.whole(ask, Turn(WORDS)))
        return
    events = dialect.stream(ask, Turn(WORDS))
    await reply.begin_stream()
    for event in events[: len(events) // 2] if act.breaks else events:
        await reply.send_piece(event)
        if act.pause_s:
            await reply.wait(act.pause_s)
    if act.breaks:
        await _break_off(act.breaks, reply)
    else:
        await reply.send_piece("")


async def _use(act: Use, dialect: Dialect, ask: Ask, reply: Reply) -> None:
    shell = shell_of(ask.tools, (act.tool,) if act.tool else SHELLS)
    if shell is None:
        offered = ", ".join(tool.name for tool in ask.tools)
        await reply.send(400, dialect.refuse(400, f"no {act.tool or 'shell'} is offered: {offered}"))
        return
    await reply.wait(act.after_s)
    turn = Turn(tool=shell.name, arguments=arguments_of(shell, act.command))
    if not ask.streams:
        await reply.send(200, dialect.whole(ask, turn))
        return
    await reply.begin_stream()
    for event in [*dialect.stream(ask, turn), ""]:
        await reply.send_piece(event)


async def _refuse(act: Refuse, dialect: Dialect, reply: Reply) -> None:
    why = f"scripted: status {act.status}"
    if act.resets_in_s is not None:
        why = f"usage limit reached|{int(time.time()) + act.resets_in_s}"
    headers = {} if act.retry_after_s is None else {"retry-after": str(act.retry_after_s)}
    await reply.send(act.status, dialect.refuse(act.status, why), headers)


async def _break_off(how: str, reply: Reply) -> None:
    if how == "reset":
        reply.reset()
    else:
        await reply.wait(None)
