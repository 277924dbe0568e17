"""A BMC that refuses a login, or asks for time, is left alone for a while."""

import pytest

from haptera.modules.effects import DeviceError, LoginError, NotYetError
from haptera.modules.patience import LOGIN_S_MAX, LOGIN_S_MIN, Patience

BMC = "10.0.0.1"
US = ("operator", "wrong")


def refuse(patience: Patience, now: float) -> None:
    patience.check(BMC, US, now)
    patience.refused(BMC, US, LoginError("refuses the login"), now)


def test_each_refused_login_doubles_the_time_until_the_next() -> None:
    patience, now, waits = Patience(), 0.0, list[float]()
    while len(waits) < 9:
        refuse(patience, now)
        before = now
        while True:
            try:
                patience.check(BMC, US, now)
                break
            except LoginError:
                now += LOGIN_S_MIN / 2
        waits.append(now - before)
    assert waits == [min(LOGIN_S_MIN * 2**number, LOGIN_S_MAX) for number in range(9)]


def test_another_password_is_tried_at_once_and_counts_anew() -> None:
    patience = Patience()
    refuse(patience, 0)
    refuse(patience, LOGIN_S_MIN)
    other = ("operator", "other")
    patience.check(BMC, other, LOGIN_S_MIN)
    patience.refused(BMC, other, LoginError("refuses the login"), LOGIN_S_MIN)
    with pytest.raises(LoginError, match="not asked again for 60 s"):
        patience.check(BMC, other, LOGIN_S_MIN)


def test_a_device_that_answers_has_its_first_chance_again() -> None:
    patience = Patience()
    refuse(patience, 0)
    patience.answered(BMC)
    refuse(patience, 1)
    patience.check(BMC, US, 1 + LOGIN_S_MIN)


def test_who_asks_for_time_is_left_alone_by_all() -> None:
    patience = Patience()
    patience.hold(BMC, DeviceError("booting"), 30)
    for credentials in (US, ("another", "password")):
        with pytest.raises(NotYetError, match="booting; not asked again for 20 s") as told:
            patience.check(BMC, credentials, 10)
        assert told.value.after_s == 20
    patience.check(BMC, US, 30)
    patience.check("another device", US, 10)
