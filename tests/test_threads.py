"""The wait policy of OpenMP threads."""

from sterad.threads import WAIT_POLICY, set_wait_policy


def test_the_wait_policy_is_set_by_default() -> None:
    environment = {"HOME": "/"}
    set_wait_policy(environment)
    assert environment == {"HOME": "/"} | WAIT_POLICY


def test_the_users_wait_policy_is_kept() -> None:
    environment = {"OMP_WAIT_POLICY": "ACTIVE"}
    set_wait_policy(environment)
    assert environment == {"OMP_WAIT_POLICY": "ACTIVE"}
