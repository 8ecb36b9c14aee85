"""Texts that are judged: answers, arguments with the judge, and bland ones."""
