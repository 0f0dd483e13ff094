from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text import private
from mgl.text.private import find_private, redact

# Made in the form of real ones; joined here so that no scanner takes this file for a leak.
SAMPLES = {
    "AKIA" + "IOSFODNN7EXAMPLE": "secret",
    "ghp" + "_" + "a1B2" * 9: "secret",
    "xoxb" + "-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx": "secret",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_": "secret",
    "4111 1111 1111 1111": "card",
    "5500-0000-0000-0004": "card",
    "378282246310005": "card",
    "3782 822463 10005": "card",
    "DE89 3704 0044 0532 0130 00": "iban",
    "GB82WEST12345698765432": "iban",
    "NO93 8601 1117 947": "iban",
    "123-45-6789": "ssn",
    "ann.b+c@mail.example.org": "email",
    "192.168.1.10": "ip",
    "2001:db8::8a2e:370:7334": "ip",
    "(415) 555-2671": "phone",
    "+44 20 7946 0958": "phone",
}


@pytest.mark.parametrize(("sample", "kind"), SAMPLES.items())
@pytest.mark.parametrize("frame", ["{}", "So: {}, you see.", "it is {}.", "a\n{}\nb"])
def test_each_kind_wherever_it_stands(sample: str, kind: str, frame: str) -> None:
    text = frame.format(sample)
    [found] = find_private(text)
    assert (found.kind, text[found.start : found.end]) == (kind, sample)
    assert redact(text, [found]) == frame.format(f"[{kind}]")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("The password is hunter2!", "The password is [secret]!"),
        ("my PIN: 4921, ok", "my PIN: [secret], ok"),
        ("the api key is 'abcdef'", "the api key is '[secret]'"),
        ("passphrase=correct-horse_7", "passphrase=[secret]"),
        ("https://bob:s3cret@example.com/x now", "https[secret] now"),
    ],
)
def test_secrets_that_are_told(text: str, redacted: str) -> None:
    assert redact(text, find_private(text)) == redacted


@pytest.mark.parametrize("end", ["\n-----END RSA PRIVATE KEY----- ok", ""])
def test_a_private_key_goes_to_its_end(end: str) -> None:
    text = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE\nabc" + end
    assert redact(text, find_private(text)) == "[secret]" + (" ok" if end else "")


@pytest.mark.parametrize(
    "text",
    [
        "The secret is to be kind, and the password is easy. The key is under the mat.",
        "4111 1111 1111 1112 and 1111 1111 1111 1111 and 0000 0000 0000 0000",
        "DE88 3704 0044 0532 0130 00",
        "000-45-6789, 666-45-6789, 900-45-6789, 123-00-6789, 12-345-6789",
        "At 10:30:15 std::vector :: and ::1, version v1.2.3.4, 999.1.1.1, 3.14159",
        "In 2019 we scored 1,234,567 points on 2023-05-08, 20230508.",
        "user@host, @ann, a@b",
    ],
)
def test_what_is_not_private(text: str) -> None:
    assert find_private(text) == []


def test_a_number_without_its_country_needs_a_region() -> None:
    text = "020 7946 0958"
    assert find_private(text) == []
    assert [part.kind for part in find_private(text, region="GB")] == ["phone"]
    assert [part.kind for part in find_private("+44 " + text[1:], region=None)] == ["phone"]
    assert find_private("+44 " + text[1:], kinds=("ssn",)) == []


words = st.sampled_from([*SAMPLES, "so", "and", "we met", "in 2019,", "é", "password is", "."])


@given(st.lists(words, max_size=8), st.sampled_from([" and ", ", ", "\n"]))
def test_nothing_private_is_left(parts: list[str], between: str) -> None:
    text = between.join(parts)
    found = find_private(text)
    assert all(before.end <= after.start for before, after in pairwise(found))
    left = redact(text, found)
    for sample in SAMPLES:
        assert sample not in left


@pytest.mark.parametrize("package", ["detect_secrets.plugins.ip_public", "phonenumbers"])
def test_without_the_extra_it_is_said_what_to_install(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private._known_forms.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError) as caught:
        find_private("anything")
    assert package.partition(".")[0].replace("_", "-") in caught.value.hint
