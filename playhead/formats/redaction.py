"""Masking what looks like a secret, and who somebody is on their machine, in text that leaves the store.

It works by shape and name alone, asks nobody, and is a net with holes: what it leaves is not proved to be harmless. The
same text is always masked in the same way, so that what was equal before is equal afterwards. The store is not touched.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from playhead.model.event import KINDS

HOME = "~"
"""What a home directory is replaced with."""

NAME_CHARS_MIN = 3
"""A shorter user name is a part of too many words to be looked for by itself."""

KEPT_FIELDS = frozenset(
    {
        *("role", "type", "status", "kind", "cause", "why", "finish_reason", "hash", "size", "version"),
        *("to", "from", "id", "interrupt", "job", "trigger", "message_id", "events", "imported_to", "event"),
    }
)
"""Fields of a body, of its parts and of where it was forked from that hold the log together. They are ids and words
from closed lists, so nothing is looked for in them."""

_COMMON_NAMES = frozenset(
    "root user users admin administrator ubuntu debian fedora test tests tester runner guest default node home work "
    "code agent assistant system tool coordinator researcher python data build public shared app docker git www".split()
) | {word for kind in KINDS for word in kind.split("_")}

Pattern = tuple[str, re.Pattern[str]]

# Of a pattern with groups the first that took part is masked alone. None begins with something that may be repeated
# without a bound: text of a megabyte without a space must not cost its square.
_SHAPES: tuple[Pattern, ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){0,20000}-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"|[A-Za-z0-9+/=\s\\]*)"
        ),
    ),
    (
        "provider token",
        re.compile(
            r"(?<![A-Za-z0-9_])(?:"
            r"sk-[A-Za-z0-9][A-Za-z0-9_-]{18,}[A-Za-z0-9]"
            r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
            r"|gh[opsur]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}"
            r"|gl(?:pat|ptt|rt|dt|soat)-[A-Za-z0-9_.-]{18,}[A-Za-z0-9]"
            r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}"
            r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
            r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"
            r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{40,}|hf_[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}"
            r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|do[opr]_v1_[a-f0-9]{60,}|dckr_pat_[A-Za-z0-9_-]{20,}"
            r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
            r")"
        ),
    ),
    (
        "webhook address",
        re.compile(
            r"https://(?:hooks\.slack\.com/(?:services|workflows)/|(?:\w{1,20}\.)?discord(?:app)?\.com/api/webhooks/)"
            r"([A-Za-z0-9_/-]{16,})"
        ),
    ),
    (
        "signed token",
        re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ),
    ("password in an address", re.compile(r"://[^\s/:@\"'<>]{0,100}:([^\s/@\"'<>]{1,200})@")),
    (
        "authorization header",
        re.compile(
            r"(?i)(?<![a-z0-9])(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{3,12}\s{1,3})?|bearer\s{1,3})"
            r"([A-Za-z0-9_\-.~+/=]{12,})"
        ),
    ),
    (
        "session cookie",
        re.compile(r"(?i)(?<![a-z0-9-])(?:set-)?cookie:\s{0,3}([^\s;=]{1,80}=[^\r\n\"']{8,4000})"),
    ),
)

# A password as an argument: of a program that takes one so, in the same command, or behind an option called like one.
_VALUE = r"(?!\[masked: )(?:\"([^\"\r\n]{3,200})\"|'([^'\r\n]{3,200})'|([^\s\"'`;|&<>(){}\\]{3,200}))"
_BETWEEN = r"\b[^\r\n;|&]{0,300}?\s"
_LOGIN = r"(?:docker|podman|helm|az|oc)\s[^\r\n;|&]{0,40}?login"
_ARGUMENTS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(rf"(?<![\w-]){pattern}")
    for pattern in (
        rf"(?:mysql|mariadb|mycli)(?:-?[a-z]{{2,12}})?{_BETWEEN}-p(?!ort\b|assword\b|rotocol\b){_VALUE}",
        rf"(?:7za?|7zz){_BETWEEN}-p{_VALUE}",
        rf"(?:sshpass|{_LOGIN}){_BETWEEN}-p[ =]?{_VALUE}",
        rf"(?:zip|unzip){_BETWEEN}-P[ ]?{_VALUE}",
        rf"(?:redis-cli|mongosh?|ldap[a-z]{{3,8}}){_BETWEEN}-[apw][ ]{_VALUE}",
        rf"(?:curl|wget|xh|https?){_BETWEEN}(?:-[uUa]|--user|--proxy-user|--auth)[ =]?[\"']?"
        r"[^\s:\"'/]{1,100}:(?!\[masked: )([^\s\"'`;|&<>(){}\\]{1,200})",
        rf"smbclient{_BETWEEN}(?:-U|--user)[ =]?[\"']?[^\s%\"']{{1,100}}%(?!\[masked: )([^\s\"'`;|&]{{1,200}})",
        r"-pass(?:in|out)?\spass:(?!\[masked: )([^\s\"'`;|&]{3,200})",
    )
)
_OPTION = re.compile(
    r"(?i)(?<![\w-])--?(?:[a-z]{2,12}-){0,2}(?:password|passwd|passphrase|secret|token|api-?key|secret-?key|access-?key)\s"
    + _VALUE
)
# What nobody sees in the middle of a word, and what colours it, may part a secret in two.
_UNSEEN = re.compile("(?<=[!-~])(?:[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]|\x1b\\[[0-9;]{0,20}[mK])+(?=[!-~])")
_MASKED = re.compile(r"\[masked: [a-z ]{1,40}\]")
_PASSWORD = re.compile(
    r"(?i)(?:password|passwd|passphrase|(?<=;)pwd|secret)[\"']?\s{0,3}(?::|=(?!=))\s{0,3}"
    r"(?:\"([^\"\r\n]{4,200})\"|'([^'\r\n]{4,200})'|([^\s\"',;&<>(){}\[\]\\]{4,200})(?![\w(\[]))"
)
_KEY = re.compile(
    r"(?i)(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|account[_-]?key|secret[_-]?key|signing[_-]?key|encryption[_-]?key"
    r"|private[_-]?key|token|credentials?|signature|secret)[\"']?\s{0,3}(?::|=(?!=))\s{0,3}[\"']?"
    r"([A-Za-z0-9_\-+/=.~]{16,500})(?![\w(\[])"
)
_VARIABLE = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{2,60}=[\"']?([A-Za-z0-9_\-+/=.~]{20,500})(?![\w(\[])")
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_\-. ]|(?<=[a-z])(?=[A-Z]))(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key"
    r"|secret[_-]?key|private[_-]?key|client[_-]?secret|auth[_-]?token|access[_-]?token|refresh[_-]?token|bearer)$"
)
_PLACEHOLDER = re.compile(
    r"(?i)^(?:[*x.•_-]+|none|null|true|false|undefined|string|str|text|required|optional|hidden|redacted|changeme"
    r"|example|your.*|my.*|some.*|dummy.*|\$.*|%.*%|@.*|.*\.\.\.|\d{1,5}|(?:os|process|self|config|settings|env)\..*)$"
)
_HEX_OR_UUID = re.compile(r"(?i)[0-9a-f]{32,128}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HOMES = re.compile(
    r"(?<![A-Za-z0-9_.~])(?:/(?:home|Users)/|[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/))"
    r"(?!(?:Shared|Public|Default)\b)[A-Za-z0-9][\w.@-]{0,62}"
)


class Redactor:
    """Masks text, and counts what it masked by kind. Not safe for use by several threads at once.

    homes: home directories. names: user names, of which the common ones (`root`, `user`, `admin` …) are left alone, as
    they say nothing. patterns: regular expressions of the caller's; where one has groups, the first that took part in
    the match is masked.
    """

    def __init__(
        self, *, homes: Iterable[str] = (), names: Iterable[str] = (), patterns: Sequence[re.Pattern[str]] = ()
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._own: tuple[Pattern, ...] = tuple(("own pattern", pattern) for pattern in patterns)
        self._home = _any_of((home.rstrip("/\\") for home in homes), chars_min=4, after=r"(?![\w.-])")
        wanted = (name for name in names if name.lower() not in _COMMON_NAMES)
        self._name = _any_of(wanted, chars_min=NAME_CHARS_MIN, after=r"(?![A-Za-z0-9])", before=r"(?<![A-Za-z0-9])")

    def again(self) -> Redactor:
        """Return one that masks in the same way, for text that was counted before. Its own counts begin at nothing."""
        other = copy(self)
        other.counts = Counter()
        return other

    def text(self, text: str) -> str:
        """Return the text with secrets as `[masked: KIND]`, home directories as `~` and user names as `[user]`.

        Where something is found only without the invisible characters in its words, they are left out of the text.
        """
        masked = self._text(text)
        joined = _UNSEEN.sub("", masked)
        if joined == masked:
            return masked
        found = self._text(joined)
        return masked if found == joined else found

    def _text(self, text: str) -> str:
        for kind, pattern in (*self._own, *_SHAPES):
            text = self._masked(text, kind, pattern)
        for pattern in _ARGUMENTS:
            text = self._masked(text, "password", pattern, _is_password)
        text = self._masked(text, "password", _OPTION, _is_typed)
        text = self._masked(text, "password", _PASSWORD, _is_password)
        text = self._masked(text, "key or token", _KEY, _is_random)
        text = self._masked(text, "value of a variable", _VARIABLE, _is_random_variable)
        if self._home is not None:
            text = self._replaced(text, "home directory", self._home, HOME)
        text = self._replaced(text, "home directory", _HOMES, HOME)
        if self._name is not None:
            text = self._replaced(text, "user name", self._name, "[user]")
        return text

    def optional(self, text: str | None) -> str | None:
        """Return `text` masked, and None for None."""
        return None if text is None else self.text(text)

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return an event's body with every text in it masked, keys too, but for `KEPT_FIELDS`.

        The content of a blob part is taken out: nothing can be looked for in it.
        """
        return {self.text(name): self._field(name, value) for name, value in body.items()}

    def value(self, value: Any) -> Any:
        """Return any JSON value with its texts masked. The text under a key that is called like a secret goes whole."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(name): self._under(name, item) for name, item in value.items()}
        return value

    def _field(self, name: str, value: Any) -> Any:
        if name in KEPT_FIELDS:
            return value
        if name in ("parts", "forked_from"):
            objects = value if isinstance(value, list) else [value]
            masked = [self._part(one) if isinstance(one, dict) else self.value(one) for one in objects]
            return masked if isinstance(value, list) else masked[0]
        return self._under(name, value)

    def _part(self, part: Mapping[str, Any]) -> dict[str, Any]:
        if part.get("type") == "blob" and part.get("content"):
            self.counts["file"] += 1
            part = {**part, "content": ""}
        return {
            self.text(name): value if name in KEPT_FIELDS else self._under(name, value) for name, value in part.items()
        }

    def _under(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and _SECRET_NAME.search(name) and _is_password(value):
            self.counts["password"] += 1
            return "[masked: password]"
        return self.value(value)

    def _masked(
        self, text: str, kind: str, pattern: re.Pattern[str], is_secret: Callable[[str], bool] | None = None
    ) -> str:
        """Mask the first group that took part in each match, or the whole match where none did. What is masked already
        stays; what is masked in a part only is masked whole."""

        def mask(found: re.Match[str]) -> str:
            group = next((number for number in range(1, pattern.groups + 1) if found.start(number) >= 0), 0)
            secret = found[group]
            if _is_masked(secret) or (is_secret is not None and not is_secret(secret)):
                return found[0]
            self.counts[kind] += 1
            start, end = found.start(group) - found.start(), found.end(group) - found.start()
            return f"{found[0][:start]}[masked: {kind}]{found[0][end:]}"

        return pattern.sub(mask, text)

    def _replaced(self, text: str, kind: str, pattern: re.Pattern[str], by: str) -> str:
        replaced, count = pattern.subn(lambda _: by, text)
        if count:
            self.counts[kind] += count
        return replaced


def _any_of(texts: Iterable[str], *, chars_min: int, after: str, before: str = "") -> re.Pattern[str] | None:
    """Return a pattern for any of these texts, the longest first; None where none is long enough to look for."""
    wanted = sorted({text for text in texts if len(text) >= chars_min}, key=lambda text: (-len(text), text))
    if not wanted:
        return None
    return re.compile(f"{before}(?:{'|'.join(re.escape(text) for text in wanted)}){after}", re.IGNORECASE)


def _is_masked(text: str) -> bool:
    return not _MASKED.sub("", text).strip()


def _is_password(text: str) -> bool:
    return not _PLACEHOLDER.match(text) and not _is_masked(text)


def _is_typed(text: str) -> bool:
    """Return True for what may be a password in running text: no word and no option."""
    return (
        _is_password(text) and not text.startswith("-") and not (text.isalpha() and (text.islower() or text.isupper()))
    )


def _is_random(text: str) -> bool:
    """Return True for what no person would write as a word or a name: letters and digits, well mixed."""
    has_both = any(character.isdigit() for character in text) and any(character.isalpha() for character in text)
    return has_both and _is_password(text) and _entropy_bits(text) >= 3.0


def _is_random_variable(text: str) -> bool:
    """Return True for a value that is random and is none of the long ids and addresses that variables often hold."""
    if _HEX_OR_UUID.fullmatch(text) or "/" in text[:2] or text.count("/") > 2 or text.startswith(("http", "file")):
        return False
    return _is_random(text) and _entropy_bits(text) >= 3.7 and any(c.isupper() for c in text) and not text.isupper()


def _entropy_bits(text: str) -> float:
    """Return the bits per character that its own frequencies give."""
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
