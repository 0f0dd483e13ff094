from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text import private
from mgl.text.private import find_private

# Made in the form of real ones; joined here so that no scanner takes this file for a leak.
SAMPLES = (
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp" + "_" + "a1B2" * 9,
    "xoxb" + "-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_",
    "4111 1111 1111 1111",
    "5500-0000-0000-0004",
    "378282246310005",
    "3782 822463 10005",
    "DE89 3704 0044 0532 0130 00",
    "GB82WEST12345698765432",
    "NO93 8601 1117 947",
    "123-45-6789",
    "ann.b+c@mail.example.org",
    "192.168.1.10",
    "2001:db8::8a2e:370:7334",
    "(415) 555-2671",
    "+44 20 7946 0958",
)


KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"


def private_parts(text: str) -> list[str]:
    return [text[start:end] for start, end in find_private(text)]


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("frame", ["{}", "So: {}, you see.", "it is {}.", "a\n{}\nb"])
def test_each_kind_wherever_it_stands(sample: str, frame: str) -> None:
    assert private_parts(frame.format(sample)) == [sample]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("The password is hunter2!", "hunter2"),
        ("my PIN: 4921, ok", "4921"),
        ("the api key is 'abcdef'", "abcdef"),
        ("passphrase=correct-horse_7", "correct-horse_7"),
        ("https://bob:s3cret@example.com/x now", "://bob:s3cret@example.com/x"),
        (f"{KEY} ok", KEY),
        (KEY[:40], KEY[:40]),
    ],
)
def test_secrets_that_are_told(text: str, part: str) -> None:
    assert private_parts(text) == [part]


@pytest.mark.parametrize(
    "text",
    [
        "The secret is to be kind, and the password is easy. The key is under the mat.",
        "4111 1111 1111 1112 and 1111 1111 1111 1111 and 0000 0000 0000 0000",
        "DE88 3704 0044 0532 0130 00",
        "000-45-6789, 666-45-6789, 900-45-6789, 123-00-6789, 12-345-6789",
        "At 10:30:15 std::vector :: and ::1, version v1.2.3.4, 999.1.1.1, 3.14159",
        "In 2019 we scored 1,234,567 points on 2023-05-08, 20230508.",
        "user@host, @ann, a@b, 020 7946 0958",
    ],
)
def test_what_is_not_private(text: str) -> None:
    assert find_private(text) == []


words = st.sampled_from([*SAMPLES, "so", "and", "we met", "in 2019,", "é", "password is", "."])


@given(st.lists(words, max_size=8), st.sampled_from([" and ", ", ", "\n"]))
def test_nothing_private_is_left(parts: list[str], between: str) -> None:
    text = between.join(parts)
    found = find_private(text)
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    for start, end in found:
        text = text[:start] + "*" * (end - start) + text[end:]
    assert not any(sample in text for sample in SAMPLES)


@pytest.mark.parametrize("package", ["detect_secrets.plugins.ip_public", "phonenumbers"])
def test_without_the_extra_it_is_said_what_to_install(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private._known_forms.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as caught:
        find_private("anything")
    assert package.partition(".")[0].replace("_", "-") in caught.value.hint
