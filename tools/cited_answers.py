"""Print which passages the answers about the standard library cite, for people to read.

    python -m tools.cited_answers    # run `demur models pull` first; takes 15 minutes on two cores

The chain, the guard and the index are the demonstration's, with its three questions and twenty
more. Only a reader can say whether a passage supports its sentence. docs/results.md has the result.
"""

from __future__ import annotations

from rich.console import Console

from demur import resolve_model
from demur.cli.demo.chain import guarded
from demur.cli.demo.play import QUESTIONS, open_retriever
from demur.local import MiniLM
from demur.views import terminal

MORE = (
    "What does os.path.join do with an absolute path in the middle?",
    "How do I get the n largest items of a list?",
    "What does functools.lru_cache do when the cache is full?",
    "What does shutil.rmtree remove?",
    "Does random.sample return duplicates?",
    "What is the difference between copy.deepcopy and copy.copy?",
    "What does json.dumps do with sort_keys?",
    "What does itertools.chain return?",
    "What does subprocess.run return?",
    "What does textwrap.fill do?",
    "How does bisect.insort keep a list sorted?",
    "What does statistics.median return for an even number of values?",
    "What does secrets.token_hex return?",
    "What does zipfile.is_zipfile check?",
    "What does time.sleep do?",
    "What does calendar.isleap return?",
    "What does difflib.get_close_matches return?",
    "What does os.makedirs do if the directory exists?",
    "What does hashlib.file_digest do?",
    "What does collections.deque maxlen do?",
)


def main() -> None:
    """Ask each question, and print the answer with its sources."""
    console = Console(soft_wrap=True)
    guard = guarded(resolve_model("local"), open_retriever(console, MiniLM()))
    for number, question in enumerate((*QUESTIONS, *MORE), 1):
        found = guard.with_trace().invoke(question)
        terminal.say(console, f"{number}. {found.trace.outcome}:", question, style="bold")
        terminal.say(console, terminal.harmless(found.output))
        terminal.show_sources(console, found.trace.attempts[-1])


if __name__ == "__main__":
    main()
