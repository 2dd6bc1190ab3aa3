"""What a process has open, as the kernel tells it."""

from __future__ import annotations

import pytest

from vigil.kernel.descriptors import kind_of


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("socket:[12]", "socket"),
        ("pipe:[12]", "pipe"),
        ("anon_inode:[eventpoll]", "eventpoll"),
        ("anon_inode:inotify", "inotify"),
        ("/dev/pts/3", "terminal"),
        ("/dev/null", "device"),
        ("/work/a file (deleted)", "file"),
    ],
)
def test_what_a_descriptor_leads_to_has_one_word(target: str, kind: str) -> None:
    assert kind_of(target) == kind
