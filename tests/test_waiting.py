"""How threads wait is said once, and never above the user's word."""

from sterad.waiting import BRIEFLY, wait_briefly


def test_it_is_said_where_nobody_has() -> None:
    environment = {"HOME": "/"}
    wait_briefly(environment)
    assert environment == {"HOME": "/"} | BRIEFLY


def test_the_users_word_stands() -> None:
    environment = {"OMP_WAIT_POLICY": "ACTIVE"}
    wait_briefly(environment)
    assert environment == {"OMP_WAIT_POLICY": "ACTIVE"}
