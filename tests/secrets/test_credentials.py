"""Test that credentials are found in texts where a rule finds them, and that prose stays."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from demur._secrets import SECRET, without_secrets

_LETTERS = string.ascii_letters + string.digits
PEM = "-----BEGIN {0}PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0B=\n-----END {0}PRIVATE KEY-----"

# --- What is removed ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        # Headers as httpx and requests show them.
        ("headers={'Authorization': 'Bearer swordfish'}", "{'Authorization': '[secret]'}"),
        ("Headers({'x-api-key': 'abc', 'accept': '*/*'})", "'[secret]', 'accept': '*/*'"),
        ("[(b'authorization', b'Bearer a1b2c3d4'), (b'x', b'y')]", "[secret]'), (b'x', b'y')]"),
        ("(b'x-api-key', b'a1b2c3d4')", "(b'x-api-key', b'[secret]')"),
        ("Authorization: Bearer swordfish\nAccept: */*", "Authorization: [secret]\nAccept: */*"),
        ("curl -H 'Authorization: Bearer abcdef12' h", "-H 'Authorization: [secret]' h"),
        ('Authorization: Digest username="x", nonce="y"\nHost: z', ": [secret]\nHost: z"),
        ("Cookie: a=b; session=c\nHost: x", "Cookie: [secret]\nHost: x"),
        ("Set-Cookie: sid=31d4d96e407aad42; Path=/", "Set-Cookie: [secret]"),
        ("x-api-key: swordfish\nHost: x", "x-api-key: [secret]\nHost: x"),
        ("we sent Bearer a1b2c3d4e5f6g7h8.", "we sent Bearer [secret]"),
        # Assignments.
        ("api_key=swordfish", "api_key=[secret]"),
        ("export OPENAI_API_KEY=swordfish; ls", "OPENAI_API_KEY=[secret]; ls"),
        ("password=hunter2.", "password=[secret]."),
        ("password=Xy9$k(2 next", "password=[secret] next"),
        ("api_key: Tr0ub4dor&3\nmodel: m", "api_key: [secret]\nmodel: m"),
        ("client_secret := 'swordfish'", "client_secret := '[secret]'"),
        ('{"api_key": "a b", "model": "m"}', '{"api_key": "[secret]", "model": "m"}'),
        (r"{\"api_key\": \"abcdef\", \"x\": 1}", r"{\"api_key\": \"[secret]\", \"x\": 1}"),
        (r'"password": "pa\"ss", "x"', '"password": "[secret]", "x"'),
        ("db: host=h user=u password=swordfish port=1", "password=[secret] port=1"),
        ("密钥是api_key=a1b2c3d4e5", "密钥是api_key=[secret]"),
        # Addresses with credentials.
        ("https://user:pw@host/x", "https://[secret]@host/x"),
        ("https://user:p@w@host/x", "https://[secret]@host/x"),
        ("postgres://app:p%40ss@db:5432/x", "postgres://[secret]@db:5432/x"),
        ("https://0123abcd4567efgh@github.com/x", "https://[secret]@github.com/x"),
        ("https://h/x?key=swordfish&page=2", "?key=[secret]&page=2"),
        ("https://h/x?page=2&api-key=swordfish#end", "&api-key=[secret]"),
        ("https://h/x?sv=2&sig=abc%2Fdefgh", "&sig=[secret]"),
        ("https://h/x?X-Amz-Signature=0123abcd&x=1", "X-Amz-Signature=[secret]&x=1"),
        # Texts that only a machine writes.
        (f"see {PEM.format('')} there", "see [secret] there"),
        (f"see {PEM.format('OPENSSH ')} there", "see [secret] there"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEvQ", "[secret]"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.s-5_x here", "got [secret] here"),
        ("key provided: sk-proj-aB3dE5gH7jK9mN1pQ3sT5-x_Y.", "key provided: [secret]."),
        ("with ghp_aB3dE5gH7jK9mN1pQ3sT5, it", "with [secret], it"),
        ("密钥是sk-aB3dE5gH7jK9mN1pQ3sT5的", "密钥是[secret]的"),
    ],
)
def test_credentials_go_and_the_rest_stays(text: str, left: str) -> None:
    assert left in without_secrets(text)


@pytest.mark.parametrize(
    "before",
    [
        *("sk-", "Bearer ", "api_key=", "'api_key': '", "Cookie: a=", "authorization: negotiate "),
        *("https://h/?sig=", 'authorization: hawk id="', "eyJaaaaaaa1."),
    ],
)
def test_long_keys_go_to_their_end(before: str) -> None:
    assert "aB1" * 20 not in without_secrets(before + "aB1" * 20_000)


_PLACES = (
    "authorization: bearer {}",
    "Authorization: Basic {}",
    "api_key={}",
    "'X-Api-Key': '{}'",
    '"token": "{}"',
    "password = '{}'",
    "https://u:{}@host/",
    "https://host/?key={}",
    "https://host/?a=b&X-Goog-Signature={}",
    "Cookie: a={}",
    "OPENAI_API_KEY={}",
)
_WORDS = st.sampled_from(
    [
        *("the", "river", "Danube", "museum", "opened", "key", "keys", "token", "tokens", "secret"),
        *("password", "Bearer", "bearer", "basic", "Basic", "cookie", "header", "authorization"),
        *("credentials", "api", "API", "access", "private", "session", "Zürich", "naïve", "İzmir"),
        *("1793", "2,850", "3.5", "A320", "U.S.", "e-mail", "well-known", "state-of-the-art"),
        *("information", "incomprehensibilities", "hardware", "FUNCTION", "is", "has", "provided"),
        *("mary@example.org", "sk-learn", "max_tokens", "水", "covid-19", "pre-WWII", "e.g.,"),
    ]
)
_BETWEEN = st.sampled_from(
    [
        *(" ", " ", " ", ", ", ". ", ": ", "; ", " – ", "\n", " (", ") "),
        *('" ', ' "', '", ', '", "', '": '),
    ]
)


@st.composite
def _prose(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.tuples(_WORDS, _BETWEEN), max_size=40))
    text = "".join(part for pair in words for part in pair)
    # With a scheme, this would be a header.
    return re.sub("(?:(?:authorization|cookie): )+(?=bearer|basic)", "", text, flags=re.IGNORECASE)


@given(_prose(), st.sampled_from(_PLACES), st.text(_LETTERS, min_size=8, max_size=700), _prose())
def test_no_key_is_left_where_one_stands(before: str, place: str, key: str, after: str) -> None:
    found = without_secrets(f"{before}\n{place.format(key)}\n{after}")
    assert found.startswith(f"{before}\n")
    assert found.endswith(f"\n{after}")
    assert key not in found[len(before) : len(found) - len(after)]


@given(st.text(), st.text(min_size=8), st.text())
def test_known_values_go_everywhere(before: str, value: str, after: str) -> None:
    for is_id in (False, True):
        left = without_secrets(before + value + after, (value,), is_id=is_id)
        assert value not in left.replace(SECRET, "")


def test_of_values_within_each_other_nothing_is_left() -> None:
    assert without_secrets("a swordfish-2024 b", ("swordfish", "swordfish-2024")) == "a [secret] b"


def test_an_id_may_look_like_a_key() -> None:
    given = "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"
    assert without_secrets(given, is_id=True) == given
    assert without_secrets(f"https://me:pw@h/{given}", is_id=True) == f"https://[secret]@h/{given}"


# --- What stays ---------------------------------------------------------------------------------


@pytest.mark.slow
@given(_prose())
@example("The secret: everything must go. The key to the password: patience.")
@example("Basic hardware functions; bearer instruments. Authorization: the council met.")
def test_prose_is_left_alone(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "It takes max_tokens=4096 and input_tokens: 1000000.",
        '{"usage": {"input_tokens": 12345678, "total_tokens": 12345679}}',
        "if token == other: pass",
        "A basic RecursiveCharacterTextSplitter, and the key is LangChainExpressionLanguage.",
        "class McpOauthTokenEndpointAuthResourceNone2024, and api_key_ids: Optional[str]",
        "The public key and the primary_key=customer_id_2024 are no secrets.",
        "ask-for-it-12345678901234567890 and task-oriented-dialogue-2024-benchmark",
        "see https://medium.com/@somebody/a-story-1234567890",
        "docs.google.com/document/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgVE2upms/edit",
        "report-AnnualSummary2024Final.pdf and the-International-Baccalaureate2024Results.csv",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBg\n-----END CERTIFICATE-----",
        "Incorrect API key provided: sk-proj-****************wxyz.",
        "a UUID 0191e5a2-7c4b-7d3e-9f00-0242ac120002 and sha256:9f86d081884c7d659a2feaa0c55ad015",
    ],
)
def test_what_looks_alike_stays(text: str) -> None:
    assert without_secrets(text) == text


# Linear time is a tenth of a second here. A pattern of quadratic time takes more than a minute.
@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("a", "aA", "=", "\\", '"', "sk-", "sk-aB1", "sk-aB1c2", "aa-aA1a1", "eyJ", "eyJ."),
        *("eyJ-", "eyJaaaaaaaa.", "://", "://a:", "://a@", "bearer ", "bearer a1a1a1a1 ", "token:"),
        *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "token=", "token  ", "key ", "api key "),
        *("a=", "a =", 'key="', 'key=\\"', 'api_key=\\"', "password=(", "token=a&", "api_key=&a"),
        *("cookie=", "cookie:a=", "authorization: digest a=", "authorization:", "?key=", "secret_"),
        *("('api_key',", "api_key: ", '":', "',"),
    ],
)
def test_time_is_in_proportion_to_the_text(unit: str) -> None:
    text = (unit * 600_000)[:600_000]
    assert isinstance(without_secrets(text), str)
