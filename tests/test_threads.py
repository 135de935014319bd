"""How threads wait is said once, and never above the user's word."""

from sterad.threads import WAIT_POLICY, set_wait_policy


def test_it_is_said_where_nobody_has() -> None:
    environment = {"HOME": "/"}
    set_wait_policy(environment)
    assert environment == {"HOME": "/"} | WAIT_POLICY


def test_the_users_word_stands() -> None:
    environment = {"OMP_WAIT_POLICY": "ACTIVE"}
    set_wait_policy(environment)
    assert environment == {"OMP_WAIT_POLICY": "ACTIVE"}
