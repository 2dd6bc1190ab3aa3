"""The last words of an agent are kept, each once, however many sources tell them and however many there are."""

from __future__ import annotations

import pytest

from vigil.core.model.progress import Recent
from vigil.core.model.speech import Said, What
from vigil.core.rules.activity import KEPT, TEXT_CHARS, remember


def ring_of(*words: tuple[float, str, Said]) -> tuple[Recent, ...]:
    ring: tuple[Recent, ...] = ()
    for at, source, said in words:
        ring = remember(ring, said, at, source)
    return ring


def test_a_tools_end_bears_the_name_it_began_with() -> None:
    ring = ring_of(
        (1.0, "stream", Said(What.TOOL_STARTED, name="Bash", id="t1")), (2.0, "stream", Said(What.TOOL_ENDED, id="t1"))
    )

    assert [(one.what, one.name) for one in ring] == [(What.TOOL_STARTED, "Bash"), (What.TOOL_ENDED, "Bash")]


def test_what_a_hook_and_a_stream_both_tell_is_there_once_however_late() -> None:
    began, ended = Said(What.TOOL_STARTED, name="Bash", id="t1"), Said(What.TURN_ENDED)

    ring = ring_of((1.0, "hook", began), (900.0, "stream", began), (901.0, "hook", ended), (902.5, "stream", ended))

    assert [(one.at, one.what, one.source) for one in ring] == [
        (1.0, What.TOOL_STARTED, "hook"),
        (901.0, What.TURN_ENDED, "hook"),
    ]


def test_two_turns_that_one_source_tells_are_two_and_so_are_those_of_two_sources_far_apart() -> None:
    prompt = Said(What.PROMPT)

    assert len(ring_of((1.0, "hook", prompt), (2.0, "hook", Said(What.TURN_ENDED)), (3.0, "hook", prompt))) == 3
    assert len(ring_of((1.0, "hook", prompt), (9.0, "transcript", prompt))) == 2


def test_the_same_word_in_a_row_is_counted_and_a_sign_of_life_is_none() -> None:
    retry = Said(What.RETRIES, text="529")

    ring = ring_of((1.0, "stream", retry), (2.0, "stream", Said(What.ALIVE)), (3.0, "stream", retry), (4.0, "stream", retry))

    assert [(one.at, one.text, one.times) for one in ring] == [(1.0, "529", 3)]


def test_only_the_last_are_kept_and_each_is_short() -> None:
    ring = ring_of(*((float(at), "stream", Said(What.TOOL_STARTED, id=f"t{at}", text="x" * 999)) for at in range(100)))

    assert [one.id for one in ring] == [f"t{at}" for at in range(100 - KEPT, 100)]
    assert {len(one.text) for one in ring} == {TEXT_CHARS}


@pytest.mark.parametrize("what", [What.ALIVE, What.SPEAKS, What.TICKS])
def test_what_comes_every_few_letters_is_not_kept(what: What) -> None:
    assert ring_of((1.0, "stream", Said(what))) == ()
