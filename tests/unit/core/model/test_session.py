"""What is known of a launch is one value of its session, and is changed as easily as the session's own fields."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from tests.unit.builders import make_doubt, make_session
from vigil.core.model.progress import IDLE
from vigil.core.model.session import UNKNOWN_VITALS, VITALS, Session, Vitals, VitalsChanges, with_changes, with_vitals
from vigil.core.model.upgrade import ONCE_FLAT


def test_the_changes_have_the_fields_and_types_of_the_vitals() -> None:
    assert get_type_hints(VitalsChanges) == get_type_hints(Vitals)
    assert get_type_hints(Vitals).keys() == VITALS


def test_a_field_is_the_sessions_or_its_vitals_and_never_both() -> None:
    assert not VITALS & get_type_hints(Session).keys()
    assert not ONCE_FLAT & get_type_hints(Session).keys(), "an old session would lose it"


def test_changes_go_where_their_fields_are() -> None:
    doubt = make_doubt()
    before = make_session(attached=2)

    after = with_changes(before, why="another", doubt=doubt, doing=IDLE)

    assert (after.why, after.vitals.doubt, after.vitals.doing, after.vitals.attached) == ("another", doubt, IDLE, 2)
    assert (before.why, before.vitals.doubt) == ("a test wants it", None)
    assert with_changes(before, why="another").vitals is before.vitals
    assert with_vitals(before, attached=0).vitals == UNKNOWN_VITALS


def test_a_field_that_neither_has_is_refused() -> None:
    with pytest.raises(KeyError):
        with_changes(make_session(), mood="good")
