"""Know secrets by their names, by their values, and by their places in texts."""

from demur._secrets.credentials import SECRET, without_secrets
from demur._secrets.known import known_secrets, learn, secrets_in
from demur._secrets.names import is_secret_name

__all__ = [
    "SECRET",
    "is_secret_name",
    "known_secrets",
    "learn",
    "secrets_in",
    "without_secrets",
]
