"""Test which names say that a value is secret."""

from __future__ import annotations

import pytest

from demur._secrets import is_secret_name


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "apiKey", "apikey", "API-KEY", "x-api-key", "OPENAI_API_KEY", "api key"),
        *("OpenAIApiKey", "openai_key", "api_keys", "API_KEY_2", "Ocp-Apim-Subscription-Key"),
        *("token", "access_token", "accessToken", "X-Auth-Token", "HF_TOKEN", "refresh_tokens"),
        *("x-amz-security-token", "csrf_token", "sessionToken", "id_token", "token_secret"),
        *("secret", "client_secret", "clientSecret", "aws_secret_access_key", "SECRET_2"),
        *("AWS_ACCESS_KEY_ID", "password", "dbPassword", "db_pass", "PGPASSWORD", "passwd", "pwd"),
        *("authorization", "Proxy-Authorization", "auth", "credentials", "azure_credential"),
        *("cookie", "Set-Cookie", "cookies", "headers", "default_headers", "HTTP headers"),
        *("header", "private_key", "privatekey", "ssh_key", "signing-key", "DEMUR_HASH_KEY", "jwt"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)
    assert is_secret_name(name.upper())


@pytest.mark.parametrize(
    "name",
    [
        *("", "1", "key", "keys", "name", "source", "title", "author", "authors", "monkey"),
        *("max_tokens", "maxTokens", "input_tokens", "output_tokens", "total_tokens", "tokens"),
        *("token_count", "tokens_per_second", "prompt_tokens", "cached_tokens", "num_tokens"),
        *("gen_ai.token.type", "eos_token", "pad_token_id", "token_ids", "tokenizer", "n_tokens"),
        *("primary_key", "cache_key", "input_key", "memory_key", "public_key", "foreignKey"),
        *("Header 1", "Header 2", "header_row", "page_header", "column_headers"),
        *("token_path", "secret_name", "credentials_file", "password_policy", "auth_method"),
        *("auth_user", "oauth_scopes", "db_password_user"),
        *("keyboard", "passage", "pass", "bypass", "compass", "secretary", "tokenization"),
        *("run_id", "thread_id", "session_id", "ls_model_name", "langgraph_node", "user_id"),
    ],
)
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


def test_a_long_name_says_it_at_its_end() -> None:
    assert is_secret_name("x" * 300 + "_password")
