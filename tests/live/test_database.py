"""A database that cannot be used is refused with a clear line and a way out, and is never overwritten."""

from __future__ import annotations

import sqlite3

from tests.live.instance import Instance, alive


def test_a_damaged_database_is_refused_and_left_as_it_is(vigil: Instance) -> None:
    session = vigil.run("a", "sleep", "1000")
    vigil.ok("daemon", "stop")
    for name in ("vigil.db-wal", "vigil.db-shm"):
        (vigil.path / name).unlink(missing_ok=True)
    whole = vigil.home.database.read_bytes()
    damaged = whole[:100] + b"\xde\xad\xbe\xef" * 2000 + whole[8100:]
    vigil.home.database.write_bytes(damaged)

    done = vigil.run_cli("ls")

    assert done.returncode == 5
    assert done.stderr.startswith("vigil: ")
    assert "is damaged" in done.stderr
    assert "mv " in done.stderr
    assert done.stderr.count("\n") == 1
    assert vigil.home.database.read_bytes() == damaged
    assert alive(session["pid"])

    vigil.home.database.write_bytes(whole)
    assert vigil.json("get", "a")["pid"] == session["pid"]


def test_a_file_that_is_no_database_is_refused(vigil: Instance) -> None:
    vigil.home.database.write_bytes(b"this is not a database, but somebody's notes\n" * 100)

    done = vigil.run_cli("ls")

    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "is damaged" in done.stderr
    assert vigil.home.database.read_bytes().startswith(b"this is not a database")
    vigil.home.database.unlink()


def test_a_newer_database_is_refused(vigil: Instance) -> None:
    vigil.start()
    vigil.ok("daemon", "stop")
    with sqlite3.connect(vigil.home.database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()

    done = vigil.run_cli("ls")

    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert "newer Vigil" in done.stderr
    assert "upgrade Vigil" in done.stderr
    vigil.home.database.unlink()
